//! Places that were used. Each is good for one slot: a ticket or pass that tells of it again promises nothing.

use std::{collections::HashMap, mem, time::Duration};

use urr_kernel::{OrderKey, Timestamp, UserId};

/// Longer than any token can tell of a place whose slot has ended: a day for a ticket, ten minutes for the pass it becomes.
pub(crate) const KEPT: Duration = Duration::from_hours(25);

/// The last place each user used, for [`KEPT`] and at most as long again: some 50 bytes for everybody who was in.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    recent: HashMap<UserId, OrderKey>,
    before: HashMap<UserId, OrderKey>,
    /// Since when the recent ones are noted.
    since: Option<Timestamp>,
}

impl Spent {
    /// A slot that was given for this place has ended.
    pub(crate) fn note(&mut self, user: UserId, order: OrderKey, now: Timestamp) {
        if self.since.is_none_or(|since| since.after(KEPT) <= now) {
            self.before = mem::take(&mut self.recent);
            self.since = Some(now);
        }
        let last = self.recent.entry(user).or_insert(order);
        *last = order.max(*last);
    }

    /// Whether a user has used this place, or one behind it.
    pub(crate) fn covers(&self, user: UserId, order: OrderKey) -> bool {
        let in_it = |kept: &HashMap<UserId, OrderKey>| kept.get(&user).is_some_and(|last| order <= *last);
        in_it(&self.recent) || in_it(&self.before)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_used_place_is_remembered_for_longer_than_a_token_and_not_for_ever() {
        let user = UserId::from_uuid(Uuid::from_u128(1));
        let somebody = UserId::from_uuid(Uuid::from_u128(2));
        let (start, place) = (Timestamp::from_micros(1), |number| OrderKey::new(number).unwrap());
        let mut spent = Spent::default();
        spent.note(user, place(20), start);
        spent.note(user, place(10), start);
        assert!(spent.covers(user, place(10)) && spent.covers(user, place(20)));
        assert!(!spent.covers(user, place(21)), "a later wait is another one");
        assert!(!spent.covers(somebody, place(1)));
        spent.note(somebody, place(1), start.after(KEPT));
        assert!(spent.covers(user, place(20)), "noted up to now");
        spent.note(somebody, place(2), start.after(2 * KEPT));
        assert!(!spent.covers(user, place(20)));
    }
}
