//! Positions that were used or given up. A position is good for one slot, and leaving the line
//! gives it up. Tickets and passes that name it afterwards promise nothing.

use std::{collections::HashMap, mem, time::Duration};

use urr_kernel::{OrderKey, Timestamp, UserId};

use crate::token_position::TokenPosition;

/// Longer than any token can name a position whose slot has ended: a day for a ticket, and ten
/// minutes for the pass it becomes.
pub(crate) const KEPT: Duration = Duration::from_hours(25);

/// Precision of the time in a pass.
const PASS_PRECISION: Duration = Duration::from_secs(1);

/// A slot that a user had, or a position that they gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UsedPosition {
    /// The order key.
    pub(crate) order: OrderKey,
    /// When the slot was given, or when the user left.
    pub(crate) at: Timestamp,
}

/// A user's turns: the last one, and the highest order key of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserHistory {
    pub(crate) last: UsedPosition,
    pub(crate) furthest: OrderKey,
}

impl UserHistory {
    /// Adds a turn.
    pub(crate) fn and(earlier: Option<Self>, last: UsedPosition) -> Self {
        let furthest = earlier.map_or(last.order, |earlier| earlier.furthest.max(last.order));
        Self { last, furthest }
    }

    /// Adds a departure at `at` from a position that is not known: every promise made until then is
    /// used up.
    pub(crate) fn and_left(earlier: Option<Self>, at: Timestamp) -> Self {
        let last = UsedPosition { order: OrderKey::at(at), at };
        Self { last, furthest: earlier.map_or(last.order, |earlier| earlier.furthest) }
    }

    /// Whether these turns use up a promise.
    ///
    /// A ticket is used up by its own position and by every turn after it was issued; else users
    /// could join and leave repeatedly and collect tickets. A pass for a position further back is
    /// another wait in Tier 1. A pass for one further ahead is too, if that wait began later: the
    /// clocks of both tiers may differ.
    pub(crate) fn cover(&self, promise: &TokenPosition) -> bool {
        let (last, is_ticket) = (self.last, promise.epoch.is_some());
        // A pass has whole seconds: the wait may have begun up to one second later, after the user
        // left.
        let since = if is_ticket { promise.since } else { promise.since.after(PASS_PRECISION) };
        promise.order == last.order
            || promise.order == self.furthest
            || since <= last.at && (is_ticket || promise.order < last.order)
    }
}

/// The turns of each user, for between one and two times [`KEPT`]. About 70 bytes per user.
#[derive(Debug, Default)]
pub(crate) struct UsedPositions {
    recent: HashMap<UserId, UserHistory>,
    before: HashMap<UserId, UserHistory>,
    /// Since when `recent` has been filled.
    since: Option<Timestamp>,
}

impl UsedPositions {
    /// Records the end of a slot or a departure from the line.
    pub(crate) fn note(&mut self, user: UserId, turn: UsedPosition, now: Timestamp) {
        if self.since.is_none_or(|since| since.after(KEPT) <= now) {
            self.before = mem::take(&mut self.recent);
            self.since = Some(now);
        }
        let earlier = self.recent.get(&user).copied();
        self.recent.insert(user, UserHistory::and(earlier, turn));
    }

    /// Whether the user's turns use up a promise.
    pub(crate) fn covers(&self, user: UserId, promise: &TokenPosition) -> bool {
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
    fn a_turn_covers_its_position_and_earlier_tickets() {
        let [before, at, after] = [1, 2, 3].map(|second| Timestamp::from_micros(second * 1_000_000));
        let earlier = UsedPosition { order: place(40), at: before };
        let turns =
            UserHistory::and(Some(UserHistory::and(None, earlier)), UsedPosition { order: place(20), at });
        let cases = [
            (10, Some(1), before, true, "an earlier position, which they had left"),
            (30, Some(1), before, true, "a later position"),
            (30, Some(1), after, false, "a position given since"),
            (10, Some(1), after, false, "also one from Tier 1, whose clock differs"),
            (20, Some(1), after, true, "the same position, whatever the time"),
            (10, None, before, true, "an unused turn in Tier 1"),
            (10, None, at, false, "a wait that began in the second in which they left"),
            (20, None, after, true, "the same position"),
            (10, None, after, false, "a later wait"),
            (30, None, before, false, "a wait further back"),
            (40, None, before, true, "a position used before that"),
        ];
        for (order, epoch, since, covered, what) in cases {
            assert_eq!(turns.cover(&TokenPosition { order: place(order), epoch, since }), covered, "{what}");
        }
    }

    #[test]
    fn turns_are_kept_longer_than_tokens_and_then_dropped() {
        let user = UserId::from_uuid(Uuid::from_u128(1));
        let somebody = UserId::from_uuid(Uuid::from_u128(2));
        let start = Timestamp::from_micros(1);
        let turn = |number| UsedPosition { order: place(number), at: start };
        let promise = TokenPosition { order: place(20), epoch: Some(1), since: start };
        let mut used_positions = UsedPositions::default();
        used_positions.note(user, turn(20), start);
        assert!(used_positions.covers(user, &promise) && !used_positions.covers(somebody, &promise));
        used_positions.note(somebody, turn(1), start.after(KEPT));
        assert!(used_positions.covers(user, &promise), "kept for at least one period");
        used_positions.note(somebody, turn(2), start.after(2 * KEPT));
        assert!(!used_positions.covers(user, &promise));
    }
}
