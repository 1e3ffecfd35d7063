//! The rows of `urr bench holds`: what each one starts, and the requests it gets.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, ensure};
use urr_contracts::tickets::Tickets;
use urr_jobs::Tasks;
use urr_kernel::{Actor, Clock, Ids, Role, UserId};
use urr_rpc::{Ctx, REQUEST_BUDGET};

use super::{
    Bench, Installed, Runtimes,
    bare::{self, Claims},
    hold_requests::{self, HoldRequest},
    load::{self, Client, Pace, RequestSource},
    noop,
    table::Measured,
    turns::STOP,
};
use crate::http::Connection;

/// Holds prepared per measured second: more than the fastest row has ever completed. The slow rows
/// have fewer, and enough.
pub(super) const FAST: usize = 60_000;
const SLOW: usize = 12_000;

/// Requests per buyer of the baseline; the rate limit allows 30 a minute.
const COMES_BACK: usize = 10;

/// One row.
#[derive(Debug)]
pub(super) enum HoldRow {
    /// The same gateway, token check, parser and serializer, with a handler that does nothing.
    Noop,
    /// SQLite over HTTP. Concurrent holds are batched, so without group commit there is one fsync
    /// per batch.
    Embedded {
        /// Whether concurrent writes share one fsync.
        group_commit: bool,
    },
    /// SQLite over HTTP, seats and buyers in random order: every hold touches pages of its own.
    Scattered,
    /// SQLite, without HTTP.
    InProcess,
    /// PostgreSQL over HTTP.
    Postgres(String),
    /// Claims and a message only, in process, on SQLite. Each is a transaction of its own, which
    /// makes the effect of group commit visible.
    Bare {
        /// Whether concurrent writes share one fsync.
        group_commit: bool,
    },
    /// The same on PostgreSQL.
    BarePostgres(String),
}

impl HoldRow {
    /// The rows of a run; the baseline first.
    pub(super) fn all(postgres: Option<&str>) -> Vec<Self> {
        let mut rows = vec![
            Self::Noop,
            Self::Embedded { group_commit: true },
            Self::Scattered,
            Self::Embedded { group_commit: false },
            Self::InProcess,
            Self::Bare { group_commit: true },
            Self::Bare { group_commit: false },
        ];
        rows.extend(postgres.map(|url| Self::Postgres(url.to_owned())));
        rows.extend(postgres.map(|url| Self::BarePostgres(url.to_owned())));
        rows
    }

    /// The name in the table.
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

    /// Builds the row, measures it and tears it down.
    pub(super) fn run(
        &self,
        runtimes: &Runtimes,
        bench: &Bench<'_>,
        pace: Pace,
        done: &Arc<AtomicU64>,
    ) -> anyhow::Result<Measured> {
        let seconds = usize::try_from((pace.warm_up + pace.span).as_secs()).expect("a run takes minutes");
        let row = |name: &str, settings: &[(&str, &str)]| {
            Ok::<_, anyhow::Error>(HoldsRow {
                runtimes,
                bench,
                installed: bench.install(name, settings)?,
                pace,
                done,
            })
        };
        match self {
            Self::Noop => row("noop", &[])?.noop((seconds * FAST).div_ceil(COMES_BACK)),
            Self::Embedded { group_commit } => {
                let value = group_commit.to_string();
                let row = row(&format!("sqlite-{value}"), &[("storage.group_commit", &value)])?;
                row.http(seconds * FAST, Order::OfTheHall)
            }
            Self::Scattered => row("scattered", &[])?.http(seconds * FAST, Order::None),
            Self::InProcess => row("in-process", &[])?.in_process(seconds * FAST),
            Self::Postgres(url) => {
                let row = row("postgres", &[("storage.kind", "postgres"), ("storage.url", url)])?;
                runtimes.server.block_on(row.installed.app.migrate())?;
                row.http(seconds * SLOW, Order::OfTheHall)
            }
            Self::Bare { group_commit } => {
                let value = group_commit.to_string();
                row(&format!("bare-{value}"), &[("storage.group_commit", &value)])?.bare()
            }
            Self::BarePostgres(url) => {
                row("bare-postgres", &[("storage.kind", "postgres"), ("storage.url", url)])?.bare()
            }
        }
    }
}

/// The order in which seats are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Row by row, each by a newer buyer than the last: neighbours share the pages they touch.
    OfTheHall,
    /// Random seats, random buyers.
    None,
}

/// One row while it is measured.
struct HoldsRow<'r> {
    runtimes: &'r Runtimes,
    bench: &'r Bench<'r>,
    installed: Installed,
    pace: Pace,
    done: &'r Arc<AtomicU64>,
}

