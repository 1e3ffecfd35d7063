//! Messages outlive the code that wrote them. Old messages must stay readable, and new ones must
//! match the golden files.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use serde_json::{Value, json};
use urr_contracts::tickets::{CancelReason, ReservationFact};
use urr_kernel::{Envelope, Fact, Krw, Timestamp};

fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(last: u8) -> T {
    format!("0197b3c2-0000-7000-8000-0000000000{last:02}").parse().unwrap()
}

fn envelope<F>(fact: F) -> Envelope<F> {
    let timestamp: Timestamp = "2026-06-01T03:00:00.000001Z".parse().unwrap();
    Envelope { message_id: id(1), saga_id: None, timestamp, fact }
}

fn created() -> ReservationFact {
    ReservationFact::Created {
        reservation_id: id(2),
        user_id: id(3),
        event_id: id(4),
        total_amount: Krw::new(300_000).unwrap(),
        seat_count: 2,
        expires_at: "2026-06-01T03:05:00.000001Z".parse().unwrap(),
    }
}

fn confirmed() -> ReservationFact {
    ReservationFact::Confirmed {
        reservation_id: id(2),
        user_id: id(3),
        event_id: id(4),
        total_amount: Krw::new(300_000).unwrap(),
        payment_method: "card".to_owned(),
    }
}

fn cancelled() -> ReservationFact {
    ReservationFact::Cancelled {
        reservation_id: id(2),
        user_id: id(3),
        event_id: id(4),
        seat_count: 2,
        reason: CancelReason::Expired,
    }
}

fn matches_golden_file<F: Fact>(fact: F, golden: &str) {
    let golden: Value = serde_json::from_str(golden).unwrap();
    assert_eq!(golden["type"], fact.kind());
    assert!(F::KINDS.contains(&fact.kind()));
    assert_eq!(serde_json::to_value(envelope(fact)).unwrap(), golden);
}

#[test]
fn messages_match_the_golden_files() {
    matches_golden_file(created(), include_str!("golden/reservation_created.v1.json"));
    matches_golden_file(confirmed(), include_str!("golden/reservation_confirmed.v1.json"));
    matches_golden_file(cancelled(), include_str!("golden/reservation_cancelled.v1.json"));
}

#[test]
fn messages_with_unknown_fields_are_readable() {
    let mut newer: Value = serde_json::from_str(include_str!("golden/reservation_created.v1.json")).unwrap();
    newer["currency"] = json!("KRW");
    let read: Envelope<ReservationFact> = serde_json::from_value(newer).unwrap();
    assert_eq!(read, envelope(created()));
}
