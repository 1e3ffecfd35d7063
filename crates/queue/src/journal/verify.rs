//! Whether a room was fair: reads its journal from the beginning and finds every step that should not have happened.
//!
//! It shares no code with the room. It knows only what fairness means: nobody is let in past somebody who came earlier and still
//! waits, there are never more people in than the threshold allows at the moment one is let in, and nobody has two places.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
};

use urr_kernel::{OrderKey, Timestamp, UserId};

use super::{Entry, Step};

/// Findings kept in full. A room that was unfair a hundred times is unfair enough; the rest are counted.
const MAX_FINDINGS: usize = 100;

/// Something that should not have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// In which life of the room.
    pub generation: u64,
    /// The step that did it.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    pub fault: Fault,
}

/// What can go wrong in a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Somebody was let in before somebody who came earlier.
    Overtook {
        /// Who was let in.
        user: UserId,
        /// Who should have been.
        first: UserId,
    },
    /// Somebody was let in although the room was full.
    OverThreshold {
        /// How many were in then.
        active: usize,
        /// How many might.
        threshold: u32,
    },
    /// Somebody was let in although the room was paused.
    WhilePaused,
    /// Somebody got a second place, or a place and a slot.
    TwoPlaces {
        /// Who.
        user: UserId,
    },
    /// Somebody was let in, returned or gone who was not where the step says.
    NotThere {
        /// Who.
        user: UserId,
    },
    /// Steps are missing before this one.
    Gap {
        /// Which number should have come.
        expected: u64,
    },
    /// The clock went back by more than a second.
    Backwards,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overtook { user, first } => write!(f, "{user} was let in before {first}, who came earlier"),
            Self::OverThreshold { active, threshold } => {
                write!(f, "somebody was let in: {active} are in, {threshold} may be")
            }
            Self::WhilePaused => write!(f, "somebody was let in while the room was paused"),
            Self::TwoPlaces { user } => write!(f, "{user} has two places"),
            Self::NotThere { user } => write!(f, "{user} was neither waiting nor in"),
            Self::Gap { expected } => write!(f, "steps from number {expected} on are missing"),
            Self::Backwards => write!(f, "the clock went back"),
        }
    }
}

/// What a journal shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Steps read.
    pub steps: u64,
    /// Places given.
    pub joined: u64,
    /// Slots given.
    pub admitted: u64,
    /// People who left, were idle too long, whose time was over, or who bought.
    pub gone: u64,
    /// What operators did.
    pub operator: u64,
    /// How many waited at most.
    pub most_waiting: usize,
    /// How many were in at most.
    pub most_active: usize,
    /// What should not have happened, the first hundred.
    pub findings: Vec<Finding>,
    /// And how many of those there are.
    pub faults: u64,
}

impl Report {
    /// Whether nothing was found.
    pub fn is_fair(&self) -> bool {
        self.faults == 0
    }
}

/// Reads a journal, entry by entry in order.
#[derive(Debug)]
pub struct Verifier {
    generation: u64,
    next: u64,
    latest: Option<Timestamp>,
    waiting: BTreeSet<(OrderKey, UserId)>,
    places: HashMap<UserId, OrderKey>,
    active: HashSet<UserId>,
    threshold: u32,
    paused: bool,
    report: Report,
}

impl Verifier {
    /// For a room that began with this threshold.
    pub fn new(threshold: u32) -> Self {
        Self {
            generation: 0,
            next: 1,
            latest: None,
            waiting: BTreeSet::new(),
            places: HashMap::new(),
            active: HashSet::new(),
            threshold,
            paused: false,
            report: Report::default(),
        }
    }

    /// Takes the next entry.
    pub fn read(&mut self, entry: &Entry) {
        self.number(entry);
        self.report.steps += 1;
        match entry.step {
            Step::Joined { user, order } => self.joined(entry, user, order),
            Step::Admitted { user, order, .. } => self.admitted(entry, user, order),
            Step::Returned { user, order } => self.returned(entry, user, order),
            Step::Gone { user, .. } => self.gone(entry, user),
            Step::Threshold { threshold } => {
                self.report.operator += 1;
                self.threshold = threshold;
            }
            Step::Paused | Step::Resumed => {
                self.report.operator += 1;
                self.paused = entry.step == Step::Paused;
            }
            Step::Cleared { .. } => {
                self.report.operator += 1;
                self.empty();
            }
        }
        self.report.most_waiting = self.report.most_waiting.max(self.waiting.len());
        self.report.most_active = self.report.most_active.max(self.active.len());
    }

    /// What was found.
    pub fn finish(self) -> Report {
        self.report
    }

    fn number(&mut self, entry: &Entry) {
        if entry.generation != self.generation {
            // A store that lost its data: whoever comes back brings their place along.
            self.generation = entry.generation;
            self.next = 1;
            self.empty();
        }
        if entry.seq != self.next {
            self.find(entry, Fault::Gap { expected: self.next });
        }
        self.next = entry.seq + 1;
        if self.latest.is_some_and(|latest| latest.since(entry.at).as_secs() > 1) {
            self.find(entry, Fault::Backwards);
        }
        self.latest = self.latest.max(Some(entry.at));
    }

    fn joined(&mut self, entry: &Entry, user: UserId, order: OrderKey) {
        self.report.joined += 1;
        if self.active.contains(&user) || self.places.contains_key(&user) {
            self.find(entry, Fault::TwoPlaces { user });
            return;
        }
        self.places.insert(user, order);
        self.waiting.insert((order, user));
    }

