//! Tests that every limiter must pass: in memory, in Redis and in Redis Cluster.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Barrier, task::JoinSet};
use urr_kernel::{Clock, Ids};
use urr_kv::{Arg, Kv, KvConfig, Script};
use urr_testkit::{Proxy, services, until, within};
use uuid::Uuid;

use super::{Class, Limiter, OnStoreOutage, RateLimits, Verdict, Who, redis};

const PATIENCE: Duration = Duration::from_mins(1);

/// A limiter under test with its clock and ids.
#[derive(Clone)]
struct Fixture {
    limiter: Arc<Limiter>,
    clock: Clock,
    ids: Ids,
}

impl Fixture {
    fn memory(limits: RateLimits) -> Self {
        let clock = Clock::system();
        Self::of(Limiter::memory(limits, clock.clone()), clock)
    }

    fn redis(config: &KvConfig, limits: RateLimits) -> (Self, Kv) {
        let clock = Clock::system();
        let kv = Kv::connect(config, clock.clone()).unwrap();
        (Self::of(Limiter::redis(kv.clone(), limits, clock.clone()), clock), kv)
    }

    fn of(limiter: Limiter, clock: Clock) -> Self {
        Self { limiter: Arc::new(limiter), ids: Ids::random(clock.clone()), clock }
    }

    fn somebody(&self) -> Who {
        Who::User(self.ids.next())
    }

    async fn check(&self, class: Class, who: Who) -> Verdict {
        self.limiter.check(class, who, OnStoreOutage::Refuse).await
    }

    async fn passes(&self, class: Class, who: Who) -> bool {
        self.check(class, who).await == Verdict::Pass
    }
}

/// A window so long that nothing leaves it during a test.
fn long() -> RateLimits {
    RateLimits { window: Duration::from_hours(1), ..RateLimits::default() }
}

/// Three in 250 ms: many windows in a short test.
fn short() -> RateLimits {
    RateLimits { window: Duration::from_millis(250), booking: 3, ..RateLimits::default() }
}

async fn all(fixture: &Fixture) {
    concurrent_requests_are_admitted_up_to_the_limit(fixture).await;
    clients_and_classes_are_independent(fixture).await;
}

/// Sends 200 concurrent requests and returns how many were admitted.
async fn crowd<F>(ask: impl Fn() -> F) -> usize
where
    F: Future<Output = bool> + Send + 'static,
{
    let mut crowd = JoinSet::new();
    (0..200).for_each(|_| drop(crowd.spawn(ask())));
    crowd.join_all().await.into_iter().filter(|passed| *passed).count()
}

async fn concurrent_requests_are_admitted_up_to_the_limit(fixture: &Fixture) {
    for (class, limit) in [(Class::Booking, 30), (Class::Queue, 120)] {
        let who = fixture.somebody();
        let ask = || {
            let fixture = fixture.clone();
            async move { fixture.passes(class, who).await }
        };
        assert_eq!(crowd(ask).await, limit);
        assert_eq!(crowd(ask).await, 0, "the limit is used up");
    }
}

async fn clients_and_classes_are_independent(fixture: &Fixture) {
    let (one, other) = (fixture.somebody(), fixture.somebody());
    for _ in 0..20 {
        assert!(fixture.passes(Class::Payments, one).await);
    }
    let Verdict::Wait(wait) = fixture.check(Class::Payments, one).await else {
        panic!("a request over the limit was admitted")
    };
    assert!(wait > Duration::ZERO && wait <= long().window, "{wait:?}");
    assert!(fixture.passes(Class::Payments, other).await);
    assert!(fixture.passes(Class::Booking, one).await);
    let Who::User(id) = one else { panic!("the client is a user") };
    assert!(fixture.passes(Class::Payments, Who::Account(*id.as_uuid().as_bytes())).await);
}

/// Sends requests as fast as possible in a short window. No four admissions may fall into one
/// window, and a limiter that is too strict would never admit the last of them.
async fn no_window_has_more_admissions_than_the_limit(fixture: &Fixture) {
    let (limits, who) = (short(), fixture.somebody());
    let mut passed: Vec<(Duration, Duration)> = Vec::new();
    while passed.len() < 13 {
        let asked = fixture.clock.ticks();
        match fixture.check(Class::Booking, who).await {
            Verdict::Pass => passed.push((asked, fixture.clock.ticks())),
            Verdict::Wait(wait) => {
                assert!(wait <= limits.window);
                tokio::time::sleep(wait / 3).await;
            }
            Verdict::Unknown => panic!("the store did not answer"),
        }
    }
    for four in passed.windows(4) {
        assert!(four[3].1.saturating_sub(four[0].0) >= limits.window, "four in one window: {four:?}");
    }
}

