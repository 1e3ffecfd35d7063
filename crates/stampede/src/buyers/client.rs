//! One client: it sends the requests of several buyers, one at a time.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use urr_kernel::{Clock, ReservationId, SeatId, Timestamp};

use super::{
    PATIENCE, SeatSale, Tally,
    journal::{Journal, Line, Step},
    ledger::Violation,
};
use crate::{
    http::{Answer, Connection, Lost},
    rng::SeededRng,
    shop::{self, Buyer, Reservation},
};

/// Seats one buyer may hold of one event.
const SEATS_PER_BUYER: usize = 4;

/// Pause before retrying while the server is down.
const KNOCK_AGAIN: Duration = Duration::from_millis(2);

/// Percentage of steps that release a hold, and that repeat an acknowledged hold.
const RELEASES: u64 = 40;
const REPEATS: u64 = 5;

/// One client with several buyers. It has at most one request in progress.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) number: usize,
    rng: SeededRng,
    buyers: Vec<Buyer>,
    sale: Arc<SeatSale>,
    journal: Journal,
    clock: Clock,
    asked: u64,
    /// The request that was sent and not answered.
    pub(super) pending: Option<Pending>,
    holds: Vec<Held>,
    pub(super) tally: Tally,
    pub(super) violations: Vec<Violation>,
}

/// An acknowledged hold that was not released.
#[derive(Clone, Debug)]
pub(super) struct Held {
    key: String,
    buyer: usize,
    seats: Vec<SeatId>,
    reservation: ReservationId,
    expires_at: Timestamp,
}

/// A request without a response.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    Hold { key: String, buyer: usize, seats: Vec<SeatId>, again: bool },
    Release(Held),
}

impl Client {
    /// A client whose journal is in `dir`.
    pub(super) fn new(
        number: usize,
        buyers: Vec<Buyer>,
        sale: &Arc<SeatSale>,
        dir: &Path,
        rng: SeededRng,
        clock: &Clock,
    ) -> std::io::Result<Self> {
        Ok(Self {
            number,
            rng,
            buyers,
            sale: Arc::clone(sale),
            journal: Journal::create(dir, number)?,
            clock: clock.clone(),
            asked: 0,
            pending: None,
            holds: Vec::new(),
            tally: Tally::default(),
            violations: Vec::new(),
        })
    }

