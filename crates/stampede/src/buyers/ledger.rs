//! Compares the journals with the server. Pure: journals go in, violations come out.

use std::collections::{BTreeMap, HashMap};

use urr_kernel::{ReservationId, SeatId, Timestamp, UserId};

use super::journal::{Line, Step};
use crate::shop::Reservation;

/// Close to its expiry the state of a hold depends on when the sweep ran, so it is not judged.
const AROUND_EXPIRY_MICROS: i64 = 5_000_000;

/// What is known about one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The buyer.
    pub user: UserId,
    /// The requested seats.
    pub seats: Vec<SeatId>,
    /// When the first attempt was sent.
    pub asked_at: Timestamp,
    /// The acknowledgement, if any.
    pub promise: Option<AcknowledgedHold>,
    /// Whether the server refused it.
    pub refused: bool,
    /// When the buyer first requested the release.
    pub release_asked_at: Option<Timestamp>,
    /// Whether the server acknowledged the release.
    pub released: bool,
}

/// An acknowledged hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcknowledgedHold {
    /// The id of the reservation.
    pub reservation: ReservationId,
    /// Seats and fences, in the order of the response.
    pub seats: Vec<(SeatId, i64)>,
    /// When the hold expires.
    pub expires_at: Timestamp,
    /// When the response arrived.
    pub at: Timestamp,
}

impl AcknowledgedHold {
    /// The time until which no other buyer may have had these seats.
    fn certain_until(&self, hold: &Hold) -> Timestamp {
        hold.release_asked_at.map_or(self.expires_at, |asked| asked.min(self.expires_at))
    }
}

/// A violation of what the server acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// An acknowledged hold is gone.
    #[error("{key}: reservation {reservation} was acknowledged and is gone: {found}")]
    Lost {
        /// The request.
        key: String,
        /// The id of the reservation.
        reservation: ReservationId,
        /// The server's response now.
        found: String,
    },
    /// An acknowledged hold exists, but differs.
    #[error("{key}: reservation {reservation} changed: {what}")]
    Changed {
        /// The request.
        key: String,
        /// The id of the reservation.
        reservation: ReservationId,
        /// The difference.
        what: String,
    },
    /// Two holds had the same seat at the same time.
    #[error("seat {seat} was held by {first} and, before that ended, by {second}")]
    Doubled {
        /// The seat.
        seat: SeatId,
        /// The earlier request.
        first: String,
        /// The later request.
        second: String,
    },
    /// A fence did not grow.
    #[error("seat {seat}: the fence of {second} is not greater than that of {first}")]
    FenceWentBack {
        /// The seat.
        seat: SeatId,
        /// The earlier request.
        first: String,
        /// The later request.
        second: String,
    },
    /// A buyer was refused a seat because of the buyer's own hold.
    #[error("{key}: refused although the buyer holds it: {found}")]
    TakenByOneself {
        /// The request.
        key: String,
        /// The buyer's own reservation.
        found: String,
    },
    /// The seat map contradicts the journal: locked without a hold, or available although held.
    #[error("seat {seat} is {status} on the map, but {why}")]
    WrongMap {
        /// The seat.
        seat: SeatId,
        /// Its status on the map.
        status: String,
        /// What the journal says.
        why: String,
    },
    /// Messages were lost, or applied twice, on their way to the catalog.
    #[error("the catalog counts {counted} reserved places, the map shows {locked}")]
    WrongCount {
        /// The catalog's count.
        counted: u64,
        /// Locked seats on the map.
        locked: u64,
    },
    /// An unexpected response.
    #[error("{key}: {found}")]
    Unexpected {
        /// The request.
        key: String,
        /// The response.
        found: String,
    },
}

/// The content of all journals, by request.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    holds: BTreeMap<String, Hold>,
}

impl Ledger {
    /// Adds lines. Each client's lines must be in order; the order between clients does not matter.
    pub fn add(&mut self, lines: Vec<Line>) -> Vec<Violation> {
        lines.into_iter().filter_map(|line| self.add_line(line)).collect()
    }

    fn add_line(&mut self, Line { at, step }: Line) -> Option<Violation> {
        if let Step::Asking { key, user, seats } = step {
            // A second attempt with the same key is the same request.
            self.holds.entry(key).or_insert(Hold {
                user,
                seats,
                asked_at: at,
                promise: None,
                refused: false,
                release_asked_at: None,
                released: false,
            });
            return None;
        }
        let key = step.key().to_owned();
        let hold = self.holds.get_mut(&key).expect("a request is journaled before its response");
        match step {
            Step::Asking { .. } => None,
            Step::Held { reservation, seats, expires_at, .. } => {
                let promise = AcknowledgedHold { reservation, seats, expires_at, at };
                match &hold.promise {
                    Some(known) if !same(known, &promise) => {
                        let what = format!("first {known:?}, on repeating {promise:?}");
                        Some(Violation::Changed { key, reservation: known.reservation, what })
                    }
                    Some(_) => None,
                    None => {
                        hold.promise = Some(promise);
                        None
                    }
                }
            }
            Step::Refused { code, .. } => {
                hold.refused = true;
                hold.promise.as_ref().map(|promise| Violation::Changed {
                    key,
                    reservation: promise.reservation,
                    what: format!("first acknowledged, on repeating refused with {code}"),
                })
            }
            Step::Releasing { .. } => {
                hold.release_asked_at.get_or_insert(at);
                None
            }
            Step::Released { .. } => {
                hold.released = true;
                None
            }
        }
    }

