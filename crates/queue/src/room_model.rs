//! One event's room as a state machine: who waits, who has a slot, and what each request changes.
//!
//! Every change is a [`Step`]. A decision is atomic here, and the caller writes its steps to the
//! journal before it answers. Applying the steps of a journal in order rebuilds the room.

use std::{collections::HashMap, time::Duration};

use urr_kernel::{OrderKey, Timestamp, UserId};
use uuid::Uuid;

use crate::{
    admission_rate::AdmissionRate,
    journal::{Source, Step, Why},
    line::Line,
    presence::Presence,
    settings::Limits,
    token_position::{Claim, Flaw, Flaws, TokenPosition},
    used_positions::{UsedPosition, UsedPositions},
};

/// The right to buy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its id, which entry tokens carry.
    pub id: Uuid,
    /// The order key its owner had, or would have had.
    pub order: OrderKey,
    /// When it was given.
    pub since: Timestamp,
}

impl Slot {
    fn turn(&self) -> UsedPosition {
        UsedPosition { order: self.order, at: self.since }
    }
}

/// A slot and the times by which it ends, in room time ([`Presence`]).
#[derive(Clone, Copy, Debug)]
struct Held {
    slot: Slot,
    began: Timestamp,
    /// Last activity.
    seen: Timestamp,
}

impl Held {
    /// When the slot ends without further activity.
    fn ends(&self, limits: &Limits) -> Timestamp {
        self.seen.after(limits.slot_idle).min(self.began.after(limits.slot_total))
    }
}

/// A user's state in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserState {
    /// Has a slot.
    Active {
        /// The slot.
        slot: Slot,
        /// When it ends without further activity.
        ends: Timestamp,
    },
    /// Waits in line.
    Waiting {
        /// The order key.
        order: OrderKey,
        /// Users ahead.
        ahead: usize,
    },
    /// Not in the room.
    Absent,
    /// Not in the room, and the line is full.
    Full,
    /// Not in the room, and in the maximum number of other lines.
    Elsewhere,
}

impl UserState {
    fn in_line(place: Option<(OrderKey, usize)>) -> Self {
        place.map_or(Self::Absent, |(order, ahead)| Self::Waiting { order, ahead })
    }
}

/// State of one event's room.
#[derive(Debug)]
pub(crate) struct RoomModel {
    line: Line,
    active: HashMap<UserId, Held>,
    used_positions: UsedPositions,
    threshold: u32,
    paused: bool,
    epoch: u64,
    /// The highest order key given. A newcomer gets a higher key.
    last: OrderKey,
    admission_rate: AdmissionRate,
    presence: Presence,
    arrived: u64,
    admitted: u64,
    /// Where the next search for idle users starts.
    swept: usize,
}

/// Totals of a room at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    /// Users waiting.
    pub waiting: usize,
    /// Users with a slot.
    pub active: usize,
    /// Most users with a slot at once.
    pub threshold: u32,
    /// Whether admissions are paused.
    pub paused: bool,
    /// Tickets of this epoch are valid.
    pub epoch: u64,
    /// Admissions per second over the last minute, once measured.
    pub per_second: Option<f64>,
    /// Joins since the room was opened, including repeated ones.
    pub arrived: u64,
    /// Admissions since the room was opened.
    pub admitted: u64,
}

impl RoomModel {
    pub(crate) fn new(threshold: u32) -> Self {
        Self {
            line: Line::default(),
            active: HashMap::new(),
            used_positions: UsedPositions::default(),
            threshold,
            paused: false,
            epoch: 1,
            last: OrderKey::at(Timestamp::from_micros(0)),
            admission_rate: AdmissionRate::default(),
            presence: Presence::default(),
            arrived: 0,
            admitted: 0,
            swept: 0,
        }
    }