    /// Holds and releases until `closing`.
    pub(super) async fn buy(&mut self, address: SocketAddr, closing: &AtomicBool) -> anyhow::Result<()> {
        let mut connection = Connection::to(address).patience(PATIENCE);
        while !closing.load(Ordering::SeqCst) {
            let step = if self.pending.is_some() {
                self.ask_again(&mut connection).await
            } else {
                self.something(&mut connection).await
            };
            match step {
                Ok(()) => {}
                Err(ClientError::Lost(Lost::NotSent(_))) => tokio::time::sleep(KNOCK_AGAIN).await,
                Err(ClientError::Lost(Lost::Unknown(_))) => self.tally.unanswered += 1,
                Err(ClientError::Journal(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn something(&mut self, connection: &mut Connection) -> Result<(), ClientError> {
        let now = self.clock.now();
        self.holds.retain(|held| held.expires_at > now);
        let next_u64 = self.rng.below(100);
        if next_u64 < REPEATS && !self.holds.is_empty() {
            return self.repeat(connection).await;
        }
        let free: Vec<usize> = (0..self.buyers.len()).filter(|buyer| self.room(*buyer) > 0).collect();
        if free.is_empty() || (next_u64 < REPEATS + RELEASES && !self.holds.is_empty()) {
            let held = self.holds.swap_remove(self.rng.index(self.holds.len()));
            self.write(Step::Releasing { key: held.key.clone() })?;
            return self.release(connection, held).await;
        }
        let buyer = free[self.rng.index(free.len())];
        let seats = self.choose(self.room(buyer));
        self.asked += 1;
        let key = format!("c{}-{}", self.number, self.asked);
        self.write(Step::Asking { key: key.clone(), user: self.buyers[buyer].user, seats: seats.clone() })?;
        self.hold(connection, Pending::Hold { key, buyer, seats, again: false }).await
    }

    /// How many more seats a buyer may hold.
    fn room(&self, buyer: usize) -> usize {
        let held: usize =
            self.holds.iter().filter(|held| held.buyer == buyer).map(|held| held.seats.len()).sum();
        SEATS_PER_BUYER.saturating_sub(held)
    }

    /// One to `most` different seats.
    fn choose(&mut self, most: usize) -> Vec<SeatId> {
        let count = 1 + self.rng.index(most);
        let mut seats = BTreeSet::new();
        while seats.len() < count {
            seats.insert(self.sale.seats[self.rng.index(self.sale.seats.len())]);
        }
        seats.into_iter().collect()
    }

    pub(super) async fn ask_again(&mut self, connection: &mut Connection) -> Result<(), ClientError> {
        match self.pending.take() {
            Some(Pending::Hold { key, buyer, seats, .. }) => {
                self.hold(connection, Pending::Hold { key, buyer, seats, again: true }).await
            }
            Some(Pending::Release(held)) => self.release(connection, held).await,
            None => Ok(()),
        }
    }

    async fn hold(&mut self, connection: &mut Connection, request: Pending) -> Result<(), ClientError> {
        let Pending::Hold { key, buyer, seats, again } = request.clone() else { return Ok(()) };
        self.pending = Some(request);
        let token = self.buyers[buyer].token.clone();
        let answer = shop::hold(connection, &token, self.sale.event, &seats, &key).await?;
        match (answer.status, answer.code().as_str()) {
            (200, _) => {
                let Some(held) = self.promised(&key, buyer, &seats, &answer)? else { return Ok(()) };
                self.tally.held += 1;
                self.tally.resolved += u64::from(again);
                self.holds.push(held);
            }
            (409, code @ "tickets.seats_taken") => {
                if again {
                    self.not_by_oneself(connection, &key, &token, &seats).await?;
                }
                self.write(Step::Refused { key, code: code.to_owned() })?;
                self.tally.refused += 1;
            }
            // The outcome is unknown: the request stays pending and is sent again.
            (503, _) => {
                tokio::time::sleep(KNOCK_AGAIN).await;
                return Ok(());
            }
            _ => self.unexpected(&key, &answer),
        }
        self.pending = None;
        Ok(())
    }

    /// Journals an acknowledged hold. `None` if the response has no reservation.
    fn promised(
        &mut self,
        key: &str,
        buyer: usize,
        seats: &[SeatId],
        answer: &Answer,
    ) -> Result<Option<Held>, ClientError> {
        let Ok(found) = Reservation::from_answer(answer) else {
            self.unexpected(key, answer);
            self.pending = None;
            return Ok(None);
        };
        let promised: BTreeSet<SeatId> = found.seats.iter().map(|seat| seat.id).collect();
        if promised != seats.iter().copied().collect() {
            self.unexpected(key, answer);
        }
        let (reservation, expires_at) = (found.id, found.expires_at);
        self.write(Step::Held { key: key.to_owned(), reservation, seats: found.fences(), expires_at })?;
        Ok(Some(Held { key: key.to_owned(), buyer, seats: seats.to_vec(), reservation, expires_at }))
    }

    /// After a repeated request was refused: the buyer must not hold the seats already, unless
    /// through another request for the same seat.
    async fn not_by_oneself(
        &mut self,
        connection: &mut Connection,
        key: &str,
        token: &str,
        seats: &[SeatId],
    ) -> Result<(), ClientError> {
        let Ok(live) = shop::live_reservations(connection, token).await else {
            return Err(ClientError::Lost(Lost::Unknown(std::io::ErrorKind::UnexpectedEof.into())));
        };
        let known: BTreeSet<ReservationId> = self.holds.iter().map(|held| held.reservation).collect();
        let mut unknown = live.into_iter().filter(|own| !known.contains(&own.id));
        let own = unknown.find(|own| own.seats.iter().any(|seat| seats.contains(&seat.id)));
        if let Some(own) = own {
            self.violations
                .push(Violation::TakenByOneself { key: key.to_owned(), found: format!("{own:?}") });
        }
        Ok(())
    }

    async fn release(&mut self, connection: &mut Connection, held: Held) -> Result<(), ClientError> {
        self.pending = Some(Pending::Release(held.clone()));
        let token = self.buyers[held.buyer].token.clone();
        let answer = shop::release(connection, &token, held.reservation).await?;
        match answer.status {
            200 => {
                self.write(Step::Released { key: held.key })?;
                self.tally.released += 1;
            }
            503 => {
                tokio::time::sleep(KNOCK_AGAIN).await;
                return Ok(());
            }
            _ => self.unexpected(&held.key, &answer),
        }
        self.pending = None;
        Ok(())
    }

    /// Repeats an acknowledged hold: the response must be the same. The ledger compares them.
    async fn repeat(&mut self, connection: &mut Connection) -> Result<(), ClientError> {
        let held = self.holds[self.rng.index(self.holds.len())].clone();
        let token = self.buyers[held.buyer].token.clone();
        let answer = shop::hold(connection, &token, self.sale.event, &held.seats, &held.key).await?;
        match answer.status {
            200 => {
                self.promised(&held.key, held.buyer, &held.seats, &answer)?;
                self.tally.repeated += 1;
            }
            503 => {}
            _ => self.write(Step::Refused { key: held.key, code: answer.show() })?,
        }
        Ok(())
    }

    fn unexpected(&mut self, key: &str, answer: &Answer) {
        self.violations.push(Violation::Unexpected { key: key.to_owned(), found: answer.show() });
    }

    fn write(&mut self, step: Step) -> Result<(), ClientError> {
        Ok(self.journal.write(&Line { at: self.clock.now(), step })?)
    }
}

/// Why a client cannot continue at once.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    #[error(transparent)]
    Lost(#[from] Lost),
    #[error("could not write the journal: {0}")]
    Journal(#[from] std::io::Error),
}
