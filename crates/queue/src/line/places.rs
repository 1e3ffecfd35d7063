//! Places in order, and how many are ahead of each.
//!
//! Pieces of up to [`MOST`] places, one behind the other. Whoever comes goes to the end of the last piece, so pieces are full, and a
//! place costs little more than it holds; whoever comes back goes between two others, and a full piece is halved for them. A million
//! places are a thousand pieces, whose lengths are added up in less than a microsecond. Where a piece begins is kept beside it: a look
//! for somebody reads that list and one piece, and not a thousand pieces that no cache holds.

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

/// Places that stand one behind the other. Never empty.
#[derive(Debug)]
struct Piece {
    /// Of the first of them.
    begins: Key,
    places: Vec<Place>,
}

impl Piece {
    fn of(places: Vec<Place>) -> Self {
        Self { begins: places[0].key(), places }
    }
}

/// Everybody's place.
#[derive(Debug, Default)]
pub(super) struct Places {
    pieces: Vec<Piece>,
    len: usize,
}

impl Places {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn first(&self) -> Option<&Place> {
        self.pieces.first()?.places.first()
    }

    /// The piece that a place is in, or belongs in, and where in it.
    fn find(&self, key: Key) -> (usize, Result<usize, usize>) {
        let behind = self.pieces.partition_point(|piece| piece.begins <= key);
        let piece = behind.saturating_sub(1);
        let within = |piece: &Piece| piece.places.binary_search_by_key(&key, Place::key);
        (piece, self.pieces.get(piece).map_or(Err(0), within))
    }

    /// Puts somebody where they belong. `false`: there they are.
    pub(super) fn insert(&mut self, place: Place) -> bool {
        let (mut piece, Err(mut at)) = self.find(place.key()) else { return false };
        self.len += 1;
        let Some(found) = self.pieces.get_mut(piece) else {
            self.pieces.push(Piece::of(vec![place]));
            return true;
        };
        if found.places.len() == MOST {
            // Behind everybody in it a new piece begins, and this one stays full.
            if at == MOST {
                self.pieces.insert(piece + 1, Piece::of(vec![place]));
                return true;
            }
            let rest = found.places.split_off(MOST / 2);
            self.pieces.insert(piece + 1, Piece::of(rest));
            if at >= MOST / 2 {
                (piece, at) = (piece + 1, at - MOST / 2);
            }
        }
        let piece = &mut self.pieces[piece];
        piece.places.insert(at, place);
        piece.begins = piece.begins.min(place.key());
        true
    }

    /// Takes somebody out. `false`: they were not there.
    pub(super) fn remove(&mut self, key: Key) -> bool {
        let (piece, Ok(at)) = self.find(key) else { return false };
        self.len -= 1;
        let found = &mut self.pieces[piece];
        found.places.remove(at);
        match found.places.first() {
            Some(first) => found.begins = first.key(),
            None => drop(self.pieces.remove(piece)),
        }
        true
    }

    /// Somebody's place, and how many are ahead of it.
    pub(super) fn get_mut(&mut self, key: Key) -> Option<(&mut Place, usize)> {
        let (piece, Ok(at)) = self.find(key) else { return None };
        let ahead = self.before(piece) + at;
        Some((&mut self.pieces[piece].places[at], ahead))
    }

    /// How many are ahead of somebody, or would be.
    pub(super) fn rank(&self, key: Key) -> usize {
        let (piece, Ok(at) | Err(at)) = self.find(key);
        self.before(piece) + at
    }

    /// How many stand before a piece, counted from the end that is nearer.
    fn before(&self, piece: usize) -> usize {
        let sum = |pieces: &[Piece]| pieces.iter().map(|piece| piece.places.len()).sum::<usize>();
        let (before, behind) = self.pieces.split_at(piece);
        if before.len() <= behind.len() { sum(before) } else { self.len - sum(behind) }
    }

    /// Everybody from the `from`th place on, in order.
    pub(super) fn from(&self, from: usize) -> impl Iterator<Item = &Place> {
        let (mut piece, mut ahead) = (0, 0);
        let long = |piece: usize| self.pieces.get(piece).map(|piece| piece.places.len());
        while let Some(passed) = long(piece).filter(|len| ahead + len <= from) {
            (piece, ahead) = (piece + 1, ahead + passed);
        }
        self.pieces.iter().skip(piece).flat_map(|piece| &piece.places).skip(from - ahead)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Place> {
        self.pieces.iter_mut().flat_map(|piece| &mut piece.places)
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
        let room: usize = places.pieces.iter().map(|piece| piece.places.capacity()).sum();
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
        assert!(places.pieces.len() > 10);
        for piece in &places.pieces {
            assert!((1..=MOST).contains(&piece.places.len()) && piece.begins == piece.places[0].key());
        }
        for (ahead, number) in model.iter().enumerate() {
            assert_eq!(places.rank(key(*number)), ahead);
            assert_eq!(
                places.get_mut(key(*number)).map(|(place, ahead)| (place.key(), ahead)),
                Some((key(*number), ahead))
            );
        }
        for from in [0, 1, MOST, 10_000, model.len() - 1, model.len(), model.len() + 1] {
            let rest = places.from(from).map(|place| place.order.as_u64());
            assert!(rest.eq(model.iter().copied().skip(from)), "from {from}");
        }
        for number in &model {
            assert_eq!(places.first(), Some(&place(*number)));
            assert!(
                places.get_mut(key(*number)).is_some_and(|(_, ahead)| ahead == 0)
                    && places.remove(key(*number))
            );
        }
        assert_eq!((places.len(), places.pieces.len(), places.first()), (0, 0, None));
    }
}