impl HoldsRow<'_> {
    fn noop(&self, buyers: usize) -> anyhow::Result<Measured> {
        let (Bench { clock, ids, .. }, tasks) = (self.bench, Tasks::new());
        let requests = hold_requests::made_up(buyers, &self.installed.tokens, ids);
        let routes = noop::routes(clock, ids);
        let address = self.installed.app.serve_behind_gateway("tickets", routes, &tasks);
        let address = self.runtimes.server.block_on(address)?;
        let measured =
            self.runtimes.send(&RequestSource::endless(requests), address, clock, self.pace, self.done);
        // A task that does not stop in time is dropped with its runtime.
        let _ = self.runtimes.server.block_on(tasks.shutdown(STOP));
        measured
    }

    fn http(&self, holds: usize, order: Order) -> anyhow::Result<Measured> {
        let Bench { clock, ids, .. } = self.bench;
        let (server, load) = (&self.runtimes.server, &self.runtimes.load);
        let mut hold_requests =
            server.block_on(hold_requests::hold_requests(self.bench, &self.installed, holds))?;
        if order == Order::None {
            hold_requests::scatter(&mut hold_requests, ids);
        }
        let tokens = &self.installed.tokens;
        let strangers = hold_requests::requests(&hold_requests::strangers(&hold_requests, ids), tokens);
        let requests = RequestSource::once(hold_requests::requests(&hold_requests, tokens));
        let running = server.block_on(self.installed.app.serve())?;
        let address = running.address();
        let measured = load
            .block_on(refused(address, &strangers))
            .and_then(|()| self.runtimes.send(&requests, address, clock, self.pace, self.done));
        server.block_on(running.stop())?;
        measured
    }

    fn in_process(&self, holds: usize) -> anyhow::Result<Measured> {
        let Bench { clock, ids, .. } = self.bench;
        self.runtimes.server.block_on(async {
            let hold_requests =
                Arc::new(hold_requests::hold_requests(self.bench, &self.installed, holds).await?);
            let tasks = Tasks::new();
            let domains = self.installed.app.open(&tasks).await?;
            domains.start_background()?;
            let client = Direct {
                tickets: domains.tickets(),
                hold_requests: Arc::clone(&hold_requests),
                next: Arc::default(),
                clock: clock.clone(),
                ids: ids.clone(),
            };
            for HoldRequest { user, hold } in hold_requests::strangers(&hold_requests, ids) {
                // The hold is refused, but the seats of the event are loaded now.
                let _ = client.tickets.hold(&client.buyer(user), hold).await;
            }
            let clients = (0..self.pace.clients).map(|_| client.clone()).collect();
            let measured = load::run(clients, self.pace, clock, self.done).await;
            // A task that does not stop in time is dropped with its runtime.
            let _ = tasks.shutdown(STOP).await;
            Ok(measured)
        })
    }

    fn bare(&self) -> anyhow::Result<Measured> {
        let Bench { clock, ids, .. } = self.bench;
        self.runtimes.server.block_on(async {
            let db = self.installed.app.database(&bare::DOMAIN).await?;
            let client = || Claims { db: db.clone(), clock: clock.clone(), ids: ids.clone() };
            let clients = (0..self.pace.clients).map(|_| client()).collect();
            Ok(load::run(clients, self.pace, clock, self.done).await)
        })
    }
}

/// Sends requests that must be refused.
async fn refused(address: SocketAddr, requests: &[Vec<u8>]) -> anyhow::Result<()> {
    let mut connection = Connection::open(address).await.context("could not connect to the server")?;
    for request in requests {
        let answer = connection.expect_200(request).await?;
        let answer = answer.err().unwrap_or_default();
        ensure!(
            answer.contains("\"tickets.seats_not_found\""),
            "a hold of a seat that does not exist was not refused: {answer}"
        );
    }
    Ok(())
}

/// A client that calls the service as a route handler would.
#[derive(Clone)]
struct Direct {
    tickets: Arc<dyn Tickets>,
    hold_requests: Arc<Vec<HoldRequest>>,
    next: Arc<AtomicUsize>,
    clock: Clock,
    ids: Ids,
}

impl Direct {
    fn buyer(&self, user: UserId) -> Ctx {
        let actor = Actor::User { id: user, role: Role::User };
        Ctx::new(self.ids.next(), actor, self.clock.clone(), REQUEST_BUDGET)
    }
}

impl Client for Direct {
    async fn once(&mut self) -> Option<Result<(), String>> {
        let hold_request = self.hold_requests.get(self.next.fetch_add(1, Ordering::Relaxed))?;
        let mut hold = hold_request.hold.clone();
        hold.idempotency_key = Some(hold_request.user.to_string());
        let answer = self.tickets.hold(&self.buyer(hold_request.user), hold).await;
        Some(answer.map(drop).map_err(|error| error.to_string()))
    }
}
