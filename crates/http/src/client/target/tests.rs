//! Turns: what waiting for one costs, and whom it tells nothing about. Tries, and the pauses between them.

use std::pin::pin;

use axum::{Router, routing::post};
use futures_util::poll;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use urr_kernel::{BreakerLimits, Timestamp};

use super::*;
use crate::{Client, Limits, Server};

/// No test waits longer than this for anything.
const DEADLINE: Duration = Duration::from_mins(1);

/// How finely timers of the runtime are told apart.
const TICK: Duration = Duration::from_millis(1);

/// A target with one turn, before a service that answers whoever asks once there is a permit.
struct OneAtATime {
    target: Target,
    clock: Clock,
    permits: Arc<Semaphore>,
    _server: JoinSet<()>,
}

impl OneAtATime {
    async fn new(breaker: BreakerLimits, status: StatusCode) -> Self {
        Self::on(Clock::fixed(Timestamp::from_micros(1_700_000_000_000_000)), breaker, status).await
    }

    async fn on(clock: Clock, breaker: BreakerLimits, status: StatusCode) -> Self {
        let permits = Arc::new(Semaphore::new(0));
        let answers = permits.clone();
        let answer = async move || {
            answers.acquire().await.unwrap().forget();
            status
        };
        let server = Server::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", server.local_addr().unwrap());
        let serve = server.serve(
            Router::new().route("/x", post(answer)),
            Limits::default(),
            CancellationToken::new(),
        );
        let mut task = JoinSet::new();
        task.spawn(async { serve.await.unwrap() });
        let limits = ClientLimits { in_flight: 1, breaker, read: DEADLINE, ..ClientLimits::default() };
        let target = Client::new(limits, clock.clone()).target(&base).unwrap();
        Self { target, clock, permits, _server: task }
    }
}

fn ask() -> Call {
    Call::post_json("/x", "{}")
}

#[tokio::test]
async fn waiting_for_a_turn_is_part_of_the_time_of_a_call_and_no_fault_of_the_service() {
    // One failure would open it.
    let breaker = BreakerLimits { window: 1, slow_call: DEADLINE * 2, ..BreakerLimits::SERVICE };
    let one = OneAtATime::new(breaker, StatusCode::OK).await;
    let (mut first, mut second) = (pin!(one.target.send(ask())), pin!(one.target.send(ask())));
    assert!(poll!(first.as_mut()).is_pending() && poll!(second.as_mut()).is_pending());
    one.clock.advance(DEADLINE.saturating_sub(Duration::from_millis(1)));
    one.permits.add_permits(1);
    first.await.unwrap();
    let error = timeout(DEADLINE / 2, second).await.expect("a millisecond is left").unwrap_err();
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
    assert!(!one.target.is_open(), "the service had no time to answer");
}

#[tokio::test]
async fn a_service_that_does_not_answer_within_the_time_of_a_call_has_failed() {
    let breaker = BreakerLimits { window: 1, ..BreakerLimits::SERVICE };
    let one = OneAtATime::on(Clock::system(), breaker, StatusCode::OK).await;
    let error = one.target.send(ask().within(Duration::from_millis(20))).await.unwrap_err();
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
    assert!(one.target.is_open(), "it had all of its time but for what a turn takes");
}

#[tokio::test]
async fn a_service_is_not_slow_because_its_callers_wait_for_each_other() {
    let one = OneAtATime::new(BreakerLimits::SERVICE, StatusCode::OK).await;
    let mut calls: Vec<_> =
        (0..2 * BreakerLimits::SERVICE.window).map(|_| Box::pin(one.target.send(ask()))).collect();
    for call in &mut calls {
        assert!(poll!(call).is_pending());
    }
    one.clock.advance(BreakerLimits::SERVICE.slow_call * 2);
    one.permits.add_permits(calls.len());
    for call in calls {
        call.await.unwrap();
    }
    assert!(!one.target.is_open());
}

#[tokio::test]
async fn a_call_that_never_had_its_turn_says_nothing_about_the_service() {
    let one = OneAtATime::new(BreakerLimits::SERVICE, StatusCode::OK).await;
    let mut first = pin!(one.target.send(ask()));
    assert!(poll!(first.as_mut()).is_pending());
    for _ in 0..2 * BreakerLimits::SERVICE.window {
        let error = one.target.send(ask().within(Duration::from_millis(1))).await.unwrap_err();
        assert!(matches!(error, CallError::NotSent { .. }), "{error}");
    }
    assert!(!one.target.is_open());
    one.permits.add_permits(1);
    first.await.unwrap();
}

#[tokio::test]
async fn whoever_waits_for_a_turn_at_a_service_that_fails_meanwhile_is_told_so() {
    let breaker = BreakerLimits { window: 1, ..BreakerLimits::SERVICE };
    let one = OneAtATime::new(breaker, StatusCode::SERVICE_UNAVAILABLE).await;
    let (mut first, mut second) = (pin!(one.target.send(ask())), pin!(one.target.send(ask())));
    assert!(poll!(first.as_mut()).is_pending() && poll!(second.as_mut()).is_pending());
    one.permits.add_permits(1);
    assert_eq!(first.await.unwrap().status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(matches!(second.await, Err(CallError::Open { .. })), "nobody is asked any more");
}

#[test]
fn without_other_numbers_a_call_has_five_seconds_to_connect_ten_to_answer_and_three_tries() {
    let limits = ClientLimits::default();
    assert_eq!((limits.connect, limits.read), (Duration::from_secs(5), Duration::from_secs(10)));
    assert_eq!((limits.tries, limits.pause), (3, Duration::from_millis(500)));
}

/// A call that never gets a turn fails when its tries and this long between them are over, on a clock that moves by what is waited for alone.
async fn pauses(call: Call, tries: u32, made: u32, between: Duration) {
    let limits = ClientLimits { in_flight: 0, tries, ..ClientLimits::default() };
    let target = Client::new(limits, Clock::fixed(Timestamp::from_micros(0))).target("http://127.0.0.1:1");
    let target = target.unwrap();
    let mut send = pin!(target.send(call));
    let almost = (limits.read * made + between).saturating_sub(TICK);
    assert!(timeout(almost, send.as_mut()).await.is_err(), "{made} of {tries} tries ended too early");
    // Jitter is a tenth at most, and every wait may end a tick late.
    let late = timeout(between / 10 + TICK * 10, send).await;
    let error = late.unwrap_or_else(|_| panic!("{made} of {tries} tries take too long")).unwrap_err();
    assert!(matches!(error, CallError::NotSent { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_pause_before_another_try_is_half_a_second_and_doubles() {
    for (tries, between) in [(1, 0), (2, 500), (3, 500 + 1_000), (4, 500 + 1_000 + 2_000)] {
        pauses(ask().idempotent(true), tries, tries, Duration::from_millis(between)).await;
    }
    // What must not happen twice is tried once.
    pauses(ask().idempotent(false), 3, 1, Duration::ZERO).await;
}
