//! What every gate must do, in memory, in Redis and in a Redis Cluster.

use std::{sync::Arc, time::Duration};

use urr_kernel::{Clock, EventId, Ids, SeatId};
use urr_kv::{Kv, KvConfig};
use urr_testkit::services;
use uuid::Uuid;

use super::{Entry, GATE_TTL, Owner, SeatGate};

/// A gate with what is needed to try it out.
struct Trial {
    gate: Arc<SeatGate>,
    ids: Ids,
}

impl Trial {
    fn memory(clock: &Clock, ttl: Duration) -> Self {
        Self { gate: Arc::new(SeatGate::memory(clock.clone(), ttl)), ids: Ids::random(clock.clone()) }
    }

    fn redis(config: &KvConfig, ttl: Duration) -> Self {
        let clock = Clock::system();
        let kv = Kv::connect(config, clock.clone()).unwrap();
        Self { gate: Arc::new(SeatGate::redis(kv, ttl)), ids: Ids::random(clock) }
    }

    fn owner(&self) -> Owner {
        Owner::from_uuid(self.ids.next::<Uuid>())
    }

    fn seats(&self, count: usize) -> Vec<SeatId> {
        (0..count).map(|_| self.ids.next()).collect()
    }

    async fn acquire(&self, event: EventId, seats: &[SeatId], owner: Owner) -> Entry {
        self.gate.acquire(event, seats, owner).await
    }
}

async fn all(trial: &Trial) {
    one_of_many_gets_through(trial).await;
    all_seats_or_none(trial).await;
    the_same_owner_passes_again(trial).await;
    only_the_owner_removes_a_mark(trial).await;
    events_do_not_meet(trial).await;
}

async fn one_of_many_gets_through(trial: &Trial) {
    let (event, seats): (EventId, _) = (trial.ids.next(), trial.seats(2));
    let mut rivals = tokio::task::JoinSet::new();
    for rival in 0..50 {
        let (gate, owner, mut seats) = (Arc::clone(&trial.gate), trial.owner(), seats.clone());
        if rival % 2 == 0 {
            seats.reverse();
        }
        rivals.spawn(async move { gate.acquire(event, &seats, owner).await });
    }
    let entries = rivals.join_all().await;
    assert_eq!(entries.iter().filter(|entry| **entry == Entry::Through).count(), 1);
    assert!(!entries.contains(&Entry::Open));
}

async fn all_seats_or_none(trial: &Trial) {
    let (event, seats): (EventId, _) = (trial.ids.next(), trial.seats(3));
    assert_eq!(trial.acquire(event, &seats[1..2], trial.owner()).await, Entry::Through);
    let refused = trial.acquire(event, &seats, trial.owner()).await;
    assert_eq!(refused, Entry::Busy(vec![seats[1]]));
    let others = [seats[0], seats[2]];
    assert_eq!(trial.acquire(event, &others, trial.owner()).await, Entry::Through, "a refusal left a mark");
}

async fn the_same_owner_passes_again(trial: &Trial) {
    let (event, seats, owner): (EventId, _, _) = (trial.ids.next(), trial.seats(2), trial.owner());
    assert_eq!(trial.acquire(event, &seats, owner).await, Entry::Through);
    assert_eq!(trial.acquire(event, &seats, owner).await, Entry::Through);
}

async fn only_the_owner_removes_a_mark(trial: &Trial) {
    let (event, seats, owner): (EventId, _, _) = (trial.ids.next(), trial.seats(2), trial.owner());
    assert_eq!(trial.acquire(event, &seats, owner).await, Entry::Through);
    trial.gate.release(event, &seats, trial.owner()).await;
    let rival = trial.owner();
    assert_eq!(trial.acquire(event, &seats, rival).await, Entry::Busy(seats.clone()));
    trial.gate.release(event, &seats, owner).await;
    assert_eq!(trial.acquire(event, &seats, rival).await, Entry::Through);
}

async fn events_do_not_meet(trial: &Trial) {
    let seats = trial.seats(1);
    assert_eq!(trial.acquire(trial.ids.next(), &seats, trial.owner()).await, Entry::Through);
    assert_eq!(trial.acquire(trial.ids.next(), &seats, trial.owner()).await, Entry::Through);
}

/// Marks in Redis fade by Redis's clock: wait for that, with an end.
async fn marks_fade(trial: &Trial) {
    let (event, seats): (EventId, _) = (trial.ids.next(), trial.seats(1));
    assert_eq!(trial.acquire(event, &seats, trial.owner()).await, Entry::Through);
    let next = trial.owner();
    urr_testkit::until(Duration::from_secs(30), async || {
        trial.acquire(event, &seats, next).await == Entry::Through
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory() {
    let clock = urr_testkit::fixed_clock();
    let trial = Trial::memory(&clock, GATE_TTL);
    all(&trial).await;
    let (event, seats): (EventId, _) = (trial.ids.next(), trial.seats(1));
    assert_eq!(trial.acquire(event, &seats, trial.owner()).await, Entry::Through);
    clock.advance(GATE_TTL.saturating_sub(Duration::from_micros(1)));
    assert_eq!(trial.acquire(event, &seats, trial.owner()).await, Entry::Busy(seats.clone()));
    clock.advance(Duration::from_micros(1));
    assert_eq!(trial.acquire(event, &seats, trial.owner()).await, Entry::Through);
}

#[tokio::test(flavor = "multi_thread")]
async fn redis() {
    let Some(url) = services::redis() else { return };
    all(&Trial::redis(&patient(KvConfig::single(&url)), GATE_TTL)).await;
    marks_fade(&Trial::redis(&patient(KvConfig::single(&url)), Duration::from_millis(20))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster() {
    let Some(nodes) = services::redis_cluster() else { return };
    all(&Trial::redis(&patient(KvConfig::cluster(nodes.split(','))), GATE_TTL)).await;
    marks_fade(&Trial::redis(&patient(KvConfig::cluster(nodes.split(','))), Duration::from_millis(20))).await;
}

#[tokio::test]
async fn without_redis_the_gate_is_open() {
    let nobody = format!("redis://127.0.0.1:{}", urr_testkit::free_port());
    let trial = Trial::redis(&KvConfig::single(nobody), GATE_TTL);
    let (event, seats): (EventId, _) = (trial.ids.next(), trial.seats(1));
    for _ in 0..100 {
        assert_eq!(trial.acquire(event, &seats, trial.owner()).await, Entry::Open);
    }
    trial.gate.release(event, &seats, trial.owner()).await;
}

/// The suite asks whether the answers are right, not whether a shared machine is quick.
fn patient(config: KvConfig) -> KvConfig {
    KvConfig { deadline: Duration::from_secs(10), ..config }
}
