//! The schedule of the fans, and the last response to each, against which later ones are
//! checked.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Number of a fan, from zero.
pub(super) type Fan = u32;

/// A fan's next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Joins.
    Join,
    /// Polls the position.
    Status {
        /// The highest first position of any fan known to be admitted when the request was sent.
        furthest: u32,
    },
    /// Leaves.
    Leave,
}

/// What a connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Send this request.
    Ask(Fan, Ask),
    /// No request is due for this long.
    Wait(Duration),
    /// All fans have left.
    Over,
}

/// A response about a fan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FanStatus {
    /// Waiting at this position.
    Waiting(u32),
    /// Admitted.
    In,
    /// Not in the queue.
    Nowhere,
    /// Left.
    Gone,
}

/// Counts over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Requests that were answered, whatever the response.
    pub(super) requests: u64,
    /// The sum of their latencies.
    pub(super) answered: Duration,
    /// The highest latency.
    pub(super) slowest: Duration,
    /// The most requests of one fan.
    pub(super) most: u32,
    /// Responses with a `retry-after`.
    pub(super) put_off: u64,
    /// Fans who joined.
    pub(super) joined: u32,
    /// Fans who were admitted.
    pub(super) admitted: u32,
    /// Fans who left after their admission.
    pub(super) gone: u32,
    /// Positions given to two fans, or beyond the number of fans.
    pub(super) double_places: u64,
    /// Responses with a position behind the previous one.
    pub(super) moved_back: u64,
    /// Responses to wait, requested after a fan behind them was known to be admitted.
    pub(super) overtaken: u64,
    /// Fans with a position who were reported as not in the queue.
    pub(super) lost: u32,
    /// Unexpected responses and lost connections.
    pub(super) broken: u64,
    /// The first of them.
    pub(super) first_broken: Option<String>,
}

