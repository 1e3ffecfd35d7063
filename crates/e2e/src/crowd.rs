//! The buyers: they hold seats, give some back, ask again when no answer came, and write everything down.

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
use urr_kernel::{Clock, EventId, ReservationId, SeatId, Timestamp, UserId};

use crate::{
    dice::Dice,
    http::{Answer, Connection, Lost},
    journal::{Journal, Line, Reader, Step},
    ledger::{Ledger, Violation},
    shop::{self, Buyer, Reservation},
};

/// Seats one buyer may hold of one event.
const SEATS_PER_BUYER: usize = 4;

/// Pause before knocking again at a door that is shut.
const KNOCK_AGAIN: Duration = Duration::from_millis(2);

/// How long one answer may take. Longer than the server's own limit would only hide a hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// Connections that ask about reservations side by side.
const CHECKERS: usize = 8;

/// Of a hundred steps, how many give a hold back, and how many ask again for a hold that was already promised.
const RELEASES: u64 = 40;
const REPEATS: u64 = 5;

/// How much was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Holds promised.
    pub held: u64,
    /// Requests refused because somebody was faster.
    pub refused: u64,
    /// Releases promised.
    pub released: u64,
    /// Promised holds asked for again with the same key.
    pub repeated: u64,
    /// Requests without an answer.
    pub unanswered: u64,
    /// Holds promised on asking again: made before and unanswered, or made only then.
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

/// All buyers together with what they wrote down.
#[derive(Debug)]
pub struct Crowd {
    clients: Vec<Client>,
    tokens: HashMap<UserId, String>,
    event: EventId,
    reader: Reader,
    ledger: Ledger,
    clock: Clock,
}

/// Where and what to buy.
#[derive(Debug)]
pub struct Goods {
    /// The event.
    pub event: EventId,
    /// The seats everybody wants.
    pub seats: Vec<SeatId>,
}

impl Crowd {
    /// Shares the buyers out among `clients` clients that want the same goods and keep their journals in `dir`.
    pub fn new(
        dir: &Path,
        clients: usize,
        buyers: &[Buyer],
        goods: Goods,
        dice: &mut Dice,
    ) -> anyhow::Result<Self> {
        let clock = Clock::system();
        let tokens = buyers.iter().map(|buyer| (buyer.user, buyer.token.clone())).collect();
        let (event, goods) = (goods.event, Arc::new(goods));
        let mut made = Vec::with_capacity(clients);
        for number in 0..clients {
            made.push(Client {
                number,
                dice: dice.split(),
                buyers: buyers.iter().skip(number).step_by(clients).cloned().collect(),
                goods: Arc::clone(&goods),
                journal: Journal::create(dir, number)?,
                clock: clock.clone(),
                asked: 0,
                pending: None,
                holds: Vec::new(),
                tally: Tally::default(),
                violations: Vec::new(),
            });
        }
        let (reader, ledger) = (Reader::new(dir, clients), Ledger::default());
        Ok(Self { clients: made, tokens, event, reader, ledger, clock })
    }

    /// Lets everybody buy until `meanwhile` is over. What is under way then is answered or lost, as the server decides.
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

    /// Asks again for everything whose answer is not known, until all of it is.
    pub async fn settle(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        for client in &mut self.clients {
            let mut connection = Connection::to(address).patience(PATIENCE);
            while client.pending.is_some() {
                client.ask_again(&mut connection).await.context("the server is up and must answer")?;
            }
        }
        Ok(())
    }

    /// Reads what was written since the last call. Gives the requests it is about, and promises broken on the way.
    pub fn read_journals(&mut self) -> anyhow::Result<(BTreeSet<String>, Vec<Violation>)> {
        let lines = self.reader.added()?;
        let keys = lines.iter().map(|line| line.step.key().to_owned()).collect();
        let mut violations = self.ledger.add(lines);
        for client in &mut self.clients {
            violations.append(&mut client.violations);
        }
        Ok((keys, violations))
    }

    /// What was written down so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What was done so far.
    pub fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        for client in &self.clients {
            sum += client.tally;
        }
        sum
    }

    /// Asks the server about these requests and compares its answers with the promises.
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

    /// Compares the map with the journals. The server may show a map that is half a second old, so a difference is only
    /// one if it stays.
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

    /// Compares the number of reserved places that the catalog shows with the seats that are locked. It learns of every
    /// hold and release from the bus, so it comes to agree once every message was applied, each exactly once.
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

/// One client with several buyers. It does one thing at a time.
#[derive(Debug)]
struct Client {
    number: usize,
    dice: Dice,
    buyers: Vec<Buyer>,
    goods: Arc<Goods>,
    journal: Journal,
    clock: Clock,
    asked: u64,
    /// What was sent and not answered.
    pending: Option<Pending>,
    holds: Vec<Held>,
    tally: Tally,
    violations: Vec<Violation>,
}

