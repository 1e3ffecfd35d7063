//! Whether a room was fair: reads its journal from the beginning and finds every step that should not have happened.
//!
//! It shares no code with the room. It knows only what fairness means: nobody is let in past somebody who came earlier and still
//! waits, there are never more people in than the threshold allows at the moment one is let in, nobody has two places, and nobody
//! uses one place twice.

use std::{
    collections::{BTreeSet, HashMap},
    fmt, mem,
};

use urr_kernel::{OrderKey, Timestamp, UserId};
use uuid::Uuid;

use super::{Entry, Step, Why};

/// Findings kept in full. A room that was unfair a hundred times is unfair enough; the rest are counted.
const MAX_FINDINGS: usize = 100;

/// Fewer than this may all have gone home.
const MANY: usize = 10;

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
    /// Somebody got a place that they had used already, or one before it.
    Reused {
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
            Self::Reused { user } => write!(f, "{user} used one place twice"),
            Self::NotThere { user } => write!(f, "{user} was neither waiting nor in"),
            Self::Gap { expected } => write!(f, "steps from number {expected} on are missing"),
            Self::Backwards => write!(f, "the clock went back"),
        }
    }
}

/// People who were sent away together because nobody had heard of them: perhaps they could not be heard. No fault of the room's, but
/// somebody should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// When the first of them went.
    pub at: Timestamp,
    /// How many waited then.
    pub waiting: usize,
    /// How many of them went within a second.
    pub gone: usize,
}

impl Silence {
    fn is_remarkable(&self) -> bool {
        self.gone >= MANY && self.gone * 2 >= self.waiting
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
    /// When the most people fell silent at once, if half of the line ever did.
    pub silence: Option<Silence>,
}

impl Report {
    /// Whether nothing was found.
    pub fn is_fair(&self) -> bool {
        self.faults == 0
    }
}

/// Whose turn it was, with which place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    id: Uuid,
    order: OrderKey,
}

/// Reads a journal, entry by entry in order.
#[derive(Debug)]
pub struct Verifier {
    generation: u64,
    next: u64,
    latest: Option<Timestamp>,
    waiting: BTreeSet<(OrderKey, UserId)>,
    places: HashMap<UserId, OrderKey>,
    active: HashMap<UserId, Slot>,
    /// The last slot of everybody who is in, or was when a store lost its data: in its next life they may go on.
    carried: HashMap<UserId, Slot>,
    /// The last place that each of those who were in has used.
    used: HashMap<UserId, OrderKey>,
    threshold: u32,
    paused: bool,
    silence: Option<Silence>,
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
            active: HashMap::new(),
            carried: HashMap::new(),
            used: HashMap::new(),
            threshold,
            paused: false,
            silence: None,
            report: Report::default(),
        }
    }

    /// Takes the next entry.
    pub fn read(&mut self, entry: &Entry) {
        self.number(entry);
        self.report.steps += 1;
        match entry.step {
            Step::Joined { user, order } => self.joined(entry, user, order),
            Step::Admitted { user, order, slot } => {
                let slot = Slot { id: slot, order };
                // The store lost its data, and the slot was given before that: it goes on.
                if self.carried.remove(&user) == Some(slot) {
                    self.active.insert(user, slot);
                } else {
                    self.on_time(entry);
                    self.admitted(entry, user, slot);
                }
            }
            Step::Returned { user, order } => self.returned(entry, user, order),
            Step::Gone { user, why } => {
                if why == Why::Idle {
                    self.fell_silent(entry.at);
                }
                self.gone(entry, user);
            }
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
            let inside = mem::take(&mut self.active);
            self.used.extend(inside.iter().map(|(user, slot)| (*user, slot.order)));
            self.carried = inside;
            self.empty();
        }
        if entry.seq != self.next {
            self.find(entry, Fault::Gap { expected: self.next });
        }
        self.next = entry.seq + 1;
        // A slot that was carried over keeps its time; others are looked at where they are let in.
        if !matches!(entry.step, Step::Admitted { .. }) {
            self.on_time(entry);
        }
    }

    fn on_time(&mut self, entry: &Entry) {
        if self.latest.is_some_and(|latest| latest.since(entry.at).as_secs() > 1) {
            self.find(entry, Fault::Backwards);
        }
        self.latest = self.latest.max(Some(entry.at));
    }

    fn joined(&mut self, entry: &Entry, user: UserId, order: OrderKey) {
        self.report.joined += 1;
        if self.active.contains_key(&user) || self.places.contains_key(&user) {
            self.find(entry, Fault::TwoPlaces { user });
            return;
        }
        self.new_place(entry, user, order);
        self.places.insert(user, order);
        self.waiting.insert((order, user));
    }

    fn admitted(&mut self, entry: &Entry, user: UserId, slot: Slot) {
        let order = slot.order;
        self.report.admitted += 1;
        if self.active.contains_key(&user) {
            self.find(entry, Fault::TwoPlaces { user });
            return;
        }
        if let Some(held) = self.places.remove(&user) {
            self.waiting.remove(&(held, user));
            if held != order {
                self.find(entry, Fault::NotThere { user });
            }
        } else {
            self.new_place(entry, user, order);
        }
        let first = self.waiting.first().copied().filter(|first| *first < (order, user));
        // Whoever comes with an early place while nobody waits longer may go straight in; anybody who waits goes first.
        if let Some((_, first)) = first {
            self.find(entry, Fault::Overtook { user, first });
        }
        if self.paused {
            self.find(entry, Fault::WhilePaused);
        }
        self.active.insert(user, slot);
        let (active, threshold) = (self.active.len(), self.threshold);
        if u32::try_from(active).is_ok_and(|active| active > threshold) {
            self.find(entry, Fault::OverThreshold { active, threshold });
        }
    }

    fn returned(&mut self, entry: &Entry, user: UserId, order: OrderKey) {
        if self.active.remove(&user).is_none() {
            self.find(entry, Fault::NotThere { user });
        }
        self.places.insert(user, order);
        self.waiting.insert((order, user));
    }

    fn gone(&mut self, entry: &Entry, user: UserId) {
        self.report.gone += 1;
        let was_in = self.active.remove(&user);
        if let Some(slot) = was_in {
            self.used.insert(user, slot.order);
        }
        match self.places.remove(&user) {
            Some(order) => {
                self.waiting.remove(&(order, user));
            }
            None if was_in.is_some() => {}
            None => self.find(entry, Fault::NotThere { user }),
        }
    }

    fn fell_silent(&mut self, at: Timestamp) {
        let going_on = self.silence.filter(|silence| at.since(silence.at).as_secs() < 1);
        let mut silence = going_on.unwrap_or(Silence { at, waiting: self.waiting.len(), gone: 0 });
        silence.gone += 1;
        let most = self.report.silence.map_or(0, |silence| silence.gone);
        if silence.is_remarkable() && silence.gone > most {
            self.report.silence = Some(silence);
        }
        self.silence = Some(silence);
    }

    /// A place that somebody did not have a step ago is one that they have not used.
    fn new_place(&mut self, entry: &Entry, user: UserId, order: OrderKey) {
        if self.used.get(&user).is_some_and(|used| order <= *used) {
            self.find(entry, Fault::Reused { user });
        }
    }

    fn empty(&mut self) {
        self.waiting.clear();
        self.places.clear();
        self.used.extend(self.active.drain().map(|(user, slot)| (user, slot.order)));
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
mod tests;
