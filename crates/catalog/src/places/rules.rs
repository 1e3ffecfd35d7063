//! How a message changes the count of reserved places. Pure: no clock, no database.

use urr_contracts::tickets::ReservationFact;
use urr_kernel::EventId;

/// Change of an event's reserved count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) event: EventId,
    /// Number of places reserved; negative if places became free.
    pub(crate) places: i64,
}

/// The change that a fact makes, if any.
pub(crate) fn change(fact: &ReservationFact) -> Option<Change> {
    let (event, places) = match fact {
        ReservationFact::Created { event_id, seat_count, .. } => (*event_id, i64::from(*seat_count)),
        ReservationFact::Cancelled { event_id, seat_count, .. } => (*event_id, -i64::from(*seat_count)),
        ReservationFact::Confirmed { .. } => return None,
    };
    Some(Change { event, places })
}

#[cfg(test)]
mod tests {
    use urr_contracts::tickets::{CancelReason, RESERVATION_EVENTS};
    use urr_db::outbox::Message;
    use urr_kernel::{Clock, Ids, Krw, Timestamp};

    use super::*;

    const AT: Timestamp = Timestamp::from_micros(0);

    fn ids() -> Ids {
        Ids::seeded(Clock::fixed(AT), 3)
    }

    fn received(kind: &str, payload: &str) -> Message {
        let (kind, payload) = (kind.to_owned(), payload.to_owned());
        let topic = RESERVATION_EVENTS.to_owned();
        Message { id: ids().next(), topic, key: String::new(), kind, payload, at: AT }
    }

    fn change_of(message: &Message) -> Option<Change> {
        change(&message.fact().unwrap().unwrap())
    }

    #[test]
    fn facts_published_by_tickets_change_the_count() {
        let (ids, event_id) = (ids(), ids().next());
        let created = ReservationFact::Created {
            reservation_id: ids.next(),
            user_id: ids.next(),
            event_id,
            total_amount: Krw::ZERO,
            seat_count: 3,
            expires_at: AT,
        };
        let cancelled = ReservationFact::Cancelled {
            reservation_id: ids.next(),
            user_id: ids.next(),
            event_id,
            seat_count: 3,
            reason: CancelReason::Expired,
        };
        for (fact, places) in [(created, 3), (cancelled, -3)] {
            let message = Message::new(ids.next(), fact, AT);
            assert_eq!(change_of(&message), Some(Change { event: event_id, places }));
        }
    }

    #[test]
    fn unknown_types_and_unknown_fields_are_ignored() {
        let gifted = received("RESERVATION_GIFTED", "not even JSON");
        assert_eq!(gifted.fact::<ReservationFact>().unwrap(), None);
        let id = ids().next::<EventId>();
        let payload = format!(
            r#"{{"type":"RESERVATION_CANCELLED","reservationId":"{id}","userId":"{id}","eventId":"{id}","seatCount":2,"reason":"user","mood":{{}}}}"#
        );
        let expected = Change { event: id, places: -2 };
        assert_eq!(change_of(&received("RESERVATION_CANCELLED", &payload)), Some(expected));
    }

    #[test]
    fn a_known_type_with_missing_fields_is_an_error() {
        for payload in ["", "{}", r#"{"type":"RESERVATION_CREATED","seatCount":1}"#] {
            assert!(received("RESERVATION_CREATED", payload).fact::<ReservationFact>().is_err(), "{payload}");
        }
    }
}
