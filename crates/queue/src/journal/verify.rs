//! Verifies that a room was fair: reads its journal from the beginning and reports every step that
//! breaks a rule.
//!
//! It shares no code with the room. The rules:
//!
//! * no user is admitted before one who joined earlier and still waits;
//! * no admission exceeds the threshold of that moment;
//! * no user has two positions, or uses one twice;
//! * a newcomer joins behind every position given before;
//! * a ticket restores only a position that its owner was given and has not given up.
//!
//! Order keys of Tier 1 passes are trusted: that tier has its own order.

mod report;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    mem,
    time::Duration,
};

use urr_kernel::{OrderKey, Timestamp, UserId};
use uuid::Uuid;

pub use self::report::{Fault, Finding, Report, Silence};
use super::{Entry, Source, Step, Why};

/// Findings kept in full; the rest are only counted.
const MAX_FINDINGS: usize = 100;

/// Tolerance for clocks: smaller steps back are NTP corrections, and two stores may differ by this
/// much. Order keys within one generation need no tolerance: the room compares them with the last
/// one it gave.
const CLOCKS_DIFFER: Duration = Duration::from_secs(2);

/// A user's slot and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    id: Uuid,
    order: OrderKey,
}

/// Verifies a journal, entry by entry in order.
#[derive(Debug)]
pub struct Verifier {
    generation: u64,
    next: u64,
    latest: Option<Timestamp>,
    waiting: BTreeSet<(OrderKey, UserId)>,
    positions: HashMap<UserId, OrderKey>,
    active: HashMap<UserId, Slot>,
    /// Last slot of each user who has one, or had one when a store lost its data: the next
    /// generation may restore it.
    carried: HashMap<UserId, Slot>,
    /// Positions whose slots have ended.
    used: HashSet<(UserId, OrderKey)>,
    /// Per user, the number of slots given and positions given up.
    turns: HashMap<UserId, u32>,
    /// Every position given under the current epoch, with the user's count in `turns` at that time.
    given: HashMap<(UserId, OrderKey), u32>,
    /// A newcomer must get a higher order key than this.
    newest: OrderKey,
    /// Tickets of this epoch are valid.
    epoch: u64,
    threshold: u32,
    paused: bool,
    silence: Option<Silence>,
    report: Report,
}

impl Verifier {
    /// A verifier for a room that began with this threshold.
    pub fn new(threshold: u32) -> Self {
        Self {
            generation: 0,
            next: 1,
            latest: None,
            waiting: BTreeSet::new(),
            positions: HashMap::new(),
            active: HashMap::new(),
            carried: HashMap::new(),
            used: HashSet::new(),
            turns: HashMap::new(),
            given: HashMap::new(),
            newest: OrderKey::at(Timestamp::from_micros(0)),
            epoch: 1,
            threshold,
            paused: false,
            silence: None,
            report: Report::default(),
        }
    }

    /// Reads the next entry.
    pub fn read(&mut self, entry: &Entry) {
        self.number(entry);
        self.report.steps += 1;
        match entry.step {
            Step::Joined { user, order, source } => self.joined(entry, (user, order), source),
            Step::Admitted { user, order, slot, source } => {
                let slot = Slot { id: slot, order };
                // A restored slot: the store lost its data after the slot was given.
                if self.carried.remove(&user) == Some(slot) {
                    self.active.insert(user, slot);
                } else {
                    self.on_time(entry);
                    self.admitted(entry, user, slot, source);
                }
            }
            Step::Returned { user, order } => self.returned(entry, user, order),
            Step::Gone { user, why } => {
                if why == Why::Idle {
                    self.fell_silent(entry.at);
                }
                self.gone(entry, user, why);
            }
            Step::Threshold { threshold } => {
                self.report.operator += 1;
                self.threshold = threshold;
            }
            Step::Paused | Step::Resumed => {
                self.report.operator += 1;
                self.paused = entry.step == Step::Paused;
            }
            Step::Cleared { epoch } => {
                self.report.operator += 1;
                self.empty();
                // A new generation repeats the current epoch.
                if epoch != self.epoch {
                    self.epoch = epoch;
                    self.carried.clear();
                    self.given.clear();
                }
            }
        }
        self.report.most_waiting = self.report.most_waiting.max(self.waiting.len());
        self.report.most_active = self.report.most_active.max(self.active.len());
    }

    /// The report on all entries read.
    pub fn finish(self) -> Report {
        self.report
    }

    fn number(&mut self, entry: &Entry) {
        if entry.generation != self.generation {
            // A new generation: the store lost its data, and returning users bring their positions.
            self.generation = entry.generation;
            self.next = 1;
            let inside = mem::take(&mut self.active);
            self.used.extend(inside.iter().map(|(user, slot)| (*user, slot.order)));
            // If a generation was lost while it began, only some slots were restored; the next may
            // restore the others.
            self.carried.extend(inside);
            self.empty();
            // The new store may have another clock.
            self.newest = earlier(self.newest, CLOCKS_DIFFER);
        }
        if entry.seq != self.next {
            self.find(entry, Fault::Gap { expected: self.next });
        }
        self.next = entry.seq + 1;
        // A restored slot keeps its original time; admissions are checked separately.
        if !matches!(entry.step, Step::Admitted { .. }) {
            self.on_time(entry);
        }
    }

