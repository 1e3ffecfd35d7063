//! The ledger on its own: each rule is violated once.

use urr_kernel::{Clock, Ids};

use super::*;

/// A journal written by hand. Times are in seconds.
struct Book {
    ids: Ids,
    ledger: Ledger,
    seat: SeatId,
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros(secs * 1_000_000)
}

impl Book {
    fn new() -> Self {
        let ids = Ids::seeded(Clock::fixed(at(1)), 1);
        Self { seat: ids.next(), ids, ledger: Ledger::default() }
    }

    fn asks(&mut self, key: &str, time: i64) {
        let (key, user, seats) = (key.to_owned(), self.ids.next(), vec![self.seat]);
        self.ledger.add(vec![Line { at: at(time), step: Step::Asking { key, user, seats } }]);
    }

    fn held(&mut self, key: &str, fence: i64, time: i64) -> Reservation {
        let id = self.ids.next();
        let (key, seats, expires_at) = (key.to_owned(), vec![(self.seat, fence)], at(300));
        let step = Step::Held { key, reservation: id, seats: seats.clone(), expires_at };
        self.ledger.add(vec![Line { at: at(time), step }]);
        Reservation::made_up(id, "pending", &seats, expires_at)
    }

    fn step(&mut self, time: i64, step: Step) -> Vec<Violation> {
        self.ledger.add(vec![Line { at: at(time), step }])
    }
}

#[test]
fn overlapping_holds_of_a_seat_are_a_violation() {
    let mut book = Book::new();
    book.asks("a", 1);
    book.held("a", 1, 2);
    book.asks("b", 3);
    book.held("b", 2, 4);
    assert!(matches!(book.ledger.doubled()[..], [Violation::Doubled { .. }]));
}

#[test]
fn a_hold_after_a_release_is_not_a_violation() {
    let mut book = Book::new();
    book.asks("a", 1);
    book.held("a", 1, 2);
    book.step(3, Step::Releasing { key: "a".to_owned() });
    book.asks("b", 3);
    book.held("b", 2, 4);
    assert_eq!(book.ledger.doubled(), vec![]);
}

#[test]
fn a_fence_that_does_not_grow_is_a_violation() {
    for (first, second) in [(5, 5), (5, 4)] {
        let mut book = Book::new();
        book.asks("a", 1);
        book.held("a", first, 2);
        book.step(3, Step::Releasing { key: "a".to_owned() });
        book.asks("b", 4);
        book.held("b", second, 5);
        let found = book.ledger.doubled();
        assert!(found.iter().any(|found| matches!(found, Violation::FenceWentBack { .. })), "{found:?}");
    }
}

#[test]
fn an_acknowledged_hold_must_not_change() {
    let mut book = Book::new();
    book.asks("a", 1);
    let found = book.held("a", 7, 2);
    assert_eq!(book.ledger.judge("a", Ok(&found), at(3)), None);
    let gone = book.ledger.judge("a", Err("404".to_owned()), at(3));
    assert!(matches!(gone, Some(Violation::Lost { .. })));
    let other_fence = Reservation::made_up(found.id, "pending", &[(book.seat, 8)], found.expires_at);
    assert!(matches!(book.ledger.judge("a", Ok(&other_fence), at(3)), Some(Violation::Changed { .. })));
    for status in ["cancelled", "expired"] {
        let ended = Reservation { status: status.to_owned(), ..found.clone() };
        assert!(book.ledger.judge("a", Ok(&ended), at(3)).is_some(), "{status} too early");
    }
    let expired = Reservation { status: "expired".to_owned(), ..found };
    assert_eq!(book.ledger.judge("a", Ok(&expired), at(301)), None);
}

#[test]
fn an_acknowledged_release_must_stay_released() {
    let mut book = Book::new();
    book.asks("a", 1);
    let pending = book.held("a", 7, 2);
    let cancelled = Reservation { status: "cancelled".to_owned(), ..pending.clone() };
    book.step(3, Step::Releasing { key: "a".to_owned() });
    for found in [&pending, &cancelled] {
        assert_eq!(book.ledger.judge("a", Ok(found), at(4)), None, "the release is not acknowledged yet");
    }
    book.step(5, Step::Released { key: "a".to_owned() });
    assert!(book.ledger.judge("a", Ok(&pending), at(6)).is_some());
    assert_eq!(book.ledger.judge("a", Ok(&cancelled), at(6)), None);
}

#[test]
fn a_different_response_to_the_same_key_is_a_violation() {
    let mut book = Book::new();
    book.asks("a", 1);
    let first = book.held("a", 7, 2);
    let key = || "a".to_owned();
    let again = |reservation, fence| Step::Held {
        key: key(),
        reservation,
        seats: vec![(book.seat, fence)],
        expires_at: first.expires_at,
    };
    let (same, other_fence, other) = (again(first.id, 7), again(first.id, 8), again(book.ids.next(), 7));
    assert_eq!(book.step(3, same), vec![]);
    assert_eq!(book.step(3, other_fence).len(), 1);
    assert_eq!(book.step(3, other).len(), 1);
    assert_eq!(book.step(3, Step::Refused { key: key(), code: "tickets.seats_taken".to_owned() }).len(), 1);
}

#[test]
fn seat_map_must_match_the_journal() {
    let mut book = Book::new();
    let map = |status: &str| HashMap::from([(book.seat, status.to_owned())]);
    let (locked, free) = (map("locked"), map("available"));
    assert_eq!(book.ledger.judge_map(&free, at(1)), vec![]);
    assert_eq!(book.ledger.judge_map(&locked, at(1)).len(), 1, "locked without a hold");
    book.asks("a", 1);
    book.held("a", 7, 2);
    assert_eq!(book.ledger.judge_map(&locked, at(3)), vec![]);
    assert_eq!(book.ledger.judge_map(&free, at(3)).len(), 1, "available although held");
    book.step(4, Step::Releasing { key: "a".to_owned() });
    book.step(4, Step::Released { key: "a".to_owned() });
    assert_eq!(book.ledger.judge_map(&locked, at(5)).len(), 1, "locked although released");
}