/// Rejected requests do not count: after the reported wait the next request is admitted, however
/// many were rejected meanwhile.
async fn a_request_after_the_reported_wait_is_admitted(fixture: &Fixture) {
    let who = fixture.somebody();
    while fixture.passes(Class::Booking, who).await {}
    let asked = fixture.clock.ticks();
    let Verdict::Wait(wait) = fixture.check(Class::Booking, who).await else { return };
    while fixture.clock.ticks() < asked + wait {
        fixture.check(Class::Booking, who).await;
        tokio::time::sleep(wait / 20).await;
    }
    until(PATIENCE, async || fixture.passes(Class::Booking, who).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory() {
    within(PATIENCE, async {
        all(&Fixture::memory(long())).await;
        let fixture = Fixture::memory(short());
        no_window_has_more_admissions_than_the_limit(&fixture).await;
        a_request_after_the_reported_wait_is_admitted(&fixture).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn single_node() {
    let Some(url) = services::redis() else { return };
    in_redis(&patient(KvConfig::single(&url))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster() {
    let Some(nodes) = services::redis_cluster() else { return };
    in_redis(&patient(KvConfig::cluster(nodes.split(',')))).await;
}

async fn in_redis(config: &KvConfig) {
    within(PATIENCE, async {
        let (fixture, kv) = Fixture::redis(config, long());
        all(&fixture).await;
        two_processes_share_the_limit(config).await;
        a_key_is_bounded_and_expires(&fixture, &kv).await;
        let (fixture, _) = Fixture::redis(config, short());
        no_window_has_more_admissions_than_the_limit(&fixture).await;
        a_request_after_the_reported_wait_is_admitted(&fixture).await;
        a_clock_set_back_does_not_block_clients(&fixture, &kv_of(config)).await;
        the_race_test_detects_a_two_step_limiter(&kv_of(config)).await;
    })
    .await;
}

fn kv_of(config: &KvConfig) -> Kv {
    Kv::connect(config, Clock::system()).unwrap()
}

async fn two_processes_share_the_limit(config: &KvConfig) {
    let fixtures = [Fixture::redis(config, long()).0, Fixture::redis(config, long()).0];
    let who = fixtures[0].somebody();
    let turn = std::sync::atomic::AtomicUsize::new(0);
    let ask = || {
        let fixture = fixtures[turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 2].clone();
        async move { fixture.passes(Class::Booking, who).await }
    };
    assert_eq!(crowd(ask).await, 30);
}

async fn a_key_is_bounded_and_expires(fixture: &Fixture, kv: &Kv) {
    static SIZE: Script =
        Script::new("limit.test_size", "return {redis.call('LLEN', KEYS[1]), redis.call('PTTL', KEYS[1])}");
    let who = fixture.somebody();
    for _ in 0..25 {
        fixture.check(Class::Payments, who).await;
    }
    let size = kv.run(&SIZE, &[redis::key(Class::Payments, who)], &[]).await.unwrap();
    let [entries, ttl_ms] = size.list().unwrap() else { panic!("two numbers") };
    assert_eq!(entries.int().unwrap(), 20);
    assert!((1..=3_600_000).contains(&ttl_ms.int().unwrap()), "{ttl_ms:?}");
}

async fn a_clock_set_back_does_not_block_clients(fixture: &Fixture, kv: &Kv) {
    static FUTURE: Script = Script::new(
        "limit.test_future",
        "for _ = 1, 3 do redis.call('LPUSH', KEYS[1], ARGV[1]) end return redis.call('PEXPIRE', KEYS[1], 60000)",
    );
    let next_century = Arg::Int(4_102_444_800_000_000);
    let who = fixture.somebody();
    kv.run(&FUTURE, &[redis::key(Class::Booking, who)], &[next_century]).await.unwrap();
    assert!(fixture.passes(Class::Booking, who).await);
}

/// Negative control: a limiter that checks first and counts later must fail the race that all
/// limiters above pass.
async fn the_race_test_detects_a_two_step_limiter(kv: &Kv) {
    static LOOK: Script = Script::new("limit.test_look", "return redis.call('LLEN', KEYS[1])");
    static COUNT: Script = Script::new(
        "limit.test_count",
        "redis.call('LPUSH', KEYS[1], 1) return redis.call('PEXPIRE', KEYS[1], 60000)",
    );
    let key = format!("limit:{{test:{}}}", Ids::random(Clock::system()).next::<Uuid>());
    let all_have_looked = Arc::new(Barrier::new(200));
    let passed = crowd(|| {
        let (kv, key, all_have_looked) = (kv.clone(), key.clone(), Arc::clone(&all_have_looked));
        async move {
            let seen = kv.run(&LOOK, &[&key], &[]).await.unwrap().int().unwrap();
            all_have_looked.wait().await;
            kv.run(&COUNT, &[&key], &[]).await.unwrap();
            seen < 30
        }
    });
    assert_eq!(passed.await, 200, "the race test must detect a limiter that is not atomic");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_classes_fall_back_or_reject_and_recover() {
    let Some(url) = services::redis() else { return };
    within(PATIENCE, async {
        let mut proxy = Proxy::start(url.trim_start_matches("redis://")).await;
        let config = patient(KvConfig::single(format!("redis://{}", proxy.address())));
        let (fixture, _) = Fixture::redis(&config, long());
        assert!(fixture.passes(Class::Booking, fixture.somebody()).await);

        proxy.cut().await;
        let who = fixture.somebody();
        assert_eq!(fixture.check(Class::Payments, who).await, Verdict::Unknown);
        let here = || {
            let fixture = fixture.clone();
            async move {
                fixture.limiter.check(Class::Booking, who, OnStoreOutage::CountHere).await == Verdict::Pass
            }
        };
        assert_eq!(crowd(here).await, 15, "half of the limit");

        proxy.restore().await;
        until(PATIENCE, async || fixture.passes(Class::Payments, who).await).await;
    })
    .await;
}

/// Generous Redis timeouts: these tests check results, not the speed of a shared machine.
fn patient(config: KvConfig) -> KvConfig {
    KvConfig { deadline: Duration::from_secs(10), ..config }
}