impl Tally {
    /// Violations. `fans` is how many should have been admitted and have left by now.
    pub(super) fn faults(&self, fans: u32) -> Vec<String> {
        let first = self.first_broken.as_deref().unwrap_or_default();
        let missing = u64::from(fans - self.gone.min(fans));
        [
            (missing, "fans were not let in"),
            (self.double_places, "places were given twice, or are none"),
            (self.moved_back, "times a fan moved back"),
            (self.overtaken, "times a fan waited while a fan behind them was in"),
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
    /// The position in the first response: the order of arrival.
    came: u32,
    /// The position in the last response.
    place: u32,
    requests: u32,
    /// Whether the fan is admitted.
    is_in: bool,
}

/// All fans.
#[derive(Debug)]
pub(super) struct Crowd(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    fans: Vec<State>,
    /// Which first positions were given.
    taken: Vec<bool>,
    /// The next fan to join.
    to_come: Fan,
    /// Whether a new fan is next.
    comes_next: bool,
    /// When each fan sends the next request.
    due: BinaryHeap<Reverse<(Duration, Fan)>>,
    /// The highest first position of any fan known to be admitted.
    furthest: u32,
    tally: Tally,
}

impl Crowd {
    pub(super) fn new(fans: u32) -> Self {
        let count = usize::try_from(fans).expect("a count of fans fits a usize");
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

    /// Numbers of fans who joined, were admitted and left, of all fans, and of requests.
    pub(super) fn progress(&self) -> (u32, u32, u32, usize, u64) {
        let inner = self.lock();
        let Tally { joined, admitted, gone, requests, .. } = inner.tally;
        (joined, admitted, gone, inner.fans.len(), requests)
    }

    /// Whether every fan has a position.
    pub(super) fn all_joined(&self) -> bool {
        let inner = self.lock();
        usize::try_from(inner.tally.joined) == Ok(inner.fans.len())
    }

    /// What is due at `now`. New and waiting fans take turns, so that neither starves the other.
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

    /// Records a response, compares it with the previous one, and schedules the next request at
    /// `again` unless the fan has left.
    pub(super) fn told(&self, fan: Fan, ask: Ask, told: FanStatus, took: Duration, again: Duration) {
        let inner = &mut *self.lock();
        inner.answered(fan, took);
        let (state, tally) = (&mut inner.fans[index(fan)], &mut inner.tally);
        match (ask, told) {
            (Ask::Leave, _) => {
                tally.gone += 1;
                return;
            }
            (_, FanStatus::In) => {
                tally.joined += u32::from(state.came == 0);
                tally.admitted += 1;
                state.is_in = true;
                state.came = state.came.max(1);
                inner.furthest = inner.furthest.max(state.came);
            }
            (Ask::Join, FanStatus::Waiting(place)) if state.came == 0 => {
                (state.came, state.place) = (place, place);
                tally.joined += 1;
                let taken = place.checked_sub(1).and_then(|place| inner.taken.get_mut(index(place)));
                if taken.is_none_or(|taken| std::mem::replace(taken, true)) {
                    tally.double_places += 1;
                }
            }
            (_, FanStatus::Waiting(place)) => {
                tally.moved_back += u64::from(place > state.place);
                state.place = place;
                let furthest = if let Ask::Status { furthest } = ask { furthest } else { 0 };
                tally.overtaken += u64::from(furthest > state.came);
            }
            (_, FanStatus::Nowhere | FanStatus::Gone) => {
                tally.lost += 1;
                return;
            }
        }
        inner.due.push(Reverse((again, fan)));
    }

    /// Records a response that asks to retry at `again`.
    pub(super) fn put_off(&self, fan: Fan, took: Duration, again: Duration) {
        let inner = &mut *self.lock();
        inner.answered(fan, took);
        inner.tally.put_off += 1;
        inner.due.push(Reverse((again, fan)));
    }

    /// Records an unexpected response or none. The fan retries at `again`. Returns how often that
    /// happened.
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
    usize::try_from(fan).expect("a number of fans fits a usize")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(1);

    /// Three fans join and get these positions.
    fn three(places: [u32; 3]) -> Crowd {
        let crowd = Crowd::new(3);
        for place in places {
            let Next::Ask(fan, Ask::Join) = crowd.next(Duration::ZERO) else { panic!("a fan joins") };
            crowd.told(fan, Ask::Join, FanStatus::Waiting(place), Duration::ZERO, SOON);
        }
        assert!(crowd.all_joined());
        crowd
    }

    fn ask(crowd: &Crowd, told: FanStatus) {
        let Next::Ask(fan, ask) = crowd.next(SOON) else { panic!("a fan is due") };
        crowd.told(fan, ask, told, Duration::ZERO, SOON * 2);
    }

    #[test]
    fn a_fair_queue_has_no_faults() {
        let crowd = three([1, 2, 3]);
        assert_eq!(crowd.next(Duration::ZERO), Next::Wait(SOON));
        ask(&crowd, FanStatus::In);
        ask(&crowd, FanStatus::Waiting(1));
        ask(&crowd, FanStatus::Waiting(2));
        for told in [FanStatus::Gone, FanStatus::In, FanStatus::Gone, FanStatus::In, FanStatus::Gone] {
            let Next::Ask(fan, ask) = crowd.next(SOON * 2) else { panic!("a fan is due") };
            crowd.told(fan, ask, told, Duration::ZERO, SOON * 2);
        }
        assert_eq!(crowd.next(SOON * 2), Next::Over);
        assert_eq!(crowd.tally().faults(3), [""; 0]);
        assert_eq!((crowd.tally().requests, crowd.tally().most), (11, 4));
    }

    #[test]
    fn overtaking_is_detected_from_responses() {
        let crowd = three([1, 2, 3]);
        // All three requests are sent one after another: the first fan waits, the second is
        // admitted first.
        ask(&crowd, FanStatus::Waiting(1));
        ask(&crowd, FanStatus::In);
        ask(&crowd, FanStatus::Waiting(2));
        assert_eq!(crowd.tally().overtaken, 0, "the first polled before the second was admitted");
        let Next::Ask(0, again) = crowd.next(SOON * 2) else { panic!("the first is due") };
        crowd.told(0, again, FanStatus::Waiting(1), Duration::ZERO, SOON * 3);
        assert_eq!(crowd.tally().overtaken, 1);
        assert!(crowd.tally().faults(3).iter().any(|fault| fault.contains("behind them was in")));
    }

    #[test]
    fn duplicate_lost_and_worse_positions_are_faults() {
        let crowd = three([1, 1, 4]);
        assert_eq!(crowd.tally().double_places, 2, "one given twice, one beyond the number of fans");
        ask(&crowd, FanStatus::Waiting(2));
        ask(&crowd, FanStatus::Nowhere);
        let tally = crowd.tally();
        assert_eq!((tally.moved_back, tally.lost), (1, 1));
        assert_eq!(tally.faults(3).len(), 4);
    }
}