    fn admitted(&mut self, entry: &Entry, user: UserId, order: OrderKey) {
        self.report.admitted += 1;
        if self.active.contains(&user) {
            self.find(entry, Fault::TwoPlaces { user });
            return;
        }
        if let Some(held) = self.places.remove(&user) {
            self.waiting.remove(&(held, user));
            if held != order {
                self.find(entry, Fault::NotThere { user });
            }
        }
        let first = self.waiting.first().copied().filter(|first| *first < (order, user));
        // Whoever comes with an early place while nobody waits longer may go straight in; anybody who waits goes first.
        if let Some((_, first)) = first {
            self.find(entry, Fault::Overtook { user, first });
        }
        if self.paused {
            self.find(entry, Fault::WhilePaused);
        }
        self.active.insert(user);
        let (active, threshold) = (self.active.len(), self.threshold);
        if u32::try_from(active).is_ok_and(|active| active > threshold) {
            self.find(entry, Fault::OverThreshold { active, threshold });
        }
    }

    fn returned(&mut self, entry: &Entry, user: UserId, order: OrderKey) {
        if !self.active.remove(&user) {
            self.find(entry, Fault::NotThere { user });
        }
        self.places.insert(user, order);
        self.waiting.insert((order, user));
    }

    fn gone(&mut self, entry: &Entry, user: UserId) {
        self.report.gone += 1;
        let was_in = self.active.remove(&user);
        match self.places.remove(&user) {
            Some(order) => {
                self.waiting.remove(&(order, user));
            }
            None if was_in => {}
            None => self.find(entry, Fault::NotThere { user }),
        }
    }

    fn empty(&mut self) {
        self.waiting.clear();
        self.places.clear();
        self.active.clear();
    }

    fn find(&mut self, entry: &Entry, fault: Fault) {
        self.report.faults += 1;
        if self.report.findings.len() < MAX_FINDINGS {
            let &Entry { generation, seq, at, .. } = entry;
            self.report.findings.push(Finding { generation, seq, at, fault });
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::journal::Why;

    fn user(number: u128) -> UserId {
        UserId::from_uuid(Uuid::from_u128(number))
    }

    fn joined(number: u64) -> Step {
        Step::Joined { user: user(number.into()), order: OrderKey::new(number).unwrap() }
    }

    fn admitted(number: u64) -> Step {
        let order = OrderKey::new(number).unwrap();
        Step::Admitted { user: user(number.into()), order, slot: Uuid::nil() }
    }

    fn gone(number: u64) -> Step {
        Step::Gone { user: user(number.into()), why: Why::Left }
    }

    fn read(steps: &[Step]) -> Report {
        let mut verifier = Verifier::new(2);
        for (index, step) in (1..).zip(steps) {
            let at = Timestamp::from_micros(i64::try_from(index).unwrap() * 1_000_000);
            verifier.read(&Entry { generation: 1, seq: index, at, step: *step });
        }
        verifier.finish()
    }

    fn faults(steps: &[Step]) -> Vec<Fault> {
        read(steps).findings.into_iter().map(|finding| finding.fault).collect()
    }

    #[test]
    fn a_fair_room_has_no_findings() {
        let report = read(&[admitted(1), admitted(2), joined(3), joined(4), gone(1), admitted(3), gone(4)]);
        assert!(report.is_fair(), "{report:?}");
        assert_eq!((report.joined, report.admitted, report.gone), (2, 3, 2));
        assert_eq!((report.most_waiting, report.most_active), (2, 2));
    }

    #[test]
    fn every_kind_of_unfairness_is_found() {
        let overtook = Fault::Overtook { user: user(4), first: user(3) };
        assert_eq!(faults(&[joined(3), joined(4), admitted(4)]), std::slice::from_ref(&overtook));
        assert_eq!(faults(&[joined(3), admitted(4)]), [overtook], "without waiting at all");
        let full = Fault::OverThreshold { active: 3, threshold: 2 };
        assert_eq!(faults(&[admitted(1), admitted(2), admitted(3)]), [full]);
        let lowered = [admitted(1), Step::Threshold { threshold: 1 }, admitted(2)];
        assert_eq!(faults(&lowered), [Fault::OverThreshold { active: 2, threshold: 1 }]);
        assert_eq!(faults(&[joined(1), joined(1)]), [Fault::TwoPlaces { user: user(1) }]);
        assert_eq!(faults(&[admitted(1), joined(1)]), [Fault::TwoPlaces { user: user(1) }]);
        assert_eq!(faults(&[admitted(1), admitted(1)]), [Fault::TwoPlaces { user: user(1) }]);
        assert_eq!(faults(&[gone(1)]), [Fault::NotThere { user: user(1) }]);
        assert_eq!(faults(&[Step::Paused, admitted(1)]), [Fault::WhilePaused]);
        assert_eq!(faults(&[Step::Paused, Step::Resumed, admitted(1)]), []);
        assert_eq!(faults(&[admitted(1), admitted(2), Step::Cleared { epoch: 2 }, admitted(1)]), []);
    }

    #[test]
    fn missing_steps_and_a_clock_that_goes_back_are_found() {
        let mut verifier = Verifier::new(2);
        let entry = |generation, seq, at| Entry {
            generation,
            seq,
            at: Timestamp::from_micros(at),
            step: joined(seq + 100 * generation),
        };
        for entry in [entry(1, 1, 9_000_000), entry(1, 3, 9_000_000), entry(2, 1, 9_000_000)] {
            verifier.read(&entry);
        }
        verifier.read(&entry(2, 2, 1_000_000));
        let faults: Vec<_> = verifier.finish().findings.into_iter().map(|finding| finding.fault).collect();
        assert_eq!(faults, [Fault::Gap { expected: 2 }, Fault::Backwards]);
    }
}
