//! The rows of the table: what is built, what is sent to it.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use urr_contracts::tickets::Tickets;
use urr_http::Server;
use urr_jobs::Tasks;
use urr_kernel::{Actor, Clock, Ids, Role, UserId};
use urr_rpc::{Ctx, REQUEST_BUDGET};
use urr_telemetry::{Health, Metrics};

use super::{
    Runtimes,
    bare::{self, Claims},
    disk::Bench,
    goods::{self, Wish},
    load::{self, Client, Deck, HttpClient, Pace, Wire},
    noop,
    report::Measured,
};
use crate::{
    config::{self, Config, Flag, Input, Values},
    failure::Failure,
    migrate,
    serve::Running,
    stores::{self, Databases},
    wire::{self, Domains, Ground},
};

/// Holds prepared per second that is to be measured: more than the fastest row has ever made, and so many that the slow
/// rows do not run out.
pub(super) const FAST: usize = 60_000;
const SLOW: usize = 12_000;

/// How often a buyer of the baseline comes back: less often than the limits allow, which is 30 times a minute.
const COMES_BACK: usize = 10;

/// How long background work may take to end.
pub(super) const STOP: Duration = Duration::from_secs(5);

/// One row.
#[derive(Debug)]
pub(super) enum Scene {
    /// The same edge, token check, parser and printer, and a handler that does nothing.
    Noop,
    /// Files, over HTTP. Holds of one moment are one write, so that without group commit they have a sync per batch.
    Embedded {
        /// Whether concurrent writes share one fsync.
        group_commit: bool,
    },
    /// Files, over HTTP, seats and buyers in no order: every hold touches pages of its own.
    Scattered,
    /// Files, without HTTP.
    InProcess,
    /// A server, over HTTP.
    Postgres(String),
    /// Claims and a message and nothing else, without HTTP, in files. Each is a transaction of its own, so that sharing a sync shows here.
    Bare {
        /// Whether concurrent writes share one fsync.
        group_commit: bool,
    },
    /// The same on a server.
    BarePostgres(String),
}

impl Scene {
    /// The rows of a run; the baseline first.
    pub(super) fn all(postgres: Option<&str>) -> Vec<Self> {
        let mut scenes = vec![
            Self::Noop,
            Self::Embedded { group_commit: true },
            Self::Scattered,
            Self::Embedded { group_commit: false },
            Self::InProcess,
            Self::Bare { group_commit: true },
            Self::Bare { group_commit: false },
        ];
        scenes.extend(postgres.map(|url| Self::Postgres(url.to_owned())));
        scenes.extend(postgres.map(|url| Self::BarePostgres(url.to_owned())));
        scenes
    }

    /// What the row is called.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Noop => "no-op handler, HTTP",
            Self::Embedded { group_commit: true } => "holds, SQLite, group commit, HTTP",
            Self::Scattered => "holds, SQLite, group commit, HTTP, scattered",
            Self::Embedded { group_commit: false } => "holds, SQLite, one sync per batch, HTTP",
            Self::InProcess => "holds, SQLite, group commit, in process",
            Self::Postgres(_) => "holds, PostgreSQL, HTTP",
            Self::Bare { group_commit: true } => "bare claims, SQLite, group commit, in process",
            Self::Bare { group_commit: false } => "bare claims, SQLite, one sync each, in process",
            Self::BarePostgres(_) => "bare claims, PostgreSQL, in process",
        }
    }

    /// Builds, measures, tears down.
    pub(super) fn run(
        &self,
        runtimes: &Runtimes,
        bench: &Bench,
        pace: Pace,
        done: &Arc<AtomicU64>,
    ) -> Result<Measured, Failure> {
        let ground = ground();
        let seconds = usize::try_from((pace.warm_up + pace.span).as_secs()).expect("a run is short");
        let setup = |name: &str, settings: &[(&str, &str)]| setup(&bench.path(name), settings, &ground.ids);
        match self {
            Self::Noop => {
                let (_, config) = setup("noop", &[])?;
                noop_row(runtimes, &config, &ground, (seconds * FAST).div_ceil(COMES_BACK), pace, done)
            }
            Self::Embedded { group_commit } => {
                let value = group_commit.to_string();
                let made = setup(&format!("sqlite-{value}"), &[("storage.group_commit", &value)])?;
                http_row(runtimes, made, &ground, (seconds * FAST, Order::OfTheHall), pace, done)
            }
            Self::Scattered => {
                let made = setup("scattered", &[])?;
                http_row(runtimes, made, &ground, (seconds * FAST, Order::None), pace, done)
            }
            Self::InProcess => {
                let (_, config) = setup("in-process", &[])?;
                in_process_row(runtimes, &config, &ground, seconds * FAST, pace, done)
            }
            Self::Postgres(url) => {
                let made = setup("postgres", &[("storage.kind", "postgres"), ("storage.url", url)])?;
                runtimes.server.block_on(migrate::migrate(&made.1))?;
                http_row(runtimes, made, &ground, (seconds * SLOW, Order::OfTheHall), pace, done)
            }
            Self::Bare { group_commit } => {
                let value = group_commit.to_string();
                let (_, config) = setup(&format!("bare-{value}"), &[("storage.group_commit", &value)])?;
                let _lock = stores::lock(&config)?;
                bare_row(runtimes, &config, &ground, pace, done)
            }
            Self::BarePostgres(url) => {
                let settings = [("storage.kind", "postgres"), ("storage.url", url.as_str())];
                bare_row(runtimes, &setup("bare-postgres", &settings)?.1, &ground, pace, done)
            }
        }
    }
}