    /// All requests by key.
    pub fn holds(&self) -> impl Iterator<Item = (&String, &Hold)> {
        self.holds.iter()
    }

    /// One request.
    pub fn hold(&self, key: &str) -> Option<&Hold> {
        self.holds.get(key)
    }

    /// Seats that two buyers held at once, and fences that did not grow.
    pub fn doubled(&self) -> Vec<Violation> {
        let mut by_seat: HashMap<SeatId, Vec<(i64, &String, &Hold, &AcknowledgedHold)>> = HashMap::new();
        for (key, hold) in &self.holds {
            let Some(promise) = &hold.promise else { continue };
            for (seat, fence) in &promise.seats {
                by_seat.entry(*seat).or_default().push((*fence, key, hold, promise));
            }
        }
        let mut found = Vec::new();
        for (seat, mut claims) in by_seat {
            claims.sort_by_key(|(fence, key, ..)| (*fence, *key));
            for pair in claims.windows(2) {
                let [(lower, first, earlier, before), (higher, second, later, after)] = pair else {
                    continue;
                };
                let (first, second) = ((*first).clone(), (*second).clone());
                // The claim with the lower fence came first and was live until its buyer released
                // it.
                if after.at < before.certain_until(earlier) {
                    found.push(Violation::Doubled { seat, first: first.clone(), second: second.clone() });
                }
                if lower == higher || after.at < earlier.asked_at {
                    found.push(Violation::FenceWentBack { seat, first, second });
                }
                debug_assert!(later.asked_at <= after.at);
            }
        }
        found
    }

    /// Compares an acknowledged hold with the server's state now. `Err` is a response without a
    /// reservation.
    pub fn judge(&self, key: &str, found: Result<&Reservation, String>, now: Timestamp) -> Option<Violation> {
        let hold = self.holds.get(key)?;
        let promise = hold.promise.as_ref()?;
        let (key, reservation) = (key.to_owned(), promise.reservation);
        let found = match found {
            Ok(found) => found,
            Err(found) => return Some(Violation::Lost { key, reservation, found }),
        };
        let now_promised = AcknowledgedHold {
            reservation: found.id,
            seats: found.fences(),
            expires_at: found.expires_at,
            at: promise.at,
        };
        if !same(promise, &now_promised) {
            let what = format!("acknowledged {promise:?}, found {now_promised:?}");
            return Some(Violation::Changed { key, reservation, what });
        }
        let near_end = now.as_micros() >= promise.expires_at.as_micros() - AROUND_EXPIRY_MICROS;
        let fine = match found.status.as_str() {
            "pending" => !hold.released,
            "cancelled" => hold.release_asked_at.is_some(),
            "expired" => near_end,
            _ => false,
        };
        let what = format!(
            "it is {}, release requested {:?}, acknowledged {}",
            found.status, hold.release_asked_at, hold.released
        );
        (!fine).then_some(Violation::Changed { key, reservation, what })
    }

    /// Compares a seat map with the journal while no request is in progress: exactly the seats of
    /// live holds are locked.
    pub fn judge_map(&self, map: &HashMap<SeatId, String>, now: Timestamp) -> Vec<Violation> {
        let mut held: HashMap<SeatId, &String> = HashMap::new();
        let mut unclear: HashMap<SeatId, &String> = HashMap::new();
        for (key, hold) in self.holds.iter().filter(|(_, hold)| !hold.released && !hold.refused) {
            let ends = hold.promise.as_ref().map(|promise| promise.expires_at.as_micros());
            let clear = hold.release_asked_at.is_none();
            for seat in &hold.seats {
                match ends {
                    Some(ends) if clear && now.as_micros() < ends - AROUND_EXPIRY_MICROS => {
                        held.insert(*seat, key)
                    }
                    Some(ends) if now.as_micros() > ends + AROUND_EXPIRY_MICROS => None,
                    _ => unclear.insert(*seat, key),
                };
            }
        }
        let mut found = Vec::new();
        for (seat, status) in map {
            let (seat, status) = (*seat, status.clone());
            match (held.get(&seat), status.as_str()) {
                (Some(_), "locked") | (None, "available") => {}
                (Some(key), _) => {
                    found.push(Violation::WrongMap { seat, status, why: format!("{key} holds it") });
                }
                (None, _) if unclear.contains_key(&seat) => {}
                (None, _) => {
                    found.push(Violation::WrongMap { seat, status, why: "no buyer holds it".to_owned() });
                }
            }
        }
        found
    }
}

/// Whether two acknowledgements are equal, except for the time and the order of the seats.
fn same(a: &AcknowledgedHold, b: &AcknowledgedHold) -> bool {
    let sorted = |promise: &AcknowledgedHold| {
        let mut seats = promise.seats.clone();
        seats.sort_unstable();
        seats
    };
    a.reservation == b.reservation && a.expires_at == b.expires_at && sorted(a) == sorted(b)
}

#[cfg(test)]
mod tests;
