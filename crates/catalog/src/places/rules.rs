//! What a message means for the count of reserved places. Pure.

use serde::Deserialize;
use urr_kernel::EventId;

/// A change of an event's count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) event: EventId,
    /// Reserved, or free again if below zero.
    pub(crate) places: i64,
}

/// All this consumer reads of a message. Whatever else stands in it, now or in a later version, is ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counted {
    event_id: EventId,
    seat_count: u32,
}

/// Reads a message. `None`: its type is of no interest here, or not known yet.
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
    fn the_facts_that_tickets_publishes_are_understood() {
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
    fn a_new_type_is_ignored_and_new_fields_do_no_harm() {
        assert_eq!(change("RESERVATION_GIFTED", "not even JSON").unwrap(), None);
        let event_id: EventId = ids().next();
        let payload = format!(r#"{{"eventId":"{event_id}","seatCount":2,"reason":"a new one","mood":{{}}}}"#);
        let expected = Change { event: event_id, places: -2 };
        assert_eq!(change("RESERVATION_CANCELLED", &payload).unwrap(), Some(expected));
    }

    #[test]
    fn a_known_type_without_its_fields_cannot_be_read() {
        for payload in ["", "{}", r#"{"eventId":"nobody","seatCount":1}"#, r#"{"seatCount":1}"#] {
            assert!(change("RESERVATION_CREATED", payload).is_err(), "{payload}");
        }
    }
}
