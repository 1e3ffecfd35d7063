//! Places in order, and how many are ahead of each.
//!
//! Pieces of up to [`MOST`] places, one behind the other. Whoever comes goes to the end of the last piece, so pieces are full, and a
//! place costs little more than it holds; whoever comes back goes between two others, and a full piece is halved for them. A million
//! places are a thousand pieces, whose lengths are added up in less than a microsecond.

use urr_kernel::{OrderKey, Timestamp, UserId};

/// Places in a piece. Taking one out or putting one in moves half of them on average, 16 KiB.
const MOST: usize = 1_024;

/// One person in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) order: OrderKey,
    pub(super) user: UserId,
    /// The last sign of life.
    pub(super) seen: Timestamp,
}

/// Where somebody stands. Two may have come in the same microsecond.
pub(super) type Key = (OrderKey, UserId);

impl Place {
    pub(super) fn key(&self) -> Key {
        (self.order, self.user)
    }
}

/// Everybody's place. No piece is empty.
#[derive(Debug, Default)]
pub(super) struct Places {
    pieces: Vec<Vec<Place>>,
    len: usize,
}

impl Places {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn first(&self) -> Option<&Place> {
        self.pieces.first()?.first()
    }

    /// The piece that a place is in, or belongs in, and where in it.
    fn find(&self, key: Key) -> (usize, Result<usize, usize>) {
        let behind = self.pieces.partition_point(|piece| piece[0].key() <= key);
        let piece = behind.saturating_sub(1);
        let at = self.pieces.get(piece).map_or(Err(0), |piece| piece.binary_search_by_key(&key, Place::key));
        (piece, at)
    }

    /// Puts somebody where they belong. `false`: there they are.
    pub(super) fn insert(&mut self, place: Place) -> bool {
        let (mut piece, Err(mut at)) = self.find(place.key()) else { return false };
        if self.pieces.is_empty() {
            self.pieces.push(Vec::new());
        } else if self.pieces[piece].len() == MOST {
            // Behind everybody in it a new piece begins, and this one stays full.
            let kept = if at == MOST { MOST } else { MOST / 2 };
            let rest = self.pieces[piece].split_off(kept);
            self.pieces.insert(piece + 1, rest);
            if at >= kept {
                (piece, at) = (piece + 1, at - kept);
            }
        }
        self.pieces[piece].insert(at, place);
        self.len += 1;
        true
    }

    /// Takes somebody out. `false`: they were not there.
    pub(super) fn remove(&mut self, key: Key) -> bool {
        let (piece, Ok(at)) = self.find(key) else { return false };
        self.pieces[piece].remove(at);
        if self.pieces[piece].is_empty() {
            self.pieces.remove(piece);
        }
        self.len -= 1;
        true
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Place> {
        let (piece, Ok(at)) = self.find(key) else { return None };
        Some(&mut self.pieces[piece][at])
    }

    /// How many are ahead of somebody, or would be.
    pub(super) fn rank(&self, key: Key) -> usize {
        let (piece, Ok(at) | Err(at)) = self.find(key);
        self.pieces.iter().take(piece).map(Vec::len).sum::<usize>() + at
    }

    /// Everybody from the `from`th place on, in order.
    pub(super) fn from(&self, from: usize) -> impl Iterator<Item = &Place> {
        let (mut piece, mut ahead) = (0, 0);
        while let Some(passed) = self.pieces.get(piece).map(Vec::len).filter(|len| ahead + len <= from) {
            (piece, ahead) = (piece + 1, ahead + passed);
        }
        self.pieces.iter().skip(piece).flatten().skip(from - ahead)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Place> {
        self.pieces.iter_mut().flatten()
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

    fn place(number: u64) -> Place {
        let (order, user) = key(number);
        Place { order, user, seen: Timestamp::from_micros(0) }
    }

    #[test]
    fn a_line_in_which_nobody_came_back_is_packed() {
        let mut places = Places::default();
        assert!((0..10_000).all(|number| places.insert(place(number))));
        assert!(!places.insert(place(5_000)), "one place each");
        let room: usize = places.pieces.iter().map(Vec::capacity).sum();
        assert_eq!((places.len(), places.pieces.len(), room), (10_000, 10, 10 * MOST));
    }

    #[test]
    fn whoever_comes_and_goes_in_no_order_stands_where_they_should() {
        let (mut places, mut model, mut number) = (Places::default(), BTreeSet::new(), 1_u64);
        for step in 0..60_000 {
            // All numbers below a prime, each once in its own time, and then some of them again.
            number = number * 48_271 % 65_537;
            if step % 3 == 2 {
                assert_eq!(places.remove(key(number / 2)), model.remove(&(number / 2)));
            } else {
                assert_eq!(places.insert(place(number)), model.insert(number));
            }
        }
        assert_eq!(places.len(), model.len());
        assert!(
            places.pieces.len() > 10 && places.pieces.iter().all(|piece| (1..=MOST).contains(&piece.len()))
        );
        for (ahead, number) in model.iter().enumerate() {
            assert_eq!(places.rank(key(*number)), ahead);
        }
        for from in [0, 1, MOST, 10_000, model.len() - 1, model.len(), model.len() + 1] {
            let rest = places.from(from).map(|place| place.order.as_u64());
            assert!(rest.eq(model.iter().copied().skip(from)), "from {from}");
        }
        for number in &model {
            assert_eq!(places.first(), Some(&place(*number)));
            assert!(places.get_mut(key(*number)).is_some() && places.remove(key(*number)));
        }
        assert_eq!((places.len(), places.pieces.len(), places.first()), (0, 0, None));
    }
}
