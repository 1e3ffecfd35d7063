//! How a message changes the count of reserved places. Pure: no clock, no database.

use serde::Deserialize;
use urr_kernel::EventId;

/// Change of an event's reserved count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) event: EventId,
    /// Number of places reserved; negative if places became free.
    pub(crate) places: i64,
}

/// The fields this consumer reads. Unknown fields are ignored, so later versions may add some.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counted {
    event_id: EventId,
    seat_count: u32,
}

/// Parses a message. Returns `None` for a type that does not change the count, including unknown
/// types.
pub(crate) fn change(kind: &str, payload: &str) -> Result<Option<Change>, serde_json::Error> {
    let sign = match kind {
        "RESERVATION_CREATED" => 1,
        "RESERVATION_CANCELLED" => -1,
        _ => return Ok(None),
    };
    let Counted { event_id, seat_count } = serde_json::from_str(payload)?;
    Ok(Some(Change { event: event_id, places: sign * i64::from(seat_count) }))
}

#[cfg(test)]
mod tests {
    use urr_contracts::{
        messages::Envelope,
        tickets::{CancelReason, ReservationFact},
    };
    use urr_kernel::{Clock, Ids, Krw, Timestamp};

    use super::*;

    fn ids() -> Ids {
        Ids::seeded(Clock::fixed(Timestamp::from_micros(0)), 3)
    }

    fn sent(fact: ReservationFact) -> (&'static str, String) {
        let kind = fact.kind();
        let envelope =
            Envelope { message_id: ids().next(), saga_id: None, timestamp: Timestamp::from_micros(0), fact };
        (kind, serde_json::to_string(&envelope).unwrap())
    }

    #[test]
    fn facts_published_by_tickets_are_parsed() {
        let (ids, event_id) = (ids(), ids().next());
        let (kind, payload) = sent(ReservationFact::ReservationCreated {
            reservation_id: ids.next(),
            user_id: ids.next(),
            event_id,
            total_amount: Krw::ZERO,
            seat_count: 3,
            expires_at: Timestamp::from_micros(0),
        });
        assert_eq!(change(kind, &payload).unwrap(), Some(Change { event: event_id, places: 3 }));
        let (kind, payload) = sent(ReservationFact::ReservationCancelled {
            reservation_id: ids.next(),
            user_id: ids.next(),
            event_id,
            seat_count: 3,
            reason: CancelReason::Expired,
        });
        assert_eq!(change(kind, &payload).unwrap(), Some(Change { event: event_id, places: -3 }));
    }

    #[test]
    fn unknown_types_and_unknown_fields_are_ignored() {
        assert_eq!(change("RESERVATION_GIFTED", "not even JSON").unwrap(), None);
        let event_id: EventId = ids().next();
        let payload = format!(r#"{{"eventId":"{event_id}","seatCount":2,"reason":"a new one","mood":{{}}}}"#);
        let expected = Change { event: event_id, places: -2 };
        assert_eq!(change("RESERVATION_CANCELLED", &payload).unwrap(), Some(expected));
    }

    #[test]
    fn a_known_type_with_missing_fields_is_an_error() {
        for payload in ["", "{}", r#"{"eventId":"not-a-uuid","seatCount":1}"#, r#"{"seatCount":1}"#] {
            assert!(change("RESERVATION_CREATED", payload).is_err(), "{payload}");
        }
    }
}
