//! Positions in order, with the number of users ahead of each.
//!
//! Chunks of up to [`MOST`] entries. Newcomers go to the end of the last chunk, so chunks are full
//! and memory overhead is low. A returning user is inserted in between, and a full chunk is split.
//! A million entries are a thousand chunks. A lookup reads compact arrays: first keys and lengths
//! of all chunks (about 20 KiB, which stays in the CPU cache), then the order keys of one chunk.

use urr_kernel::{OrderKey, Timestamp, UserId};

/// Entries per chunk. An insertion or removal moves half of them on average, 16 KiB.
const MOST: usize = 1_024;

/// One waiting user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineEntry {
    pub(super) order: OrderKey,
    pub(super) user: UserId,
    /// Last activity.
    pub(super) seen: Timestamp,
}

/// Sort key. Two users may join in the same microsecond.
pub(super) type Key = (OrderKey, UserId);

impl LineEntry {
    pub(super) fn key(&self) -> Key {
        (self.order, self.user)
    }
}

/// A sorted, non-empty run of entries.
#[derive(Debug, Default)]
struct Piece {
    orders: Vec<OrderKey>,
    people: Vec<Person>,
}

/// The user of an entry, and their last activity.
#[derive(Clone, Copy, Debug)]
struct Person {
    user: UserId,
    seen: Timestamp,
}

impl Piece {
    fn of(entry: LineEntry) -> Self {
        let mut piece = Self::default();
        piece.insert(0, entry);
        piece
    }

    /// Index of the key, or where it would be inserted.
    fn find(&self, (order, user): Key) -> Result<usize, usize> {
        let mut at = self.orders.partition_point(|other| *other < order);
        // Few entries share an order key, if any.
        while self.orders.get(at) == Some(&order) && self.people[at].user < user {
            at += 1;
        }
        let is_there = self.orders.get(at) == Some(&order) && self.people[at].user == user;
        if is_there { Ok(at) } else { Err(at) }
    }

    fn get(&self, at: usize) -> LineEntry {
        let Person { user, seen } = self.people[at];
        LineEntry { order: self.orders[at], user, seen }
    }

    fn insert(&mut self, at: usize, LineEntry { order, user, seen }: LineEntry) {
        self.orders.insert(at, order);
        self.people.insert(at, Person { user, seen });
    }

    fn remove(&mut self, at: usize) {
        self.orders.remove(at);
        self.people.remove(at);
    }

    fn split_off(&mut self, at: usize) -> Self {
        Self { orders: self.orders.split_off(at), people: self.people.split_off(at) }
    }

    fn len(&self) -> usize {
        self.orders.len()
    }
}

/// All entries. The three vectors have an element per chunk.
#[derive(Debug, Default)]
pub(super) struct LineEntries {
    /// The first order key of each chunk.
    begins: Vec<OrderKey>,
    lens: Vec<usize>,
    pieces: Vec<Piece>,
    len: usize,
}

impl LineEntries {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn first(&self) -> Option<LineEntry> {
        self.pieces.first().map(|piece| piece.get(0))
    }

    /// The chunk of the key and the index in it, or where it would be inserted.
    fn find(&self, key: Key) -> (usize, Result<usize, usize>) {
        let behind = self.begins.partition_point(|begins| *begins <= key.0);
        let mut piece = behind.saturating_sub(1);
        // Entries with the same order key may span two chunks.
        while piece > 0 && self.begins[piece] == key.0 && self.pieces[piece].get(0).key() > key {
            piece -= 1;
        }
        (piece, self.pieces.get(piece).map_or(Err(0), |piece| piece.find(key)))
    }

    /// Inserts an entry. Returns `false` if it is there.
    pub(super) fn insert(&mut self, entry: LineEntry) -> bool {
        let (mut piece, Err(mut at)) = self.find(entry.key()) else { return false };
        self.len += 1;
        let Some(found) = self.pieces.get_mut(piece) else {
            self.put(0, Piece::of(entry));
            return true;
        };
        if found.len() == MOST {
            // Appending starts a new chunk, so that this one stays full.
            if at == MOST {
                self.put(piece + 1, Piece::of(entry));
                return true;
            }
            let rest = found.split_off(MOST / 2);
            self.put(piece + 1, rest);
            self.note(piece);
            if at >= MOST / 2 {
                (piece, at) = (piece + 1, at - MOST / 2);
            }
        }
        self.pieces[piece].insert(at, entry);
        self.note(piece);
        true
    }

    /// Removes an entry. Returns `false` if it is not there.
    pub(super) fn remove(&mut self, key: Key) -> bool {
        let (piece, Ok(at)) = self.find(key) else { return false };
        self.len -= 1;
        self.pieces[piece].remove(at);
        if self.pieces[piece].len() > 0 {
            self.note(piece);
        } else {
            self.begins.remove(piece);
            self.lens.remove(piece);
            self.pieces.remove(piece);
        }
        true
    }

    /// Inserts a chunk.
    fn put(&mut self, at: usize, piece: Piece) {
        self.begins.insert(at, piece.orders[0]);
        self.lens.insert(at, piece.len());
        self.pieces.insert(at, piece);
    }

    /// Updates length and first key after a chunk has changed.
    fn note(&mut self, piece: usize) {
        self.begins[piece] = self.pieces[piece].orders[0];
        self.lens[piece] = self.pieces[piece].len();
    }

