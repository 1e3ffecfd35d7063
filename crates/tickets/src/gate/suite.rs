//! Tests that every gate must pass: in memory, in Redis and in Redis Cluster.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{net::TcpListener, sync::Barrier, task::JoinSet};
use urr_kernel::{Clock, EventId, Ids, SeatId};
use urr_kv::{Kv, KvConfig};
use urr_testkit::{STORY_LIMIT as LIMIT, fixed_clock, free_port, redis, redis_cluster, until, within};

use super::{Entry, GATE_TTL, Owner, SeatGate};

const RIVALS: usize = 50;

/// A gate under test with its clock and ids.
struct Fixture {
    gate: SeatGate,
    ids: Ids,
}

impl Fixture {
    fn memory(clock: Clock) -> Self {
        Self { gate: SeatGate::memory(clock.clone(), GATE_TTL), ids: Ids::random(clock) }
    }

    fn redis() -> Option<Self> {
        Some(Self::on(&redis()?, GATE_TTL))
    }

    fn cluster() -> Option<Self> {
        Some(Self::on(&redis_cluster()?, GATE_TTL))
    }

    fn on(config: &KvConfig, ttl: Duration) -> Self {
        let clock = Clock::system();
        let kv = Kv::connect(config, clock.clone()).unwrap();
        Self { gate: SeatGate::redis(kv, ttl), ids: Ids::random(clock) }
    }

    fn event(&self) -> EventId {
        self.ids.next()
    }

    fn owner(&self) -> Owner {
        Owner::from_uuid(self.ids.next())
    }

    fn seats(&self, count: usize) -> Vec<SeatId> {
        (0..count).map(|_| self.ids.next()).collect()
    }

    async fn acquire(&self, event: EventId, seats: &[SeatId], owner: Owner) -> Entry {
        self.gate.acquire(event, seats, owner).await
    }
}