    fn on_time(&mut self, entry: &Entry) {
        if self.latest.is_some_and(|latest| latest.since(entry.at) >= CLOCKS_DIFFER) {
            self.report.clock_back += 1;
        }
        self.latest = Some(entry.at);
    }

    fn joined(&mut self, entry: &Entry, (user, order): (UserId, OrderKey), source: Option<Source>) {
        self.report.joined += 1;
        if self.active.contains_key(&user) || self.positions.contains_key(&user) {
            self.find(entry, Fault::TwoPlaces { user });
            return;
        }
        self.new_place(entry, (user, order), source);
        self.positions.insert(user, order);
        self.waiting.insert((order, user));
    }

    fn admitted(&mut self, entry: &Entry, user: UserId, slot: Slot, source: Option<Source>) {
        let order = slot.order;
        self.report.admitted += 1;
        if self.active.contains_key(&user) {
            self.find(entry, Fault::TwoPlaces { user });
            return;
        }
        if let Some(held) = self.positions.remove(&user) {
            self.waiting.remove(&(held, user));
            if held != order {
                self.find(entry, Fault::NotThere { user });
            }
        } else {
            self.new_place(entry, (user, order), source);
        }
        let first = self.waiting.first().copied().filter(|first| *first < (order, user));
        // A user with an early position may be admitted at once only if no waiting user is ahead.
        if let Some((_, first)) = first {
            self.find(entry, Fault::Overtook { user, first });
        }
        if self.paused {
            self.find(entry, Fault::WhilePaused);
        }
        self.active.insert(user, slot);
        *self.turns.entry(user).or_default() += 1;
        let (active, threshold) = (self.active.len(), self.threshold);
        if u32::try_from(active).is_ok_and(|active| active > threshold) {
            self.find(entry, Fault::OverThreshold { active, threshold });
        }
    }

    fn returned(&mut self, entry: &Entry, user: UserId, order: OrderKey) {
        if self.active.remove(&user).is_none_or(|slot| slot.order != order) {
            self.find(entry, Fault::NotThere { user });
        }
        self.turns.entry(user).and_modify(|turns| *turns = turns.saturating_sub(1));
        self.positions.insert(user, order);
        self.waiting.insert((order, user));
    }

    fn gone(&mut self, entry: &Entry, user: UserId, why: Why) {
        self.report.gone += 1;
        self.carried.remove(&user);
        let was_in = self.active.remove(&user);
        if let Some(slot) = was_in {
            self.used.insert((user, slot.order));
        }
        match self.positions.remove(&user) {
            Some(order) => {
                self.waiting.remove(&(order, user));
                if why == Why::Left {
                    // Leaving gives up every ticket issued before.
                    *self.turns.entry(user).or_default() += 1;
                }
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

    /// Checks a position the user did not have before: it must be unused, and theirs to take.
    fn new_place(&mut self, entry: &Entry, (user, order): (UserId, OrderKey), source: Option<Source>) {
        let turns = self.turns.get(&user).copied().unwrap_or(0);
        let given = self.given.get(&(user, order)).copied();
        // A ticket belongs to the wait in which it was issued, and is used up by the next slot.
        let is_from_before = source == Some(Source::Ticket) && given.is_some_and(|given| given < turns);
        let is_used = self.used.contains(&(user, order));
        if is_used || is_from_before && entry.generation == 1 {
            self.find(entry, Fault::Reused { user });
        } else if is_from_before {
            // The position may have been given again by a step that was lost.
            self.report.unproven += 1;
        }
        let is_known = given.is_some();
        match source {
            Some(Source::New) if order <= self.newest => self.find(entry, Fault::TooEarly { user }),
            // A store may have lost a step that its user had seen. In the first generation no loss
            // was detected.
            Some(Source::Ticket) if !is_known && entry.generation > 1 => self.report.unproven += 1,
            Some(Source::Ticket) if !is_known => self.find(entry, Fault::NeverGiven { user }),
            _ => {}
        }
        self.given.insert((user, order), turns);
        // By the clock of Tier 1 a position may lie in the future.
        let by_now = if source == Some(Source::New) { order } else { order.min(OrderKey::at(entry.at)) };
        self.newest = self.newest.max(by_now);
    }

    fn empty(&mut self) {
        self.waiting.clear();
        self.positions.clear();
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

fn earlier(key: OrderKey, by: Duration) -> OrderKey {
    let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
    OrderKey::new(key.as_u64().saturating_sub(micros)).unwrap_or(key)
}

#[cfg(test)]
mod tests;