    /// Records activity and returns the number of users ahead. `None` if the entry is not there.
    pub(super) fn see(&mut self, key: Key, now: Timestamp) -> Option<usize> {
        let (piece, Ok(at)) = self.find(key) else { return None };
        let person = &mut self.pieces[piece].people[at];
        person.seen = person.seen.max(now);
        Some(self.before(piece) + at)
    }

    /// The number of entries ahead.
    pub(super) fn rank(&self, key: Key) -> usize {
        let (piece, Ok(at) | Err(at)) = self.find(key);
        self.before(piece) + at
    }

    /// The number of entries in the chunks before one, counted from the nearer end.
    fn before(&self, piece: usize) -> usize {
        let (before, behind) = self.lens.split_at(piece);
        if before.len() <= behind.len() {
            before.iter().sum()
        } else {
            self.len - behind.iter().sum::<usize>()
        }
    }

    /// All entries from the given rank on.
    pub(super) fn from(&self, from: usize) -> impl Iterator<Item = LineEntry> {
        let (mut piece, mut ahead) = (0, 0);
        while let Some(passed) = self.lens.get(piece).filter(|len| ahead + **len <= from) {
            (piece, ahead) = (piece + 1, ahead + passed);
        }
        let entries = |piece| (0..Piece::len(piece)).map(|at| piece.get(at));
        self.pieces.iter().skip(piece).flat_map(entries).skip(from - ahead)
    }

    /// Records activity for all entries.
    pub(super) fn see_all(&mut self, now: Timestamp) {
        for person in self.pieces.iter_mut().flat_map(|piece| &mut piece.people) {
            person.seen = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use uuid::Uuid;

    use super::*;

    fn key(number: u64) -> Key {
        (OrderKey::new(number).unwrap(), UserId::from_uuid(Uuid::from_u128(u128::from(number))))
    }

    fn entry(number: u64) -> LineEntry {
        let (order, user) = key(number);
        LineEntry { order, user, seen: Timestamp::from_micros(0) }
    }

    #[test]
    fn appending_fills_every_chunk() {
        let mut entries = LineEntries::default();
        assert!((0..10_000).all(|number| entries.insert(entry(number))));
        assert!(!entries.insert(entry(5_000)), "a duplicate is refused");
        let orders: usize = entries.pieces.iter().map(|piece| piece.orders.capacity()).sum();
        let people: usize = entries.pieces.iter().map(|piece| piece.people.capacity()).sum();
        assert_eq!((entries.len(), entries.pieces.len(), orders, people), (10_000, 10, 10 * MOST, 10 * MOST));
    }

    #[test]
    fn random_inserts_and_removals_keep_the_order() {
        let (mut entries, mut model, mut number) = (LineEntries::default(), BTreeSet::new(), 1_u64);
        for step in 0..60_000 {
            // Visits every number below a prime once in pseudo-random order, and then some of them
            // again.
            number = number * 48_271 % 65_537;
            if step % 3 == 2 {
                assert_eq!(entries.remove(key(number / 2)), model.remove(&(number / 2)));
            } else {
                assert_eq!(entries.insert(entry(number)), model.insert(number));
            }
        }
        assert_eq!(entries.len(), model.len());
        assert!(entries.pieces.len() > 10);
        for (at, piece) in entries.pieces.iter().enumerate() {
            assert!((1..=MOST).contains(&piece.len()) && piece.people.len() == piece.len());
            assert_eq!((entries.begins[at], entries.lens[at]), (piece.orders[0], piece.len()));
        }
        for (ahead, number) in model.iter().enumerate() {
            assert_eq!(entries.rank(key(*number)), ahead);
            assert_eq!(entries.see(key(*number), Timestamp::from_micros(0)), Some(ahead));
        }
        for from in [0, 1, MOST, 10_000, model.len() - 1, model.len(), model.len() + 1] {
            let rest = entries.from(from).map(|entry| entry.order.as_u64());
            assert!(rest.eq(model.iter().copied().skip(from)), "from {from}");
        }
        for number in &model {
            assert_eq!(entries.first(), Some(entry(*number)));
            assert_eq!(entries.rank(key(*number)), 0);
            assert!(entries.remove(key(*number)));
        }
        assert_eq!((entries.len(), entries.pieces.len(), entries.first()), (0, 0, None));
    }

    #[test]
    fn equal_order_keys_are_sorted_by_user_across_chunks() {
        let together = |number: u64| {
            let user = UserId::from_uuid(Uuid::from_u128(u128::from(number)));
            LineEntry { order: OrderKey::new(7).unwrap(), user, seen: Timestamp::from_micros(0) }
        };
        let mut entries = LineEntries::default();
        // More than two chunks, inserted from both ends to the middle.
        let many = 3 * MOST as u64;
        for number in 0..many / 2 {
            assert!(entries.insert(together(number)) && entries.insert(together(many - 1 - number)));
        }
        assert!(entries.pieces.len() > 2);
        for number in 0..many {
            assert_eq!(entries.rank(together(number).key()), usize::try_from(number).unwrap());
            assert!(!entries.insert(together(number)), "a duplicate is refused");
        }
        assert!((0..many).rev().all(|number| entries.remove(together(number).key())));
        assert_eq!(entries.len(), 0);
    }
}