macro_rules! on_every_gate {
    ($($story:ident)*) => {$(
        mod $story {
            use super::{LIMIT, Fixture, fixed_clock, within};

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_memory() {
                within(LIMIT, super::$story(Fixture::memory(fixed_clock()))).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_redis() {
                if let Some(fixture) = Fixture::redis() {
                    within(LIMIT, super::$story(fixture)).await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_a_cluster() {
                if let Some(fixture) = Fixture::cluster() {
                    within(LIMIT, super::$story(fixture)).await;
                }
            }
        }
    )*};
}

on_every_gate! {
    exactly_one_of_many_passes
    rivals_for_overlapping_seats_never_share_one
    all_seats_or_none
    the_same_owner_can_acquire_again
    only_the_owner_removes_a_mark
    events_are_independent
}

/// Runs `enter` for all rivals at once and returns how many passed.
async fn winners<F>(rivals: usize, enter: impl Fn(usize) -> F) -> usize
where
    F: Future<Output = Entry> + Send + 'static,
{
    let tasks: JoinSet<Entry> = (0..rivals).map(enter).collect();
    let entries = tasks.join_all().await;
    assert!(!entries.contains(&Entry::Open), "the gate returned Open");
    entries.iter().filter(|entry| **entry == Entry::Through).count()
}

async fn exactly_one_of_many_passes(fixture: Fixture) {
    let (event, seats) = (fixture.event(), fixture.seats(2));
    let fixture = Arc::new(fixture);
    let won = winners(RIVALS, |rival| {
        let (fixture, mut seats) = (Arc::clone(&fixture), seats.clone());
        // Half of them pass the seats in another order.
        seats.rotate_left(rival % 2);
        async move { fixture.acquire(event, &seats, fixture.owner()).await }
    });
    assert_eq!(won.await, 1);
}

async fn rivals_for_overlapping_seats_never_share_one(fixture: Fixture) {
    // Five seats in a ring, and each rival wants two neighbouring seats: at most two can pass.
    let (event, seats) = (fixture.event(), fixture.seats(5));
    let fixture = Arc::new(fixture);
    let won = winners(RIVALS, |rival| {
        let (fixture, pair) = (Arc::clone(&fixture), [seats[rival % 5], seats[(rival + 1) % 5]]);
        async move { fixture.acquire(event, &pair, fixture.owner()).await }
    });
    assert!((1..=2).contains(&won.await));
}

async fn all_seats_or_none(fixture: Fixture) {
    let (event, seats) = (fixture.event(), fixture.seats(4));
    assert_eq!(fixture.acquire(event, &seats[1..3], fixture.owner()).await, Entry::Through);
    let refused = fixture.acquire(event, &seats, fixture.owner()).await;
    assert_eq!(refused, Entry::Busy(seats[1..3].to_vec()));
    let others = [seats[3], seats[0]];
    assert_eq!(
        fixture.acquire(event, &others, fixture.owner()).await,
        Entry::Through,
        "a rejected call left a mark"
    );
}

async fn the_same_owner_can_acquire_again(fixture: Fixture) {
    let (event, seats, owner) = (fixture.event(), fixture.seats(2), fixture.owner());
    assert_eq!(fixture.acquire(event, &seats, owner).await, Entry::Through);
    assert_eq!(fixture.acquire(event, &seats, owner).await, Entry::Through);
    assert_eq!(fixture.acquire(event, &seats[..1], fixture.owner()).await, Entry::Busy(seats[..1].to_vec()));
}

async fn only_the_owner_removes_a_mark(fixture: Fixture) {
    let (event, seats, owner) = (fixture.event(), fixture.seats(2), fixture.owner());
    assert_eq!(fixture.acquire(event, &seats, owner).await, Entry::Through);
    fixture.gate.release(event, &seats, fixture.owner()).await;
    let rival = fixture.owner();
    assert_eq!(fixture.acquire(event, &seats, rival).await, Entry::Busy(seats.clone()));
    fixture.gate.release(event, &seats, owner).await;
    assert_eq!(fixture.acquire(event, &seats, rival).await, Entry::Through);
}

async fn events_are_independent(fixture: Fixture) {
    let (one, other, seats, owner) = (fixture.event(), fixture.event(), fixture.seats(1), fixture.owner());
    assert_eq!(fixture.acquire(one, &seats, owner).await, Entry::Through);
    assert_eq!(fixture.acquire(other, &seats, fixture.owner()).await, Entry::Through);
    fixture.gate.release(other, &seats, owner).await;
    assert_eq!(fixture.acquire(one, &seats, fixture.owner()).await, Entry::Busy(seats.clone()));
}

#[tokio::test]
async fn a_mark_in_memory_expires_exactly_at_its_ttl() {
    let clock = fixed_clock();
    let fixture = Fixture::memory(clock.clone());
    let (event, seats) = (fixture.event(), fixture.seats(1));
    assert_eq!(fixture.acquire(event, &seats, fixture.owner()).await, Entry::Through);
    clock.advance(GATE_TTL.saturating_sub(Duration::from_micros(1)));
    assert_eq!(fixture.acquire(event, &seats, fixture.owner()).await, Entry::Busy(seats.clone()));
    clock.advance(Duration::from_micros(1));
    assert_eq!(fixture.acquire(event, &seats, fixture.owner()).await, Entry::Through);
}

/// Marks in Redis expire by the clock of Redis: poll for it, with a time limit.
async fn a_mark_fades(config: &KvConfig) {
    let fixture = Fixture::on(config, Duration::from_millis(200));
    let (event, seats, next) = (fixture.event(), fixture.seats(2), fixture.owner());
    assert_eq!(fixture.acquire(event, &seats, fixture.owner()).await, Entry::Through);
    until(LIMIT, async || fixture.acquire(event, &seats, next).await == Entry::Through).await;
}

#[tokio::test]
async fn a_mark_in_redis_expires() {
    let Some(config) = redis() else { return };
    within(LIMIT, a_mark_fades(&config)).await;
}

#[tokio::test]
async fn a_mark_in_a_cluster_expires() {
    let Some(config) = redis_cluster() else { return };
    within(LIMIT, a_mark_fades(&config)).await;
}

/// 200 calls in sequence would take 20 s if each waited for its timeout of 100 ms; the breaker must
/// prevent that.
async fn opens_quickly(url: String) {
    let fixture = Fixture::on(&KvConfig::single(url), GATE_TTL);
    let (event, seats) = (fixture.event(), fixture.seats(1));
    within(Duration::from_secs(10), async {
        for _ in 0..200 {
            assert_eq!(fixture.acquire(event, &seats, fixture.owner()).await, Entry::Open);
        }
        fixture.gate.release(event, &seats, fixture.owner()).await;
    })
    .await;
}

#[tokio::test]
async fn without_redis_the_gate_returns_open_quickly() {
    opens_quickly(format!("redis://127.0.0.1:{}", free_port())).await;
}

#[tokio::test]
async fn with_a_hanging_redis_the_gate_soon_returns_open_quickly() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    // The listener never accepts: connections open and get no reply.
    opens_quickly(format!("redis://{}", listener.local_addr().unwrap())).await;
}

/// Negative control: a gate that checks first and marks later.
#[derive(Default)]
struct LooksFirst(Mutex<HashMap<SeatId, Owner>>);

impl LooksFirst {
    /// All callers check before any of them marks: the worst interleaving, every time.
    async fn acquire(&self, seats: &[SeatId], owner: Owner, all_have_looked: &Barrier) -> Entry {
        let seen = |seat: &&SeatId| self.0.lock().unwrap().get(seat).is_some_and(|other| *other != owner);
        let busy: Vec<SeatId> = seats.iter().filter(seen).copied().collect();
        all_have_looked.wait().await;
        if !busy.is_empty() {
            return Entry::Busy(busy);
        }
        self.0.lock().unwrap().extend(seats.iter().map(|seat| (*seat, owner)));
        Entry::Through
    }
}

#[tokio::test]
async fn the_race_test_detects_a_check_then_act_gate() {
    within(LIMIT, async {
        let ids = Ids::random(fixed_clock());
        let seats: Vec<SeatId> = vec![ids.next(), ids.next()];
        let parts = Arc::new((LooksFirst::default(), Barrier::new(RIVALS)));
        let won = winners(RIVALS, |_| {
            let (parts, seats, owner) = (Arc::clone(&parts), seats.clone(), Owner::from_uuid(ids.next()));
            async move { parts.0.acquire(&seats, owner, &parts.1).await }
        });
        assert!(won.await > 1, "the race test would not detect two winners");
    })
    .await;
}