    /// Joins the line, resumes a position or returns the state, and reports promises that do not
    /// hold. `slot` is the id for a slot given at once; with `None` none is given.
    pub(crate) fn check(
        &mut self,
        user: UserId,
        claim: &Claim<'_>,
        slot: Option<Uuid>,
        now: Timestamp,
        limits: &Limits,
        steps: &mut Vec<Step>,
    ) -> (UserState, Flaws) {
        let state = self.status(user, now, limits, steps);
        let (kept, flaws) = claim.kept(|promise| self.flaw(user, promise));
        if state != UserState::Absent {
            return (state, flaws);
        }
        let (order, source) = match kept {
            Some(promise) => (promise.order, Some(promise.source())),
            None if claim.may_be_new => (self.last.next().max(OrderKey::at(now)), Some(Source::New)),
            None => return (UserState::Absent, flaws),
        };
        if let Some(slot) = slot.filter(|_| self.line.is_empty() && self.has_room()) {
            self.take(Step::Admitted { user, order, slot, source }, now, steps);
        } else if self.line.len() >= limits.max_waiting && source != Some(Source::Ticket) {
            // A ticket names a position that was given, so it holds even if the line is full. The
            // line may exceed its limit by the users who return.
            return (UserState::Full, flaws);
        } else {
            self.take(Step::Joined { user, order, source }, now, steps);
        }
        (self.state(user, limits), flaws)
    }

    /// Why a promise does not hold, or `None` if it does.
    fn flaw(&self, user: UserId, promise: &TokenPosition) -> Option<Flaw> {
        if promise.epoch.is_some_and(|epoch| epoch != self.epoch) {
            Some(Flaw::Void)
        } else {
            self.used_positions.covers(user, promise).then_some(Flaw::Used)
        }
    }

    /// The user's state; counts as activity.
    pub(crate) fn status(
        &mut self,
        user: UserId,
        now: Timestamp,
        limits: &Limits,
        steps: &mut Vec<Step>,
    ) -> UserState {
        let here = self.presence.here(now);
        if let Some(held) = self.active.get_mut(&user) {
            if held.ends(limits) <= here {
                self.take(Step::Gone { user, why: Why::Expired }, now, steps);
                return UserState::Absent;
            }
            held.seen = held.seen.max(here);
            return self.state(user, limits);
        }
        UserState::in_line(self.line.see(user, here))
    }

    /// Whether the user waits or has an active slot.
    pub(crate) fn has(&self, user: UserId, now: Timestamp, limits: &Limits) -> bool {
        let here = self.presence.here(now);
        let inside = self.active.get(&user).is_some_and(|held| held.ends(limits) > here);
        inside || self.line.order_of(user).is_some()
    }

    /// Whether no user waits or has a slot.
    pub(crate) fn is_empty(&self) -> bool {
        self.line.is_empty() && self.active.is_empty()
    }

    /// The user's state. Changes nothing.
    pub(crate) fn state(&self, user: UserId, limits: &Limits) -> UserState {
        if let Some(held) = self.active.get(&user) {
            return UserState::Active { slot: held.slot, ends: self.presence.outside(held.ends(limits)) };
        }
        UserState::in_line(self.line.place_of(user))
    }

    /// Removes a user. Returns `false` if they were not in the room.
    pub(crate) fn leave(&mut self, user: UserId, why: Why, now: Timestamp, steps: &mut Vec<Step>) -> bool {
        let here = self.active.contains_key(&user) || self.line.order_of(user).is_some();
        if here {
            self.take(Step::Gone { user, why }, now, steps);
        }
        here
    }

    /// Ends the slot of a user who bought at `at`. A slot given later, or a position in line, is
    /// kept.
    pub(crate) fn bought(
        &mut self,
        user: UserId,
        at: Timestamp,
        now: Timestamp,
        steps: &mut Vec<Step>,
    ) -> bool {
        let over = self.active.get(&user).is_some_and(|held| held.slot.since <= at);
        over && self.leave(user, Why::Bought, now, steps)
    }

    /// Ends expired slots, then admits up to `batch` users from the front. `slot` generates slot
    /// ids.
    pub(crate) fn admit(
        &mut self,
        batch: usize,
        now: Timestamp,
        limits: &Limits,
        mut slot: impl FnMut() -> Uuid,
        steps: &mut Vec<Step>,
    ) -> usize {
        let here = self.presence.here(now);
        let over = |(user, held): (&UserId, &Held)| (held.ends(limits) <= here).then_some(*user);
        let ended: Vec<UserId> = self.active.iter().filter_map(over).collect();
        for user in ended {
            self.take(Step::Gone { user, why: Why::Expired }, now, steps);
        }
        let mut admitted = 0;
        while admitted < batch && self.has_room() {
            let Some((order, user)) = self.line.first() else { break };
            self.take(Step::Admitted { user, order, slot: slot(), source: None }, now, steps);
            admitted += 1;
        }
        admitted
    }

