//! Rooms in Redis compared with the bare Lua scripts: how much of Redis's speed remains.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::bail;
use urr_jobs::{Tasks, pause};
use urr_kernel::{EventId, Ids, UserId};

use super::{
    super::{
        Bench, Progress, Runtimes,
        load::{self, Client, Pace},
        table::named,
        turns::{STOP, Turns, Words},
    },
    SETTINGS,
};
use crate::{
    host::{RedisRooms, RoomCall},
    report::Report,
};

/// Users waiting. With ten times as many a script takes about as long.
const WAITING: usize = 100_000;

/// Concurrent joins while the room is filled.
const JOINERS: usize = 256;

/// The share of the bare script that a join should reach.
const TARGET_PERCENT: f64 = 70.0;

/// Workers process rooms every second.
const ADMIT_EVERY: Duration = Duration::from_secs(1);

/// The rows, in the order of the table.
const ROWS: [(RoomCall, &str); 4] = [
    (RoomCall::BareJoin, "EVALSHA of the script of a join"),
    (RoomCall::Join, "join"),
    (RoomCall::BareStatus, "EVALSHA of the script of a status"),
    (RoomCall::Status, "status"),
];

pub(super) fn run(turns: &Turns, url: &str, bench: &Bench<'_>) -> anyhow::Result<Report> {
    let settings: Vec<_> = SETTINGS.into_iter().chain([("redis.urls", url)]).collect();
    let installed = bench.install("redis", &settings)?;
    let (runtimes, tasks) = (Runtimes::new()?, Tasks::new());
    let client = runtimes.server.block_on(async {
        let rooms = installed.app.redis_rooms().await?;
        let client = fill(rooms, bench).await?;
        // As in `urr serve`, steps are moved to the database.
        let (rooms, event, stop) = (Arc::clone(&client.rooms), client.event, tasks.token());
        tasks.spawn("bench.admission", async move {
            while !stop.is_cancelled() {
                rooms.admit(event).await;
                pause(&stop, None, ADMIT_EVERY).await;
            }
        });
        anyhow::Ok(client)
    })?;
    let names: Vec<String> = ROWS.iter().map(|(_, name)| (*name).to_owned()).collect();
    let sums = turns.rounds(&names, 1, |row, pace, done| {
        let client = RoomClient { call: ROWS[row].0, ..client.clone() };
        Ok(runtimes.server.block_on(load::run(vec![client; pace.clients], pace, &bench.clock, done)))
    });
    // A task that does not stop in time is dropped with its runtime.
    let _ = runtimes.server.block_on(tasks.shutdown(STOP));
    runtimes.stop();
    let words = Words {
        title: format!("rooms in Redis, in process, {}", named(WAITING)),
        command: "queue --redis \"$URL\"",
        first: "bare script",
        judged: 1,
        target_percent: TARGET_PERCENT,
    };
    let mut report = Report::default();
    let rates = turns.tell(&words, names, sums?, &mut report);
    report.line(format_args!("status   {:.1} % of its bare script", rates[3] / rates[2] * 100.0));
    Ok(report)
}

/// Fills a new room.
async fn fill(rooms: Arc<dyn RedisRooms>, bench: &Bench<'_>) -> anyhow::Result<RoomClient> {
    let client = RoomClient {
        rooms,
        event: bench.ids.next(),
        people: (0..WAITING).map(|_| bench.ids.next()).collect(),
        next: Arc::default(),
        ids: bench.ids.clone(),
        call: RoomCall::Join,
    };
    let pace = Pace { clients: JOINERS, warm_up: Duration::ZERO, span: Duration::from_hours(1) };
    let progress = Progress::start(&format!("joining, {}", named(WAITING)));
    let joiners = vec![JoinClient(client.clone()); JOINERS];
    let joined = load::run(joiners, pace, &bench.clock, &progress.done).await;
    progress.end();
    match joined.first_failure {
        None => Ok(client),
        Some(why) => bail!("{} users could not join: {why}", joined.failed),
    }
}

/// Repeats one call: status for waiting users, join for new ones.
#[derive(Clone)]
struct RoomClient {
    rooms: Arc<dyn RedisRooms>,
    event: EventId,
    people: Arc<[UserId]>,
    next: Arc<AtomicUsize>,
    ids: Ids,
    call: RoomCall,
}

impl Client for RoomClient {
    async fn once(&mut self) -> Option<Result<(), String>> {
        let user = match self.call {
            RoomCall::BareJoin | RoomCall::Join => self.ids.next(),
            RoomCall::BareStatus | RoomCall::Status => {
                self.people[self.next.fetch_add(1, Ordering::Relaxed) % self.people.len()]
            }
        };
        Some(self.rooms.call(self.call, self.event, user).await)
    }
}

/// Joins each user once.
#[derive(Clone)]
struct JoinClient(RoomClient);

impl Client for JoinClient {
    async fn once(&mut self) -> Option<Result<(), String>> {
        let RoomClient { rooms, event, people, next, .. } = &self.0;
        let user = *people.get(next.fetch_add(1, Ordering::Relaxed))?;
        Some(rooms.call(RoomCall::Join, *event, user).await)
    }
}