/// In which order seats are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Row by row, each by a buyer newer than the last: neighbours share the pages they touch.
    OfTheHall,
    /// Anywhere, by anybody.
    None,
}

pub(super) fn ground() -> Ground {
    let clock = Clock::system();
    Ground { ids: Ids::random(clock.clone()), clock, health: Health::new(), metrics: Metrics::install() }
}

/// The configuration of one row. Neither the environment nor a file has a say: rows must be comparable.
pub(super) fn setup(
    data_dir: &Path,
    settings: &[(&str, &str)],
    ids: &Ids,
) -> Result<(Values, Config), Failure> {
    let secret =
        format!("{:032x}{:032x}", u128::from_le_bytes(ids.bytes()), u128::from_le_bytes(ids.bytes()));
    let data_dir_text = data_dir.to_string_lossy();
    let own = [
        ("data_dir", &*data_dir_text),
        ("listen", "127.0.0.1:0"),
        ("demo", "false"),
        // What is measured is the sale; `urr bench queue` measures the line before it.
        ("queue.guard", "false"),
        ("security.secret", &secret),
    ];
    let flags = own.iter().chain(settings).map(|(key, value)| Flag {
        name: format!("bench {key}"),
        key: (*key).to_owned(),
        value: (*value).to_owned(),
    });
    let input = Input { working_dir: data_dir.to_owned(), flags: flags.collect(), ..Input::default() };
    Ok(config::load(&input)?)
}

fn noop_row(
    runtimes: &Runtimes,
    config: &Config,
    ground: &Ground,
    buyers: usize,
    pace: Pace,
    done: &Arc<AtomicU64>,
) -> Result<Measured, Failure> {
    let requests = goods::made_up(buyers, config, &ground.clock, &ground.ids);
    let failed = |error| Failure::because("the baseline cannot be served", &error);
    let server = runtimes.server.block_on(Server::bind(config.listen)).map_err(failed)?;
    let address = server.local_addr().map_err(failed)?;
    let tasks = Tasks::new();
    let (door, limits, token) = (noop::whole(config, ground), wire::limits(config), tasks.token());
    runtimes.server.block_on(async {
        tasks.spawn("bench.noop", async move {
            // The only error is the listener's, and then nobody is answered: the load says so.
            let _ = server.serve(door, limits, token).await;
        });
    });
    let measured = send(runtimes, &Deck::endless(requests), address, &ground.clock, pace, done);
    // What does not end in time ends with its runtime.
    let _ = runtimes.server.block_on(tasks.shutdown(STOP));
    measured
}

fn http_row(
    runtimes: &Runtimes,
    (values, config): (Values, Config),
    ground: &Ground,
    (holds, order): (usize, Order),
    pace: Pace,
    done: &Arc<AtomicU64>,
) -> Result<Measured, Failure> {
    let mut wishes = runtimes.server.block_on(goods::wishes(&config, holds, &ground.clock, &ground.ids))?;
    if order == Order::None {
        goods::scatter(&mut wishes, &ground.ids);
    }
    let written =
        |wishes: &[Wish]| goods::requests(wishes, "/api/seats/reserve", &config, &ground.clock, &ground.ids);
    let (strangers, requests) = (written(&goods::strangers(&wishes, &ground.ids)), written(&wishes));
    let running = runtimes.server.block_on(Running::start(values, config))?;
    let measured = runtimes
        .load
        .block_on(refused(running.public, &strangers))
        .and_then(|()| send(runtimes, &Deck::once(requests), running.public, &ground.clock, pace, done));
    runtimes.server.block_on(running.stop())?;
    measured
}

