//! Who has come, who asks next, and what each was told: the crowd's own memory, with which the server's answers are compared.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Number of a fan, from zero.
pub(super) type Fan = u32;

/// What somebody does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Joins.
    Join,
    /// Asks where they stand.
    Status {
        /// The furthest place of anybody known to be in when the question was sent.
        furthest: u32,
    },
    /// Goes.
    Leave,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Ask this.
    Ask(Fan, Ask),
    /// Nobody is due for so long.
    Wait(Duration),
    /// Everybody has gone.
    Over,
}

/// What somebody was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// To wait at this place.
    Waiting(u32),
    /// That they are in.
    In,
    /// That they are not known.
    Nowhere,
    /// That they have gone.
    Gone,
}

/// What came of it all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Requests that were answered, whatever the answer.
    pub(super) requests: u64,
    /// The time all of them took.
    pub(super) answered: Duration,
    /// The longest of them.
    pub(super) slowest: Duration,
    /// Requests of whoever asked most.
    pub(super) most: u32,
    /// Answers that said to come again later.
    pub(super) put_off: u64,
    /// Who has joined.
    pub(super) joined: u32,
    /// Who has come in.
    pub(super) admitted: u32,
    /// Who has gone after that.
    pub(super) gone: u32,
    /// Places that two were told, or that are beyond the number of those who came.
    pub(super) double_places: u64,
    /// Answers with a place behind the last one.
    pub(super) moved_back: u64,
    /// Answers to wait, sent after somebody further behind was known to be in.
    pub(super) overtaken: u64,
    /// Answers that somebody is nowhere who had a place.
    pub(super) lost: u32,
    /// Answers that nobody expects, and connections that broke.
    pub(super) broken: u64,
    /// The first of them.
    pub(super) first_broken: Option<String>,
}

