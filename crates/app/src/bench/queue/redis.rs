//! Rooms in Redis beside the bare scripts: what is left of Redis's own speed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use urr_jobs::{Tasks, pause};
use urr_kernel::{EventId, Ids, UserId};
use urr_queue::{Closed, Room};

use super::{
    super::{
        Progress, Runtimes,
        disk::Bench,
        load::{self, Client, Pace},
        report::{Measured, named},
        scenes,
        turns::{Turns, Words},
    },
    SETTINGS,
};
use crate::{
    failure::Failure,
    roles::Role,
    say::say,
    serve::prepare,
    stores::{self, Databases},
    wire::Ground,
};

/// How many wait. A script takes about as long with ten times as many.
const WAITING: usize = 100_000;

/// Who joins at the same time while the room fills.
const JOINERS: usize = 256;

/// The share of the bare script that a join should reach.
const TARGET_PERCENT: f64 = 70.0;

/// Workers look at rooms every second.
const ADMIT_EVERY: Duration = Duration::from_secs(1);

/// What is measured, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    BareJoin,
    Join,
    BareStatus,
    Status,
}

const ROWS: [(What, &str); 4] = [
    (What::BareJoin, "EVALSHA of the script of a join"),
    (What::Join, "join"),
    (What::BareStatus, "EVALSHA of the script of a status"),
    (What::Status, "status"),
];

/// Measures and prints one table.
pub(super) fn run(turns: &Turns, url: &str, bench: &Bench) -> Result<(), Failure> {
    let ground = scenes::ground();
    let settings: Vec<_> = SETTINGS.into_iter().chain([("redis.urls", url)]).collect();
    let (_, config) = scenes::setup(&bench.path("redis"), &settings, &ground.ids)?;
    let (runtimes, tasks) = (Runtimes::new()?, Tasks::new());
    let line = runtimes.server.block_on(async {
        let databases = Databases::open(&config)?;
        prepare(&config, &databases, &ground.clock).await?;
        let kv = stores::redis(&config, &ground.clock)?.expect("the benchmark configures Redis");
        let (clock, ids) = (ground.clock.clone(), ground.ids.clone());
        let limits = config.queue.limits;
        let room = Room::redis(kv, databases.of(Role::Queue), clock, ids, limits, Duration::ZERO);
        let line = Line::fill(Arc::new(room), &ground).await?;
        // As in a process that serves, steps are moved to the database.
        let (room, stop) = (Arc::clone(&line.room), tasks.token());
        tasks.spawn("bench.admission", async move {
            while !stop.is_cancelled() {
                // A room that cannot be worked on refuses those who ask, which is counted.
                let _ = room.admit(line.event).await;
                pause(&stop, None, ADMIT_EVERY).await;
            }
            drop(databases);
        });
        Ok::<_, Failure>(line)
    })?;
    let names: Vec<String> = ROWS.iter().map(|(_, name)| (*name).to_owned()).collect();
    let sums = turns.rounds(&names, 1, |row, pace, done| {
        let asker = |_| line.asker(ROWS[row].0);
        let askers = (0..pace.clients).map(asker).collect();
        Ok(runtimes.server.block_on(load::run(askers, pace, &ground.clock, done)))
    });
    // What does not end in time ends with its runtime.
    let _ = runtimes.server.block_on(tasks.shutdown(scenes::STOP));
    runtimes.stop();
    let words = Words {
        title: format!("rooms in Redis, in process, {}", named(WAITING)),
        command: "queue --redis \"$URL\"",
        first: "bare script",
        judged: 1,
        target_percent: TARGET_PERCENT,
    };
    let rates = turns.tell(&words, names, sums?)?;
    say!("status   {:.1} % of its bare script", rates[3] / rates[2] * 100.0);
    Ok(())
}

/// A room that people wait in.
struct Line {
    room: Arc<Room>,
    event: EventId,
    people: Arc<[UserId]>,
    next: Arc<AtomicUsize>,
    ids: Ids,
}

impl Line {
    async fn fill(room: Arc<Room>, ground: &Ground) -> Result<Self, Failure> {
        let people: Arc<[UserId]> = (0..WAITING).map(|_| ground.ids.next()).collect();
        let (event, next) = (ground.ids.next(), Arc::new(AtomicUsize::new(0)));
        let line = Self { room, event, people, next, ids: ground.ids.clone() };
        let filler = |_| Filler(line.asker(What::Join));
        let pace = Pace { clients: JOINERS, warm_up: Duration::ZERO, span: Duration::from_hours(1) };
        let progress = Progress::start(&format!("joining, {}", named(WAITING)));
        let fillers = (0..JOINERS).map(filler).collect();
        let joined: Measured = load::run(fillers, pace, &ground.clock, &progress.done).await;
        progress.end();
        match joined.first_failure {
            None => Ok(line),
            Some(why) => Err(Failure::new(format!("{} people could not join: {why}", joined.failed))),
        }
    }

    fn asker(&self, what: What) -> Asker {
        Asker {
            room: Arc::clone(&self.room),
            event: self.event,
            people: Arc::clone(&self.people),
            next: Arc::clone(&self.next),
            ids: self.ids.clone(),
            what,
        }
    }
}

/// Asks one thing again and again: the people in line where they stand, and new ones for a place.
struct Asker {
    room: Arc<Room>,
    event: EventId,
    people: Arc<[UserId]>,
    next: Arc<AtomicUsize>,
    ids: Ids,
    what: What,
}

impl Client for Asker {
    async fn once(&mut self) -> Option<Result<(), String>> {
        let (room, event) = (&self.room, self.event);
        let known = || self.people[self.next.fetch_add(1, Ordering::Relaxed) % self.people.len()];
        let asked: Result<(), Closed> = match self.what {
            What::BareJoin => room.bare_check(event, self.ids.next()).await,
            What::Join => room.check(event, self.ids.next(), None).await.map(drop),
            What::BareStatus => room.bare_status(event, known()).await,
            What::Status => room.status(event, known()).await.map(drop),
        };
        Some(asked.map_err(|error| error.to_string()))
    }
}

/// Lets everybody join once.
struct Filler(Asker);

impl Client for Filler {
    async fn once(&mut self) -> Option<Result<(), String>> {
        let Asker { room, event, people, next, .. } = &self.0;
        let user = *people.get(next.fetch_add(1, Ordering::Relaxed))?;
        Some(room.check(*event, user, None).await.map(drop).map_err(|error| error.to_string()))
    }
}
