//! Judges what the buyers wrote down. Pure: the journal goes in, broken promises come out.

use std::collections::{BTreeMap, HashMap};

use urr_kernel::{ReservationId, SeatId, Timestamp, UserId};

use super::journal::{Line, Step};
use crate::shop::Reservation;

/// Around a hold's end its state depends on when the sweep came by, so no claim is made about it.
const AROUND_EXPIRY_MICROS: i64 = 5_000_000;

/// What is known about one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Whose.
    pub user: UserId,
    /// Which seats were asked for.
    pub seats: Vec<SeatId>,
    /// When the first attempt was sent.
    pub asked_at: Timestamp,
    /// What was promised, and when the promise arrived.
    pub promise: Option<Promise>,
    /// Whether the server said no.
    pub refused: bool,
    /// When the buyer first asked to give it back.
    pub release_asked_at: Option<Timestamp>,
    /// Whether the server promised that it was given back.
    pub released: bool,
}

/// A promised hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// What the server calls it.
    pub reservation: ReservationId,
    /// Seats and fences, in the order of the answer.
    pub seats: Vec<(SeatId, i64)>,
    /// Until when.
    pub expires_at: Timestamp,
    /// When the answer arrived.
    pub at: Timestamp,
}

impl Promise {
    /// The instant up to which nobody else may have had these seats.
    fn certain_until(&self, hold: &Hold) -> Timestamp {
        hold.release_asked_at.map_or(self.expires_at, |asked| asked.min(self.expires_at))
    }
}

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// An acknowledged hold is gone.
    #[error("{key}: reservation {reservation} was promised and is gone: {found}")]
    Lost {
        /// Which request.
        key: String,
        /// What the server called it.
        reservation: ReservationId,
        /// What the server says now.
        found: String,
    },
    /// An acknowledged hold is there, but differs.
    #[error("{key}: reservation {reservation} changed: {what}")]
    Changed {
        /// Which request.
        key: String,
        /// What the server calls it.
        reservation: ReservationId,
        /// The difference.
        what: String,
    },
    /// Two holds had one seat at one time.
    #[error("seat {seat} was promised to {first} and, while that was live, to {second}")]
    Doubled {
        /// Which seat.
        seat: SeatId,
        /// The earlier request.
        first: String,
        /// The later request.
        second: String,
    },
    /// A fence did not grow.
    #[error("seat {seat}: the fence of {second} does not come after that of {first}")]
    FenceWentBack {
        /// Which seat.
        seat: SeatId,
        /// The earlier request.
        first: String,
        /// The later request.
        second: String,
    },
    /// A buyer was refused a seat because of the buyer's own hold.
    #[error("{key}: refused although the buyer holds it: {found}")]
    TakenByOneself {
        /// Which request.
        key: String,
        /// The buyer's own reservation.
        found: String,
    },
    /// A seat is locked for nobody, or free although held.
    #[error("seat {seat} is {status} on the map, but {why}")]
    WrongMap {
        /// Which seat.
        seat: SeatId,
        /// What the map says.
        status: String,
        /// What the journal says.
        why: String,
    },
    /// Messages were lost or applied twice on their way to the catalog.
    #[error("the catalog counts {counted} reserved places, the map shows {locked}")]
    WrongCount {
        /// What the catalog was told.
        counted: u64,
        /// What is so.
        locked: u64,
    },
    /// An answer that should not happen.
    #[error("{key}: {found}")]
    Unexpected {
        /// Which request.
        key: String,
        /// What the server said.
        found: String,
    },
}

/// Everything the journals say, by request.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    holds: BTreeMap<String, Hold>,
}

impl Ledger {
    /// Adds lines. A client writes its lines in order; the order between clients does not matter.
    pub fn add(&mut self, lines: Vec<Line>) -> Vec<Violation> {
        lines.into_iter().filter_map(|line| self.add_line(line)).collect()
    }

    fn add_line(&mut self, Line { at, step }: Line) -> Option<Violation> {
        if let Step::Asking { key, user, seats } = step {
            // A second attempt with the same key is still the same request.
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
        let hold = self.holds.get_mut(&key).expect("a client asks before it is answered");
        match step {
            Step::Asking { .. } => None,
            Step::Held { reservation, seats, expires_at, .. } => {
                let promise = Promise { reservation, seats, expires_at, at };
                match &hold.promise {
                    Some(known) if !same(known, &promise) => {
                        let what = format!("first {known:?}, asked again {promise:?}");
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
                    what: format!("first promised, asked again refused with {code}"),
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

    /// Every request by its key.
    pub fn holds(&self) -> impl Iterator<Item = (&String, &Hold)> {
        self.holds.iter()
    }

    /// One request.
    pub fn hold(&self, key: &str) -> Option<&Hold> {
        self.holds.get(key)
    }

    /// Seats that were promised to two at once, and fences that did not grow.
    pub fn doubled(&self) -> Vec<Violation> {
        let mut by_seat: HashMap<SeatId, Vec<(i64, &String, &Hold, &Promise)>> = HashMap::new();
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
                // The claim with the lower fence came first and was live until its buyer gave it up.
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

    /// Compares a promised hold with what the server says about it now. `Err` is an answer without a reservation.
    pub fn judge(&self, key: &str, found: Result<&Reservation, String>, now: Timestamp) -> Option<Violation> {
        let hold = self.holds.get(key)?;
        let promise = hold.promise.as_ref()?;
        let (key, reservation) = (key.to_owned(), promise.reservation);
        let found = match found {
            Ok(found) => found,
            Err(found) => return Some(Violation::Lost { key, reservation, found }),
        };
        let now_promised = Promise {
            reservation: found.id,
            seats: found.fences(),
            expires_at: found.expires_at,
            at: promise.at,
        };
        if !same(promise, &now_promised) {
            let what = format!("promised {promise:?}, found {now_promised:?}");
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
            "it is {}, release asked {:?}, promised {}",
            found.status, hold.release_asked_at, hold.released
        );
        (!fine).then_some(Violation::Changed { key, reservation, what })
    }

    /// Compares a map with the journal when nothing is under way: locked seats are exactly those of live holds.
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
                    found.push(Violation::WrongMap { seat, status, why: "nobody holds it".to_owned() });
                }
            }
        }
        found
    }
}

/// Whether two answers make the same promise. When they arrived does not matter, nor does the order of the seats.
fn same(a: &Promise, b: &Promise) -> bool {
    let sorted = |promise: &Promise| {
        let mut seats = promise.seats.clone();
        seats.sort_unstable();
        seats
    };
    a.reservation == b.reservation && a.expires_at == b.expires_at && sorted(a) == sorted(b)
}

#[cfg(test)]
mod tests;