impl Tally {
    /// What should not have happened. `fans` is how many should have come and gone by now.
    pub(super) fn faults(&self, fans: u32) -> Vec<String> {
        let first = self.first_broken.as_deref().unwrap_or_default();
        let missing = u64::from(fans - self.gone.min(fans));
        [
            (missing, "fans were not let in"),
            (self.double_places, "places were given twice, or are none"),
            (self.moved_back, "times somebody moved back"),
            (self.overtaken, "times somebody waited while somebody behind them was in"),
            (self.lost.into(), "places were lost"),
            (self.broken, first),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The place of the first answer: the order in which they came.
    came: u32,
    /// The place of the last answer.
    place: u32,
    requests: u32,
    /// Whether they are in.
    is_in: bool,
}

/// Everybody.
#[derive(Debug)]
pub(super) struct Crowd(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    fans: Vec<State>,
    /// Which first places were given.
    taken: Vec<bool>,
    /// Who has not come yet.
    to_come: Fan,
    /// Whether it is the turn of somebody new.
    comes_next: bool,
    /// Who asks when.
    due: BinaryHeap<Reverse<(Duration, Fan)>>,
    /// The furthest first place of anybody who is known to be in.
    furthest: u32,
    tally: Tally,
}

impl Crowd {
    pub(super) fn new(fans: u32) -> Self {
        let count = usize::try_from(fans).expect("a count of people");
        Self(Mutex::new(Inner {
            fans: vec![State::default(); count],
            taken: vec![false; count],
            to_come: 0,
            comes_next: false,
            due: BinaryHeap::with_capacity(count),
            furthest: 0,
            tally: Tally::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tally(&self) -> Tally {
        let inner = self.lock();
        let most = inner.fans.iter().map(|fan| fan.requests).max().unwrap_or(0);
        Tally { most, ..inner.tally.clone() }
    }

    /// How many have joined, come in and gone, of how many, with how many requests.
    pub(super) fn progress(&self) -> (u32, u32, u32, usize, u64) {
        let inner = self.lock();
        let Tally { joined, admitted, gone, requests, .. } = inner.tally;
        (joined, admitted, gone, inner.fans.len(), requests)
    }

    /// Whether everybody has a place.
    pub(super) fn all_joined(&self) -> bool {
        let inner = self.lock();
        usize::try_from(inner.tally.joined) == Ok(inner.fans.len())
    }

    /// What is due at `now`. Those who come and those who wait take turns, so that neither keep the others from asking.
    pub(super) fn next(&self, now: Duration) -> Next {
        let inner = &mut *self.lock();
        let somebody_comes = index(inner.to_come) < inner.fans.len();
        inner.comes_next = somebody_comes && !inner.comes_next;
        let due = inner.due.peek().copied().filter(|Reverse((due, _))| *due <= now && !inner.comes_next);
        if let Some(Reverse((_, fan))) = due {
            inner.due.pop();
            let State { came, is_in, .. } = inner.fans[index(fan)];
            let ask = match (came, is_in) {
                (0, _) => Ask::Join,
                (_, true) => Ask::Leave,
                (_, false) => Ask::Status { furthest: inner.furthest },
            };
            return Next::Ask(fan, ask);
        }
        if somebody_comes {
            inner.to_come += 1;
            return Next::Ask(inner.to_come - 1, Ask::Join);
        }
        if usize::try_from(inner.tally.gone + inner.tally.lost) == Ok(inner.fans.len()) {
            return Next::Over;
        }
        let wait = inner.due.peek().map(|Reverse((due, _))| due.saturating_sub(now));
        Next::Wait(wait.unwrap_or(Duration::MAX))
    }

    /// Notes an answer, compares it with what was told before, and remembers to ask again at `again` unless that was all.
    pub(super) fn told(&self, fan: Fan, ask: Ask, told: Told, took: Duration, again: Duration) {
        let inner = &mut *self.lock();
        inner.answered(fan, took);
        let (state, tally) = (&mut inner.fans[index(fan)], &mut inner.tally);
        match (ask, told) {
            (Ask::Leave, _) => {
                tally.gone += 1;
                return;
            }
            (_, Told::In) => {
                tally.joined += u32::from(state.came == 0);
                tally.admitted += 1;
                state.is_in = true;
                state.came = state.came.max(1);
                inner.furthest = inner.furthest.max(state.came);
            }
            (Ask::Join, Told::Waiting(place)) if state.came == 0 => {
                (state.came, state.place) = (place, place);
                tally.joined += 1;
                let taken = place.checked_sub(1).and_then(|place| inner.taken.get_mut(index(place)));
                if taken.is_none_or(|taken| std::mem::replace(taken, true)) {
                    tally.double_places += 1;
                }
            }
            (_, Told::Waiting(place)) => {
                tally.moved_back += u64::from(place > state.place);
                state.place = place;
                let furthest = if let Ask::Status { furthest } = ask { furthest } else { 0 };
                tally.overtaken += u64::from(furthest > state.came);
            }
            (_, Told::Nowhere | Told::Gone) => {
                tally.lost += 1;
                return;
            }
        }
        inner.due.push(Reverse((again, fan)));
    }

    /// Notes an answer that says to come again at `again`.
    pub(super) fn put_off(&self, fan: Fan, took: Duration, again: Duration) {
        let inner = &mut *self.lock();
        inner.answered(fan, took);
        inner.tally.put_off += 1;
        inner.due.push(Reverse((again, fan)));
    }

    /// Notes an answer that makes no sense, or none. The fan tries again at `again`. Answers with how often that happened.
    pub(super) fn broken(&self, fan: Fan, why: String, again: Duration) -> u64 {
        let inner = &mut *self.lock();
        inner.tally.broken += 1;
        inner.tally.first_broken.get_or_insert(why);
        inner.due.push(Reverse((again, fan)));
        inner.tally.broken
    }
}

impl Inner {
    fn answered(&mut self, fan: Fan, took: Duration) {
        self.fans[index(fan)].requests += 1;
        self.tally.requests += 1;
        self.tally.answered += took;
        self.tally.slowest = self.tally.slowest.max(took);
    }
}

fn index(fan: Fan) -> usize {
    usize::try_from(fan).expect("a number of people")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(1);

    /// Three come, and are told these places.
    fn three(places: [u32; 3]) -> Crowd {
        let crowd = Crowd::new(3);
        for place in places {
            let Next::Ask(fan, Ask::Join) = crowd.next(Duration::ZERO) else { panic!("somebody comes") };
            crowd.told(fan, Ask::Join, Told::Waiting(place), Duration::ZERO, SOON);
        }
        assert!(crowd.all_joined());
        crowd
    }

    fn ask(crowd: &Crowd, told: Told) {
        let Next::Ask(fan, ask) = crowd.next(SOON) else { panic!("somebody is due") };
        crowd.told(fan, ask, told, Duration::ZERO, SOON * 2);
    }

    #[test]
    fn a_fair_line_has_no_faults() {
        let crowd = three([1, 2, 3]);
        assert_eq!(crowd.next(Duration::ZERO), Next::Wait(SOON));
        ask(&crowd, Told::In);
        ask(&crowd, Told::Waiting(1));
        ask(&crowd, Told::Waiting(2));
        for told in [Told::Gone, Told::In, Told::Gone, Told::In, Told::Gone] {
            let Next::Ask(fan, ask) = crowd.next(SOON * 2) else { panic!("somebody is due") };
            crowd.told(fan, ask, told, Duration::ZERO, SOON * 2);
        }
        assert_eq!(crowd.next(SOON * 2), Next::Over);
        assert_eq!(crowd.tally().faults(3), [""; 0]);
        assert_eq!((crowd.tally().requests, crowd.tally().most), (11, 4));
    }

    #[test]
    fn overtaking_is_seen_from_outside() {
        let crowd = three([1, 2, 3]);
        // The questions of all three are sent one after another: the first waits, the second is in before them.
        ask(&crowd, Told::Waiting(1));
        ask(&crowd, Told::In);
        ask(&crowd, Told::Waiting(2));
        assert_eq!(crowd.tally().overtaken, 0, "the first was asked before the second was in");
        let Next::Ask(0, again) = crowd.next(SOON * 2) else { panic!("the first is due") };
        crowd.told(0, again, Told::Waiting(1), Duration::ZERO, SOON * 3);
        assert_eq!(crowd.tally().overtaken, 1);
        assert!(crowd.tally().faults(3).iter().any(|fault| fault.contains("behind them was in")));
    }

    #[test]
    fn double_places_moving_back_and_losses_are_faults() {
        let crowd = three([1, 1, 4]);
        assert_eq!(crowd.tally().double_places, 2, "one twice, and one beyond the crowd");
        ask(&crowd, Told::Waiting(2));
        ask(&crowd, Told::Nowhere);
        let tally = crowd.tally();
        assert_eq!((tally.moved_back, tally.lost), (1, 1));
        assert_eq!(tally.faults(3).len(), 4);
    }
}
