//! Rooms in this process's memory, with their journal on disk.
//!
//! A request locks one event's hall for about a microsecond, decides, hands its steps to the journal and lets go; it is answered when
//! the journal has them. At start the journal is read back.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use urr_db::{Db, Tx};
use urr_jobs::Tasks;
use urr_kernel::{Clock, EventId, Ids, Timestamp, UserId};
use uuid::Uuid;

use super::{Answer, Closed, Order};
use crate::{
    hall::{Hall, Promise, Standing, Totals},
    journal::{
        Entry, Step, Why, store,
        writer::{Mark, Writer},
    },
    settings::Limits,
};

/// Entries read at a time when a journal is read back.
const PAGE: i64 = 20_000;
/// People in line whose last sign of life is looked at per event and second: a million in under two minutes, for some 2 ms each.
const SWEEP: usize = 10_000;

/// Rooms by event.
pub struct Memory {
    halls: RwLock<HashMap<EventId, Arc<Mutex<Numbered>>>>,
    writer: Writer,
    db: Db,
    clock: Clock,
    ids: Ids,
    limits: Limits,
}

/// A hall and where its journal is.
#[derive(Debug)]
struct Numbered {
    hall: Hall,
    generation: u64,
    seq: u64,
}

impl Memory {
    /// Reads every room back and goes on writing where the journal ends.
    pub(super) async fn load(
        db: Db,
        clock: Clock,
        ids: Ids,
        limits: Limits,
        tasks: &Tasks,
    ) -> Result<Self, urr_db::Error> {
        let now = clock.now();
        let mut halls = HashMap::new();
        let mut last = EventId::from_uuid(Uuid::nil());
        loop {
            let lives =
                db.read("queue.rooms", async |tx: &mut Tx<'_>| store::lives(tx, last, PAGE).await).await?;
            for life in &lives {
                let numbered = read_back(&db, life, now).await?;
                halls.insert(life.event, Arc::new(Mutex::new(numbered)));
            }
            match lives.last() {
                Some(life) => last = life.event,
                None => break,
            }
        }
        let writer = Writer::start(db.clone(), clock.clone(), tasks);
        Ok(Self { halls: RwLock::new(halls), writer, db, clock, ids, limits })
    }

    pub(super) async fn check(
        &self,
        event: EventId,
        user: UserId,
        promise: Option<Promise>,
    ) -> Result<Answer, Closed> {
        let hall = match self.hall(event) {
            Some(hall) => hall,
            None => self.open(event).await?,
        };
        let slot = Uuid::from_bytes(self.ids.bytes());
        self.decide(event, &hall, |hall, now, steps| {
            hall.check(user, promise, slot, now, &self.limits, steps)
        })
        .await
    }

    pub(super) async fn status(&self, event: EventId, user: UserId) -> Result<Answer, Closed> {
        match self.hall(event) {
            None => Ok(self.nobody()),
            Some(hall) => {
                self.decide(event, &hall, |hall, now, steps| hall.status(user, now, &self.limits, steps))
                    .await
            }
        }
    }

    pub(super) async fn leave(&self, event: EventId, user: UserId, why: Why) -> Result<bool, Closed> {
        let Some(hall) = self.hall(event) else { return Ok(false) };
        let mut left = false;
        self.decide(event, &hall, |hall, now, steps| {
            left = hall.leave(user, why, now, steps);
            Standing::Absent
        })
        .await?;
        Ok(left)
    }

    /// Ends what is over and lets in whoever's turn it is. Answers with how many.
    pub(super) async fn admit(&self, event: EventId) -> Result<usize, Closed> {
        let Some(hall) = self.hall(event) else { return Ok(0) };
        let mut admitted = 0;
        self.decide(event, &hall, |hall, now, steps| {
            hall.sweep(SWEEP, now, &self.limits, steps);
            let slot = || Uuid::from_bytes(self.ids.bytes());
            admitted = hall.admit(self.limits.batch, now, &self.limits, slot, steps);
            Standing::Absent
        })
        .await?;
        Ok(admitted)
    }

    /// Carries out what an operator decided.
    pub(super) async fn order(&self, event: EventId, order: Order) -> Result<Totals, Closed> {
        let hall = match self.hall(event) {
            Some(hall) => hall,
            None => self.open(event).await?,
        };
        let answer = self
            .decide(event, &hall, |hall, now, steps| {
                if let Some(step) = order.step(&hall.totals(now)) {
                    hall.take(step, now, steps);
                }
                Standing::Absent
            })
            .await?;
        Ok(answer.totals)
    }

    /// The events that have a room.
    pub(super) fn events(&self) -> Vec<EventId> {
        self.halls.read().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    fn nobody(&self) -> Answer {
        let now = self.clock.now();
        let totals = Hall::new(self.limits.threshold).totals(now);
        Answer { standing: Standing::Absent, totals, now }
    }

    fn hall(&self, event: EventId) -> Option<Arc<Mutex<Numbered>>> {
        self.halls.read().unwrap_or_else(PoisonError::into_inner).get(&event).cloned()
    }

    /// Makes a decision in one piece and waits until it is written down.
    ///
    /// Whoever asks is told only what is on disk, also what others changed a moment ago.
    async fn decide(
        &self,
        event: EventId,
        hall: &Mutex<Numbered>,
        decision: impl FnOnce(&mut Hall, Timestamp, &mut Vec<Step>) -> Standing,
    ) -> Result<Answer, Closed> {
        self.writer.ready().map_err(|_| Closed)?;
        let (answer, mark) = self.decided(event, hall, decision);
        self.writer.written(mark).await.map_err(|_| Closed)?;
        Ok(answer)
    }

    fn decided(
        &self,
        event: EventId,
        hall: &Mutex<Numbered>,
        decision: impl FnOnce(&mut Hall, Timestamp, &mut Vec<Step>) -> Standing,
    ) -> (Answer, Mark) {
        let mut numbered = lock(hall);
        let now = self.clock.now();
        let mut steps = Vec::new();
        let standing = decision(&mut numbered.hall, now, &mut steps);
        let answer = Answer { standing, totals: numbered.hall.totals(now), now };
        let mark = if steps.is_empty() {
            self.writer.latest()
        } else {
            let (generation, first) = (numbered.generation, numbered.seq + 1);
            numbered.seq += u64::try_from(steps.len()).unwrap_or(u64::MAX);
            let entry = |(seq, step)| Entry { generation, seq, at: now, step };
            self.writer.hand_over(event, (first..).zip(steps).map(entry))
        };
        (answer, mark)
    }

    /// The room of an event that had none. The row is on disk before the first step can be.
    async fn open(&self, event: EventId) -> Result<Arc<Mutex<Numbered>>, Closed> {
        let threshold = self.limits.threshold;
        let opened: Result<(), urr_db::Error> = self
            .db
            .write("queue.open", async |tx: &mut Tx<'_>| {
                store::open(tx, event, threshold, self.clock.now()).await
            })
            .await;
        opened.map_err(|error| {
            tracing::error!(%event, error = urr_telemetry::chain(&error), "a room cannot be opened");
            Closed
        })?;
        let mut halls = self.halls.write().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Numbered { hall: Hall::new(threshold), generation: 1, seq: 0 };
        Ok(Arc::clone(halls.entry(event).or_insert_with(|| Arc::new(Mutex::new(fresh())))))
    }
}

fn lock(hall: &Mutex<Numbered>) -> MutexGuard<'_, Numbered> {
    hall.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn read_back(db: &Db, life: &store::Life, now: Timestamp) -> Result<Numbered, urr_db::Error> {
    let mut numbered = Numbered { hall: Hall::new(life.threshold), generation: life.generation, seq: 0 };
    loop {
        let after = numbered.seq;
        let page = db
            .read("queue.read_back", async |tx: &mut Tx<'_>| {
                store::after(tx, life.event, life.generation, after, PAGE).await
            })
            .await?;
        for entry in &page {
            numbered.hall.apply(entry.step, entry.at);
            numbered.seq = entry.seq;
        }
        if page.is_empty() {
            numbered.hall.wake(now);
            return Ok(numbered);
        }
    }
}