/// Sends requests that are to be refused.
async fn refused(address: std::net::SocketAddr, requests: &[Vec<u8>]) -> Result<(), Failure> {
    let broken = |error| Failure::because("the server cannot be reached", &error);
    let mut wire = Wire::connect(address).await.map_err(broken)?;
    for request in requests {
        let reply = wire.ask(request).await.map_err(broken)?;
        if reply.code() != "tickets.seats_not_found" {
            return Err(Failure::new(format!("a seat that is not there is answered {}", reply.body)));
        }
    }
    Ok(())
}

/// Lets clients play the deck.
pub(super) fn send(
    runtimes: &Runtimes,
    deck: &Arc<Deck>,
    address: std::net::SocketAddr,
    clock: &Clock,
    pace: Pace,
    done: &Arc<AtomicU64>,
) -> Result<Measured, Failure> {
    runtimes.load.block_on(async {
        let clients = HttpClient::connect(pace.clients, address, deck).await;
        let clients = clients.map_err(|error| Failure::because("the server cannot be reached", &error))?;
        Ok(load::run(clients, pace, clock, done).await)
    })
}

fn in_process_row(
    runtimes: &Runtimes,
    config: &Config,
    ground: &Ground,
    holds: usize,
    pace: Pace,
    done: &Arc<AtomicU64>,
) -> Result<Measured, Failure> {
    runtimes.server.block_on(async {
        let wishes = Arc::new(goods::wishes(config, holds, &ground.clock, &ground.ids).await?);
        let databases = Databases::open(config)?;
        let domains = Domains::build(config, &databases, &ground.clock, &ground.ids, &Tasks::new())?;
        let tasks = Tasks::new();
        wire::start_background(config, &domains, &databases, ground, &tasks)?;
        let tickets = domains.tickets.as_ref().expect("the benchmark runs every role");
        for Wish { user, hold } in goods::strangers(&wishes, &ground.ids) {
            // It is refused; the hall is known now.
            let _ = tickets.hold(&buyer(ground, user), hold).await;
        }
        let next = Arc::new(AtomicUsize::new(0));
        let client = || Direct {
            tickets: tickets.clone(),
            wishes: Arc::clone(&wishes),
            next: Arc::clone(&next),
            ground: ground.clone(),
        };
        let clients = (0..pace.clients).map(|_| client()).collect();
        let measured = load::run(clients, pace, &ground.clock, done).await;
        // What does not end in time ends with its runtime.
        let _ = tasks.shutdown(STOP).await;
        Ok(measured)
    })
}

fn bare_row(
    runtimes: &Runtimes,
    config: &Config,
    ground: &Ground,
    pace: Pace,
    done: &Arc<AtomicU64>,
) -> Result<Measured, Failure> {
    runtimes.server.block_on(async {
        let db = bare::open(config).await?;
        let (clock, ids) = (&ground.clock, &ground.ids);
        let client = || Claims { db: db.clone(), clock: clock.clone(), ids: ids.clone() };
        let clients = (0..pace.clients).map(|_| client()).collect();
        Ok(load::run(clients, pace, clock, done).await)
    })
}

fn buyer(ground: &Ground, user: UserId) -> Ctx {
    let actor = Actor::User { id: user, role: Role::User };
    Ctx::new(ground.ids.next(), actor, ground.clock.clone(), REQUEST_BUDGET)
}

/// A client that calls the service as a route handler would.
struct Direct {
    tickets: Arc<dyn Tickets>,
    wishes: Arc<Vec<Wish>>,
    next: Arc<AtomicUsize>,
    ground: Ground,
}

impl Client for Direct {
    async fn once(&mut self) -> Option<Result<(), String>> {
        let wish = self.wishes.get(self.next.fetch_add(1, Ordering::Relaxed))?;
        let mut hold = wish.hold.clone();
        hold.idempotency_key = Some(wish.user.to_string());
        Some(
            self.tickets
                .hold(&buyer(&self.ground, wish.user), hold)
                .await
                .map(|_| ())
                .map_err(|error| error.to_string()),
        )
    }
}