    /// Removes those of the next `batch` waiting users whose idle timeout has passed.
    pub(crate) fn sweep(&mut self, batch: usize, now: Timestamp, limits: &Limits, steps: &mut Vec<Step>) {
        if self.swept >= self.line.len() {
            self.swept = 0;
        }
        let here = self.presence.here(now);
        let idle = self.line.idle(self.swept, batch, |ahead| here.before(limits.silence(ahead)));
        self.swept += batch - idle.len();
        for user in idle {
            self.take(Step::Gone { user, why: Why::Idle }, now, steps);
        }
    }

    /// Applies and records a step.
    pub(crate) fn take(&mut self, step: Step, now: Timestamp, steps: &mut Vec<Step>) {
        self.apply(step, now);
        steps.push(step);
    }

    /// Applies a step that was decided, now or before a restart.
    pub(crate) fn apply(&mut self, step: Step, now: Timestamp) {
        let here = self.presence.here(now);
        match step {
            Step::Joined { user, order, source } => {
                self.line.join(user, order, here);
                self.arrived += 1;
                self.note_place(order, source, now);
            }
            Step::Admitted { user, order, slot, source } => {
                // A user who was not in line has just arrived.
                self.arrived += u64::from(self.line.leave(user).is_none());
                self.admitted += 1;
                let slot = Slot { id: slot, order, since: now };
                self.active.insert(user, Held { slot, began: here, seen: here });
                self.note_place(order, source, now);
                self.admission_rate.note(now);
            }
            Step::Returned { user, order } => {
                self.active.remove(&user);
                self.line.join(user, order, here);
            }
            Step::Gone { user, why } => {
                if let Some(held) = self.active.remove(&user) {
                    self.used_positions.note(user, held.slot.turn(), now);
                }
                // Leaving gives up the position. A user who timed out may return to it with their
                // ticket.
                if let Some(order) = self.line.leave(user).filter(|_| why == Why::Left) {
                    self.used_positions.note(user, UsedPosition { order, at: now }, now);
                }
            }
            Step::Threshold { threshold } => self.threshold = threshold,
            Step::Paused => self.paused = true,
            Step::Resumed => self.paused = false,
            Step::Cleared { epoch } => {
                self.line.clear();
                for (user, held) in self.active.drain() {
                    self.used_positions.note(user, held.slot.turn(), now);
                }
                self.epoch = epoch;
            }
        }
    }

    /// Advances room time. Must be called before every decision.
    pub(crate) fn notice(&mut self, now: Timestamp, longest_gap: Duration) {
        self.presence.notice(now, longest_gap);
    }

    /// Excludes a period without any process from room time.
    pub(crate) fn was_away(&mut self, time: Duration, longest_gap: Duration) {
        self.presence.skip(time, longest_gap);
    }

    /// Restarts every idle timeout: users could not be active while no process was running.
    pub(crate) fn wake(&mut self, now: Timestamp) {
        let here = self.presence.here(now);
        self.line.see_all(here);
        for held in self.active.values_mut() {
            held.seen = here;
        }
    }

    pub(crate) fn totals(&self, now: Timestamp) -> Totals {
        Totals {
            waiting: self.line.len(),
            active: self.active.len(),
            threshold: self.threshold,
            paused: self.paused,
            epoch: self.epoch,
            per_second: self.admission_rate.per_second(now),
            arrived: self.arrived,
            admitted: self.admitted,
        }
    }

    /// Updates the highest order key given. One from a token counts only as far as it is not in the
    /// future by our clock.
    fn note_place(&mut self, order: OrderKey, source: Option<Source>, now: Timestamp) {
        let newest = if source == Some(Source::New) { order } else { order.min(OrderKey::at(now)) };
        self.last = self.last.max(newest);
    }

    fn has_room(&self) -> bool {
        !self.paused && u32::try_from(self.active.len()).is_ok_and(|active| active < self.threshold)
    }
}

#[cfg(test)]
mod tests;
