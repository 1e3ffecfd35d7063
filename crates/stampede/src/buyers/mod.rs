//! Buyers: they hold and release seats, repeat requests that got no response, and journal every
//! step.

mod client;
pub mod journal;
pub mod ledger;

use std::{
    collections::{BTreeSet, HashMap},
    net::SocketAddr,
    ops::AddAssign,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use tokio::task::JoinSet;
use urr_kernel::{Clock, EventId, ReservationId, SeatId, UserId};

use self::{
    client::Client,
    journal::Reader,
    ledger::{Ledger, Violation},
};
use crate::{
    http::{Connection, Lost},
    rng::SeededRng,
    shop::{self, Buyer, Reservation},
};

/// Time limit of a response. A longer one than the server's own would hide a hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// Concurrent connections that verify reservations.
const CHECKERS: usize = 8;

/// Counts of requests by outcome.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Acknowledged holds.
    pub held: u64,
    /// Requests refused because another buyer was faster.
    pub refused: u64,
    /// Acknowledged releases.
    pub released: u64,
    /// Acknowledged holds repeated with the same key.
    pub repeated: u64,
    /// Requests without a response.
    pub unanswered: u64,
    /// Repeated requests that were acknowledged after the first attempt got no response.
    pub resolved: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.held += other.held;
        self.refused += other.refused;
        self.released += other.released;
        self.repeated += other.repeated;
        self.unanswered += other.unanswered;
        self.resolved += other.resolved;
    }
}

/// All buyers and their journals.
#[derive(Debug)]
pub struct Buyers {
    clients: Vec<Client>,
    tokens: HashMap<UserId, String>,
    event: EventId,
    reader: Reader,
    ledger: Ledger,
    clock: Clock,
}

/// What to buy.
#[derive(Debug)]
pub struct SeatSale {
    /// The event.
    pub event: EventId,
    /// The seats that all buyers compete for.
    pub seats: Vec<SeatId>,
}

impl Buyers {
    /// Distributes the buyers over `clients` clients, which write their journals to `dir`.
    pub fn new(
        dir: &Path,
        clients: usize,
        buyers: &[Buyer],
        sale: SeatSale,
        rng: &mut SeededRng,
    ) -> anyhow::Result<Self> {
        let clock = Clock::system();
        let tokens = buyers.iter().map(|buyer| (buyer.user, buyer.token.clone())).collect();
        let (event, sale) = (sale.event, Arc::new(sale));
        let mut made = Vec::with_capacity(clients);
        for number in 0..clients {
            let own = buyers.iter().skip(number).step_by(clients).cloned().collect();
            made.push(Client::new(number, own, &sale, dir, rng.split(), &clock)?);
        }
        let (reader, ledger) = (Reader::new(dir, clients), Ledger::default());
        Ok(Self { clients: made, tokens, event, reader, ledger, clock })
    }

    /// Lets all clients buy until `meanwhile` completes. Requests in progress may then be answered
    /// or lost.
    pub async fn rush<T>(
        &mut self,
        address: SocketAddr,
        meanwhile: impl Future<Output = T>,
    ) -> anyhow::Result<T> {
        let closing = Arc::new(AtomicBool::new(false));
        let mut running = JoinSet::new();
        for mut client in self.clients.drain(..) {
            let closing = Arc::clone(&closing);
            running.spawn(async move {
                let done = client.buy(address, &closing).await;
                done.map(|()| client)
            });
        }
        let out = meanwhile.await;
        closing.store(true, Ordering::SeqCst);
        while let Some(client) = running.join_next().await {
            self.clients.push(client??);
        }
        self.clients.sort_by_key(|client| client.number);
        Ok(out)
    }

    /// Repeats every request whose outcome is unknown until it is known.
    pub async fn settle(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        for client in &mut self.clients {
            let mut connection = Connection::to(address).patience(PATIENCE);
            while client.pending.is_some() {
                client
                    .ask_again(&mut connection)
                    .await
                    .context("the server is up but a repeated request failed")?;
            }
        }
        Ok(())
    }

    /// Reads the journal lines since the last call. Returns the keys of their requests, and
    /// violations.
    pub fn read_journals(&mut self) -> anyhow::Result<(BTreeSet<String>, Vec<Violation>)> {
        let lines = self.reader.added()?;
        let keys = lines.iter().map(|line| line.step.key().to_owned()).collect();
        let mut violations = self.ledger.add(lines);
        for client in &mut self.clients {
            violations.append(&mut client.violations);
        }
        Ok((keys, violations))
    }

    /// The content of the journals so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The counts so far.
    pub fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        for client in &self.clients {
            sum += client.tally;
        }
        sum
    }

    /// Loads the reservations of these requests and compares them with the journal.
    pub async fn verify(
        &self,
        address: SocketAddr,
        keys: impl IntoIterator<Item = String>,
    ) -> anyhow::Result<Vec<Violation>> {
        let mut questions: Vec<Vec<(String, String, ReservationId)>> = vec![Vec::new(); CHECKERS];
        for (at, key) in keys.into_iter().enumerate() {
            let Some(hold) = self.ledger.hold(&key) else { continue };
            let Some(promise) = &hold.promise else { continue };
            questions[at % CHECKERS].push((key, self.tokens[&hold.user].clone(), promise.reservation));
        }
        let mut asking = JoinSet::new();
        for questions in questions {
            asking.spawn(async move {
                let mut connection = Connection::to(address).patience(PATIENCE);
                let mut answers = Vec::with_capacity(questions.len());
                for (key, token, reservation) in questions {
                    answers.push((key, shop::reservation(&mut connection, &token, reservation).await?));
                }
                Ok::<_, Lost>(answers)
            });
        }
        let mut violations = Vec::new();
        while let Some(answers) = asking.join_next().await {
            for (key, answer) in answers?? {
                let found = Reservation::from_answer(&answer);
                let found = found.as_ref().map_err(|_| answer.show());
                violations.extend(self.ledger.judge(&key, found, self.clock.now()));
            }
        }
        Ok(violations)
    }

    /// Compares the seat map with the journals. The map may be half a second old, so only a lasting
    /// difference is a violation.
    pub async fn verify_map(&self, address: SocketAddr) -> anyhow::Result<Vec<Violation>> {
        const STAYS: Duration = Duration::from_secs(5);
        let give_up = self.clock.ticks() + STAYS;
        let mut connection = Connection::to(address).patience(PATIENCE);
        loop {
            let map = shop::seat_states(&mut connection, self.event).await?;
            let violations = self.ledger.judge_map(&map, self.clock.now());
            if violations.is_empty() || self.clock.ticks() > give_up {
                return Ok(violations);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Compares the catalog's count of reserved seats with the locked seats on the map. The catalog
    /// counts messages, so the two agree once each was applied exactly once.
    pub async fn verify_count(&self, address: SocketAddr) -> anyhow::Result<Option<Violation>> {
        const COMES_TO_AGREE: Duration = Duration::from_secs(30);
        let give_up = self.clock.ticks() + COMES_TO_AGREE;
        let mut connection = Connection::to(address).patience(PATIENCE);
        loop {
            let counted = shop::places_reserved(&mut connection, self.event).await?;
            let map = shop::seat_states(&mut connection, self.event).await?;
            let locked = map.values().filter(|status| *status != "available").count() as u64;
            if counted == locked {
                return Ok(None);
            }
            if self.clock.ticks() > give_up {
                return Ok(Some(Violation::WrongCount { counted, locked }));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
