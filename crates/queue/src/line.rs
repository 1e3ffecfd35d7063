//! The waiting line of one event: ordered entries with ranks, and an index by user.
//!
//! 60 to 90 bytes per user: 32 for the entry, the rest for the index. A rank takes about a
//! microsecond with a million waiting, and a user can be inserted in between, which a plain counter
//! does not allow.

mod entries;

use std::collections::{HashMap, hash_map::Entry};

use urr_kernel::{OrderKey, Timestamp, UserId};

use self::entries::{LineEntries, LineEntry};

#[derive(Debug, Default)]
pub(crate) struct Line {
    entries: LineEntries,
    people: HashMap<UserId, OrderKey>,
}

impl Line {
    pub(crate) fn len(&self) -> usize {
        debug_assert_eq!(self.entries.len(), self.people.len(), "index and entries have the same length");
        self.people.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.people.is_empty()
    }

    /// Adds a user. Returns `false` if they are in line already; they keep their position.
    pub(crate) fn join(&mut self, user: UserId, order: OrderKey, now: Timestamp) -> bool {
        let Entry::Vacant(person) = self.people.entry(user) else { return false };
        person.insert(order);
        self.entries.insert(LineEntry { order, user, seen: now })
    }

    /// The order key of a waiting user.
    pub(crate) fn order_of(&self, user: UserId) -> Option<OrderKey> {
        self.people.get(&user).copied()
    }

    /// The order key of a waiting user, and the number of users ahead.
    pub(crate) fn place_of(&self, user: UserId) -> Option<(OrderKey, usize)> {
        let order = self.order_of(user)?;
        Some((order, self.entries.rank((order, user))))
    }

    /// Records activity of a waiting user. Returns their order key and the number of users ahead.
    pub(crate) fn see(&mut self, user: UserId, now: Timestamp) -> Option<(OrderKey, usize)> {
        let order = self.order_of(user)?;
        Some((order, self.entries.see((order, user), now).expect("an indexed user has an entry")))
    }

    /// Records activity for all users: none could be active before the restart.
    pub(crate) fn see_all(&mut self, now: Timestamp) {
        self.entries.see_all(now);
    }

    /// Removes a user.
    pub(crate) fn leave(&mut self, user: UserId) -> Option<OrderKey> {
        let order = self.people.remove(&user)?;
        let had_place = self.entries.remove((order, user));
        debug_assert!(had_place, "an indexed user has an entry");
        Some(order)
    }

    /// The user at the front.
    pub(crate) fn first(&self) -> Option<(OrderKey, UserId)> {
        self.entries.first().map(|entry| entry.key())
    }

    /// Of the `limit` users from rank `from` on, those without activity since their `deadline`,
    /// which depends on the rank.
    pub(crate) fn idle(
        &self,
        from: usize,
        limit: usize,
        deadline: impl Fn(usize) -> Timestamp,
    ) -> Vec<UserId> {
        let some = (from..).zip(self.entries.from(from).take(limit));
        some.filter(|(ahead, entry)| entry.seen <= deadline(*ahead)).map(|(_, entry)| entry.user).collect()
    }

    /// Removes all users. Returns their number.
    pub(crate) fn clear(&mut self) -> usize {
        let waited = self.len();
        *self = Self::default();
        waited
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn user(number: u8) -> UserId {
        UserId::from_uuid(Uuid::from_u128(u128::from(number)))
    }

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn a_returning_user_gets_their_old_rank() {
        let mut line = Line::default();
        for (number, order) in [(1, 10), (2, 20), (3, 30)] {
            assert!(line.join(user(number), OrderKey::new(order).unwrap(), at(0)));
        }
        assert_eq!(line.leave(user(2)), OrderKey::new(20));
        assert_eq!(line.place_of(user(3)), Some((OrderKey::new(30).unwrap(), 1)));
        assert!(line.join(user(2), OrderKey::new(20).unwrap(), at(1)));
        let ahead_of = |line: &Line, number| line.place_of(user(number)).map(|(_, ahead)| ahead);
        assert_eq!([1, 2, 3].map(|number| ahead_of(&line, number)), [Some(0), Some(1), Some(2)]);
        assert!(!line.join(user(2), OrderKey::new(1).unwrap(), at(2)), "a duplicate is refused");
        assert_eq!(ahead_of(&line, 2), Some(1), "the first position is kept");
    }

    #[test]
    fn idle_users_are_found_in_batches() {
        let mut line = Line::default();
        for number in 0..10 {
            line.join(user(number), OrderKey::new(u64::from(number)).unwrap(), at(i64::from(number)));
        }
        line.see(user(1), at(100));
        assert_eq!(line.idle(0, 4, |_| at(5)), [user(0), user(2), user(3)]);
        assert_eq!(line.idle(4, 100, |_| at(5)), [user(4), user(5)]);
        assert_eq!(line.idle(100, 4, |_| at(5)), []);
        let stricter_behind = |ahead: usize| at(if ahead < 8 { 0 } else { 9 });
        assert_eq!(line.idle(2, 100, stricter_behind), [user(8), user(9)]);
    }

    proptest! {
        /// The line agrees with a sorted map.
        #[test]
        fn ranks_are_those_of_a_sorted_list(steps in prop::collection::vec((0_u8..4, 0_u8..40, 0_u64..60), 1..400)) {
            let mut line = Line::default();
            let mut model: BTreeMap<UserId, OrderKey> = BTreeMap::new();
            for (what, who, order) in steps {
                let (who, order) = (user(who), OrderKey::new(order).unwrap());
                match what {
                    0 | 1 => {
                        prop_assert_eq!(line.join(who, order, at(0)), !model.contains_key(&who));
                        model.entry(who).or_insert(order);
                    }
                    2 => prop_assert_eq!(line.leave(who), model.remove(&who)),
                    _ => {
                        let first = model.iter().map(|(user, order)| (*order, *user)).min();
                        prop_assert_eq!(line.first(), first);
                        if let Some((_, user)) = first {
                            line.leave(user);
                            model.remove(&user);
                        }
                    }
                }
                prop_assert_eq!(line.len(), model.len());
                for (user, order) in &model {
                    let ahead = model.iter().filter(|(other, key)| (**key, **other) < (*order, *user)).count();
                    prop_assert_eq!(line.place_of(*user), Some((*order, ahead)));
                }
            }
        }
    }
}
