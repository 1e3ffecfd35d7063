//! Rules of holds: which seats, how many, when. Pure: no async, no clock, no database.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};
use urr_contracts::{
    catalog::{Sale, Seat},
    tickets::{Error, HoldSeats, Reservation, ReservedSeat},
};
use urr_kernel::{
    CommonError, Krw, ReservationId, SeatId, Timestamp, UserId, limits::MAX_IDEMPOTENCY_KEY_LEN,
};

use crate::{gate::Owner, sales::EventSeats};

/// The seats of a request that passed the rules. Whether they are free is decided by the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// In id order, so that concurrent claims of the same seats cannot deadlock.
    pub(crate) seats: Vec<Seat>,
    pub(crate) total: Krw,
}

impl Plan {
    pub(crate) fn seat_ids(&self) -> Vec<SeatId> {
        self.seats.iter().map(|seat| seat.id).collect()
    }

    pub(crate) fn seat_count(&self) -> u32 {
        u32::try_from(self.seats.len()).expect("a plan has at most ten seats")
    }
}

/// Validates what needs no lookup.
pub(crate) fn check_request(request: &HoldSeats) -> Result<(), Error> {
    if request.seats.is_empty() {
        return Err(Error::NoSeats);
    }
    if request.idempotency_key.as_deref().is_some_and(|key| !is_key(key)) {
        return Err(Error::BadIdempotencyKey);
    }
    Ok(())
}