/// A hold that was promised and not given back.
#[derive(Clone, Debug)]
struct Held {
    key: String,
    buyer: usize,
    seats: Vec<SeatId>,
    reservation: ReservationId,
    expires_at: Timestamp,
}

/// A request without an answer.
#[derive(Clone, Debug)]
enum Pending {
    Hold { key: String, buyer: usize, seats: Vec<SeatId>, again: bool },
    Release(Held),
}

impl Client {
    async fn buy(&mut self, address: SocketAddr, closing: &AtomicBool) -> anyhow::Result<()> {
        let mut connection = Connection::to(address).patience(PATIENCE);
        while !closing.load(Ordering::SeqCst) {
            let step = if self.pending.is_some() {
                self.ask_again(&mut connection).await
            } else {
                self.something(&mut connection).await
            };
            match step {
                Ok(()) => {}
                Err(Stuck::Lost(Lost::NotSent(_))) => tokio::time::sleep(KNOCK_AGAIN).await,
                Err(Stuck::Lost(Lost::Unknown(_))) => self.tally.unanswered += 1,
                Err(Stuck::Journal(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn something(&mut self, connection: &mut Connection) -> Result<(), Stuck> {
        let now = self.clock.now();
        self.holds.retain(|held| held.expires_at > now);
        let roll = self.dice.below(100);
        if roll < REPEATS && !self.holds.is_empty() {
            return self.repeat(connection).await;
        }
        let free: Vec<usize> = (0..self.buyers.len()).filter(|buyer| self.room(*buyer) > 0).collect();
        if free.is_empty() || (roll < REPEATS + RELEASES && !self.holds.is_empty()) {
            let held = self.holds.swap_remove(self.dice.index(self.holds.len()));
            self.write(Step::Releasing { key: held.key.clone() })?;
            return self.release(connection, held).await;
        }
        let buyer = free[self.dice.index(free.len())];
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
        let count = 1 + self.dice.index(most);
        let mut seats = BTreeSet::new();
        while seats.len() < count {
            seats.insert(self.goods.seats[self.dice.index(self.goods.seats.len())]);
        }
        seats.into_iter().collect()
    }

    async fn ask_again(&mut self, connection: &mut Connection) -> Result<(), Stuck> {
        match self.pending.take() {
            Some(Pending::Hold { key, buyer, seats, .. }) => {
                self.hold(connection, Pending::Hold { key, buyer, seats, again: true }).await
            }
            Some(Pending::Release(held)) => self.release(connection, held).await,
            None => Ok(()),
        }
    }

    async fn hold(&mut self, connection: &mut Connection, request: Pending) -> Result<(), Stuck> {
        let Pending::Hold { key, buyer, seats, again } = request.clone() else { return Ok(()) };
        self.pending = Some(request);
        let token = self.buyers[buyer].token.clone();
        let answer = shop::hold(connection, &token, self.goods.event, &seats, &key).await?;
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
            // Nothing is known yet: the request stays pending and is sent again.
            (503, _) => {
                tokio::time::sleep(KNOCK_AGAIN).await;
                return Ok(());
            }
            _ => self.unexpected(&key, &answer),
        }
        self.pending = None;
        Ok(())
    }

    /// Writes a promise down. None if the answer is not a promise after all.
    fn promised(
        &mut self,
        key: &str,
        buyer: usize,
        seats: &[SeatId],
        answer: &Answer,
    ) -> Result<Option<Held>, Stuck> {
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

    /// After a refusal on asking again: the seats must not be in the buyer's own hands, unless by another request that
    /// happened to want the same seat.
    async fn not_by_oneself(
        &mut self,
        connection: &mut Connection,
        key: &str,
        token: &str,
        seats: &[SeatId],
    ) -> Result<(), Stuck> {
        let Ok(live) = shop::live_reservations(connection, token).await else {
            return Err(Stuck::Lost(Lost::Unknown(std::io::ErrorKind::UnexpectedEof.into())));
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

    async fn release(&mut self, connection: &mut Connection, held: Held) -> Result<(), Stuck> {
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

    /// Asks again for a hold that was promised: the answer must be the same promise. The ledger compares.
    async fn repeat(&mut self, connection: &mut Connection) -> Result<(), Stuck> {
        let held = self.holds[self.dice.index(self.holds.len())].clone();
        let token = self.buyers[held.buyer].token.clone();
        let answer = shop::hold(connection, &token, self.goods.event, &held.seats, &held.key).await?;
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

    fn write(&mut self, step: Step) -> Result<(), Stuck> {
        Ok(self.journal.write(&Line { at: self.clock.now(), step })?)
    }
}

/// Why a client cannot go on at once.
#[derive(Debug, thiserror::Error)]
enum Stuck {
    #[error(transparent)]
    Lost(#[from] Lost),
    #[error("the journal cannot be written: {0}")]
    Journal(#[from] std::io::Error),
}
