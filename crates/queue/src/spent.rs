//! Places that were used or given up. A place is good for one slot, and leaving the line gives it up: a ticket or pass that
//! tells of it again promises nothing.

use std::{collections::HashMap, mem, time::Duration};

use urr_kernel::{OrderKey, Timestamp, UserId};

use crate::promise::Promise;

/// Longer than any token can tell of a place whose slot has ended: a day for a ticket, ten minutes for the pass it becomes.
pub(crate) const KEPT: Duration = Duration::from_hours(25);

/// How exactly a pass tells when its wait began.
const PASS_PRECISION: Duration = Duration::from_secs(1);

/// A slot that a user had, or a place in line that they left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The place.
    pub(crate) order: OrderKey,
    /// When the slot was given, or when the user left the line.
    pub(crate) at: Timestamp,
}

/// The turns of one user: the last one, and the furthest place of all, for which any other is further ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turns {
    pub(crate) last: Turn,
    pub(crate) furthest: OrderKey,
}

impl Turns {
    /// After one more.
    pub(crate) fn and(earlier: Option<Self>, last: Turn) -> Self {
        let furthest = earlier.map_or(last.order, |earlier| earlier.furthest.max(last.order));
        Self { last, furthest }
    }

    /// After leaving the line at `at` with a place that is not known: every place promised until then is given up.
    pub(crate) fn and_left(earlier: Option<Self>, at: Timestamp) -> Self {
        let last = Turn { order: OrderKey::at(at), at };
        Self { last, furthest: earlier.map_or(last.order, |earlier| earlier.furthest) }
    }

    /// Whether whoever had them has had what a token promises: this very place; or, with a ticket, any that they were given before. People
    /// could else join and leave, and keep a ticket for every time. A pass for a place further back is another wait in Tier 1; one for a
    /// place further ahead is, too, if it began later, for the clocks of both tiers may differ.
    pub(crate) fn cover(&self, promise: &Promise) -> bool {
        let (last, is_ticket) = (self.last, promise.epoch.is_some());
        // A pass tells whole seconds: the wait may have begun up to one later, after the user left.
        let since = if is_ticket { promise.since } else { promise.since.after(PASS_PRECISION) };
        promise.order == last.order
            || promise.order == self.furthest
            || since <= last.at && (is_ticket || promise.order < last.order)
    }
}

/// The turns of each user, for [`KEPT`] and at most as long again: some 70 bytes per user who was in or left the line.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    recent: HashMap<UserId, Turns>,
    before: HashMap<UserId, Turns>,
    /// Since when the recent ones are noted.
    since: Option<Timestamp>,
}

impl Spent {
    /// A slot has ended, or a user has left the line.
    pub(crate) fn note(&mut self, user: UserId, turn: Turn, now: Timestamp) {
        if self.since.is_none_or(|since| since.after(KEPT) <= now) {
            self.before = mem::take(&mut self.recent);
            self.since = Some(now);
        }
        let earlier = self.recent.get(&user).copied();
        self.recent.insert(user, Turns::and(earlier, turn));
    }

    /// Whether a user has had what a token promises.
    pub(crate) fn covers(&self, user: UserId, promise: &Promise) -> bool {
        [&self.recent, &self.before]
            .into_iter()
            .any(|kept| kept.get(&user).is_some_and(|turns| turns.cover(promise)))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn place(number: u64) -> OrderKey {
        OrderKey::new(number).unwrap()
    }

    #[test]
    fn one_turn_is_had_with_the_place_and_with_every_ticket_from_before() {
        let [before, at, after] = [1, 2, 3].map(|second| Timestamp::from_micros(second * 1_000_000));
        let earlier = Turn { order: place(40), at: before };
        let turns = Turns::and(Some(Turns::and(None, earlier)), Turn { order: place(20), at });
        let cases = [
            (10, Some(1), before, true, "an earlier place, which they had left"),
            (30, Some(1), before, true, "a later one"),
            (30, Some(1), after, false, "one that they were given since"),
            (10, Some(1), after, false, "also by a wait in Tier 1 with another clock"),
            (20, Some(1), after, true, "the same, whatever the clock says"),
            (10, None, before, true, "a turn in Tier 1 that they did not take"),
            (10, None, at, false, "one that began in the second in which they left"),
            (20, None, after, true, "the same"),
            (10, None, after, false, "another wait"),
            (30, None, before, false, "another wait"),
            (40, None, before, true, "one that they used before that"),
        ];
        for (order, epoch, since, covered, what) in cases {
            assert_eq!(turns.cover(&Promise { order: place(order), epoch, since }), covered, "{what}");
        }
    }

    #[test]
    fn a_turn_is_remembered_for_longer_than_a_token_and_not_for_ever() {
        let user = UserId::from_uuid(Uuid::from_u128(1));
        let somebody = UserId::from_uuid(Uuid::from_u128(2));
        let start = Timestamp::from_micros(1);
        let turn = |number| Turn { order: place(number), at: start };
        let promise = Promise { order: place(20), epoch: Some(1), since: start };
        let mut spent = Spent::default();
        spent.note(user, turn(20), start);
        assert!(spent.covers(user, &promise) && !spent.covers(somebody, &promise));
        spent.note(somebody, turn(1), start.after(KEPT));
        assert!(spent.covers(user, &promise), "noted up to now");
        spent.note(somebody, turn(2), start.after(2 * KEPT));
        assert!(!spent.covers(user, &promise));
    }
}