pub(super) fn is_key(key: &str) -> bool {
    (1..=MAX_IDEMPOTENCY_KEY_LEN).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns an error unless the sale is open at `now`.
pub(crate) fn check_open(sale: &Sale, now: Timestamp) -> Result<(), Error> {
    if sale.cancelled {
        Err(Error::EventCancelled)
    } else if now < sale.sale_start_at {
        Err(Error::SaleNotOpen { opens_at: sale.sale_start_at })
    } else if sale.seats == 0 {
        check_not_over(sale.sale_end_at, now).and(Err(Error::NoSeatMap))
    } else {
        check_not_over(sale.sale_end_at, now)
    }
}

/// Returns an error if the sale has ended at `now`. Checked again when a queued claim starts.
pub(crate) fn check_not_over(sale_end_at: Timestamp, now: Timestamp) -> Result<(), Error> {
    if now < sale_end_at { Ok(()) } else { Err(Error::SaleEnded { ended_at: sale_end_at }) }
}

/// Validates the number of requested seats.
pub(crate) fn check_count(request: &HoldSeats, sale: &Sale) -> Result<(), Error> {
    let mut seen = HashSet::with_capacity(request.seats.len());
    let repeats: Vec<SeatId> = request.seats.iter().copied().filter(|seat| !seen.insert(*seat)).collect();
    let wanted = u32::try_from(request.seats.len()).unwrap_or(u32::MAX);
    if wanted > sale.max_seats_per_reservation {
        Err(Error::TooManySeats { max: sale.max_seats_per_reservation })
    } else if !repeats.is_empty() {
        Err(Error::DuplicateSeats { seats: repeats })
    } else if wanted > sale.max_seats_per_user {
        Err(Error::UserLimit { max: sale.max_seats_per_user, held: 0 })
    } else {
        Ok(())
    }
}

/// Builds the plan of a request that passed the checks above.
pub(crate) fn plan(request: &HoldSeats, hall: &EventSeats) -> Result<Plan, Error> {
    let unknown: Vec<SeatId> =
        request.seats.iter().copied().filter(|seat| hall.seat(*seat).is_none()).collect();
    if !unknown.is_empty() {
        return Err(Error::SeatsNotFound { seats: unknown });
    }
    let mut seats: Vec<Seat> = request.seats.iter().filter_map(|seat| hall.seat(*seat)).cloned().collect();
    seats.sort_unstable_by_key(|seat| seat.id);
    let total =
        Krw::sum(seats.iter().map(|seat| seat.price)).map_err(|_| Error::Common(CommonError::Internal))?;
    Ok(Plan { seats, total })
}

/// Returns the owner of the gate marks. A retry with the same key has the same owner, so it is
/// never blocked by its own marks.
pub(crate) fn gate_owner(user: UserId, key: Option<&str>, reservation: ReservationId) -> Owner {
    let Some(key) = key else { return Owner::from_uuid(reservation.as_uuid()) };
    let digest =
        Sha256::new().chain_update(user.as_uuid().as_bytes()).chain_update(key.as_bytes()).finalize();
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    Owner::from_uuid(uuid::Uuid::from_bytes(bytes))
}

/// Whether a reservation matches a request. The order of the seats does not matter.
pub(crate) fn answers(reservation: &Reservation, request: &HoldSeats) -> bool {
    let mut wanted = request.seats.clone();
    wanted.sort_unstable();
    let mut held: Vec<SeatId> = reservation.seats.iter().map(|seat| seat.id).collect();
    held.sort_unstable();
    reservation.event == request.event && held == wanted
}

/// Number for people to read aloud: the time of creation and eight hex digits of an id.
pub(crate) fn number(id: ReservationId, at: Timestamp) -> String {
    let id = id.as_uuid().simple().to_string().to_uppercase();
    format!("TK{}-{}", at.as_micros() / 1_000, &id[id.len() - 8..])
}

/// A seat as stored in the reservation.
pub(crate) fn reserved(seat: &Seat, fence: i64) -> ReservedSeat {
    ReservedSeat {
        id: seat.id,
        section: seat.section.clone(),
        grade: seat.grade.clone(),
        row: seat.row,
        number: seat.number,
        label: seat.label.clone(),
        price: seat.price,
        fence,
    }
}

/// Number of seats, in the type that messages and counters use.
pub(crate) fn seat_count(reservation: &Reservation) -> u32 {
    u32::try_from(reservation.seats.len()).expect("a reservation has at most ten seats")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use urr_contracts::catalog::EventCard;
    use urr_kernel::EventId;
    use uuid::Uuid;

    use super::*;

    fn seat(n: u128) -> SeatId {
        SeatId::from_uuid(Uuid::from_u128(n))
    }

    fn hall(seats: u128) -> EventSeats {
        EventSeats::new(
            (0..seats)
                .map(|n| Seat {
                    id: seat(n),
                    section: "R".into(),
                    grade: "R".into(),
                    row: 1,
                    number: u32::try_from(n).unwrap() + 1,
                    label: format!("R-1-{}", n + 1),
                    price: Krw::new(100_000).unwrap(),
                })
                .collect(),
        )
    }

    fn sale() -> Sale {
        Sale {
            event: EventId::from_uuid(Uuid::nil()),
            card: EventCard {
                title: "Night".into(),
                venue: "Hall".into(),
                address: None,
                event_at: Timestamp::from_micros(300),
            },
            cancelled: false,
            sale_start_at: Timestamp::from_micros(100),
            sale_end_at: Timestamp::from_micros(200),
            max_seats_per_reservation: 4,
            max_seats_per_user: 4,
            seats: 10,
        }
    }

    fn ask(seats: &[u128]) -> HoldSeats {
        HoldSeats {
            event: EventId::from_uuid(Uuid::nil()),
            seats: seats.iter().map(|n| seat(*n)).collect(),
            idempotency_key: None,
        }
    }

    #[test]
    fn the_sale_window_includes_its_start_and_excludes_its_end() {
        let at = Timestamp::from_micros;
        assert_eq!(check_open(&sale(), at(99)), Err(Error::SaleNotOpen { opens_at: at(100) }));
        assert_eq!(check_open(&sale(), at(100)), Ok(()));
        assert_eq!(check_open(&sale(), at(199)), Ok(()));
        assert_eq!(check_open(&sale(), at(200)), Err(Error::SaleEnded { ended_at: at(200) }));
        assert_eq!(check_open(&Sale { cancelled: true, ..sale() }, at(150)), Err(Error::EventCancelled));
        assert_eq!(check_open(&Sale { seats: 0, ..sale() }, at(150)), Err(Error::NoSeatMap));
    }

    #[test]
    fn invalid_counts_and_duplicate_seats_have_their_own_errors() {
        assert_eq!(check_request(&ask(&[])), Err(Error::NoSeats));
        assert_eq!(check_count(&ask(&[1, 2, 3, 4, 5]), &sale()), Err(Error::TooManySeats { max: 4 }));
        assert_eq!(
            check_count(&ask(&[1, 2, 1]), &sale()),
            Err(Error::DuplicateSeats { seats: vec![seat(1)] })
        );
        let strict = Sale { max_seats_per_user: 1, ..sale() };
        assert_eq!(check_count(&ask(&[1, 2]), &strict), Err(Error::UserLimit { max: 1, held: 0 }));
        assert_eq!(plan(&ask(&[1, 99]), &hall(10)), Err(Error::SeatsNotFound { seats: vec![seat(99)] }));
    }

    #[test]
    fn keys_are_short_and_printable() {
        for bad in ["", " ", "a b", "키", &"x".repeat(65)] {
            let request = HoldSeats { idempotency_key: Some(bad.to_owned()), ..ask(&[1]) };
            assert_eq!(check_request(&request), Err(Error::BadIdempotencyKey), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn a_plan_has_each_seat_once_in_id_order_with_its_price(
            picks in proptest::collection::hash_set(0_u128..50, 1..=4)
        ) {
            let picks: Vec<u128> = picks.into_iter().collect();
            let plan = plan(&ask(&picks), &hall(50)).unwrap();
            let ids = plan.seat_ids();
            prop_assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(ids.len(), picks.len());
            prop_assert_eq!(plan.total.won(), 100_000 * i64::try_from(picks.len()).unwrap());
        }

        #[test]
        fn seat_order_does_not_make_a_different_request(picks in proptest::collection::hash_set(0_u128..50, 1..=4)) {
            let mut picks: Vec<u128> = picks.into_iter().collect();
            let kept = kept(&ask(&picks));
            picks.reverse();
            prop_assert!(answers(&kept, &ask(&picks)));
            let elsewhere = HoldSeats { event: EventId::from_uuid(Uuid::max()), ..ask(&picks) };
            prop_assert!(!answers(&kept, &elsewhere));
            picks.push(50);
            prop_assert!(!answers(&kept, &ask(&picks)));
            prop_assert!(!answers(&kept, &ask(&picks[2..])));
        }
    }

    fn kept(request: &HoldSeats) -> Reservation {
        let plan = plan(request, &hall(50)).unwrap();
        let id = ReservationId::from_uuid(Uuid::nil());
        Reservation {
            id,
            number: number(id, Timestamp::from_micros(0)),
            user: UserId::from_uuid(Uuid::nil()),
            event: request.event,
            card: sale().card,
            status: urr_contracts::tickets::ReservationStatus::Pending,
            total: plan.total,
            expires_at: Timestamp::from_micros(0),
            created_at: Timestamp::from_micros(0),
            seats: plan.seats.iter().map(|seat| reserved(seat, 1)).collect(),
        }
    }
}
