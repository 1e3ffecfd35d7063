//! Tests of the concurrency limit, the circuit breaker and the retries.

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

/// Resolution of tokio's timers.
const TICK: Duration = Duration::from_millis(1);

/// A target limited to one call at a time. Its server responds to one request per added permit.
struct SerialTarget {
    target: Target,
    clock: Clock,
    permits: Arc<Semaphore>,
    _server: JoinSet<()>,
}

impl SerialTarget {
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
async fn waiting_for_a_permit_counts_against_the_call_but_not_against_the_breaker() {
    // A single failure opens this breaker.
    let breaker = BreakerLimits { window: 1, slow_call: DEADLINE * 2, ..BreakerLimits::SERVICE };
    let one = SerialTarget::new(breaker, StatusCode::OK).await;
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
async fn a_timeout_counts_as_a_failure_of_the_service() {
    let breaker = BreakerLimits { window: 1, ..BreakerLimits::SERVICE };
    let one = SerialTarget::on(Clock::system(), breaker, StatusCode::OK).await;
    let error = one.target.send(ask().within(Duration::from_millis(20))).await.unwrap_err();
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
    assert!(one.target.is_open(), "the service had nearly the whole time limit");
}

#[tokio::test]
async fn waiting_for_permits_does_not_count_as_slow_calls() {
    let one = SerialTarget::new(BreakerLimits::SERVICE, StatusCode::OK).await;
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
async fn a_call_without_a_permit_does_not_reach_the_breaker() {
    let one = SerialTarget::new(BreakerLimits::SERVICE, StatusCode::OK).await;
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
async fn a_waiting_call_is_refused_if_the_breaker_opens_meanwhile() {
    let breaker = BreakerLimits { window: 1, ..BreakerLimits::SERVICE };
    let one = SerialTarget::new(breaker, StatusCode::SERVICE_UNAVAILABLE).await;
    let (mut first, mut second) = (pin!(one.target.send(ask())), pin!(one.target.send(ask())));
    assert!(poll!(first.as_mut()).is_pending() && poll!(second.as_mut()).is_pending());
    one.permits.add_permits(1);
    assert_eq!(first.await.unwrap().status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(matches!(second.await, Err(CallError::Open { .. })), "no second request is sent");
}

#[test]
fn defaults_are_5s_connect_10s_read_and_three_attempts() {
    let limits = ClientLimits::default();
    assert_eq!((limits.connect, limits.read), (Duration::from_secs(5), Duration::from_secs(10)));
    assert_eq!((limits.tries, limits.pause), (3, Duration::from_millis(500)));
}

/// Asserts that a call which never gets a permit fails after `made` attempts with pauses of
/// `between` in total. The paused clock only moves by what is waited for.
async fn pauses(call: Call, tries: u32, made: u32, between: Duration) {
    let limits = ClientLimits { in_flight: 0, tries, ..ClientLimits::default() };
    let target = Client::new(limits, Clock::fixed(Timestamp::from_micros(0))).target("http://127.0.0.1:1");
    let target = target.unwrap();
    let mut send = pin!(target.send(call));
    let almost = (limits.read * made + between).saturating_sub(TICK);
    assert!(timeout(almost, send.as_mut()).await.is_err(), "{made} of {tries} attempts ended too early");
    // Jitter adds at most a tenth, and every timer may fire a tick late.
    let late = timeout(between / 10 + TICK * 10, send).await;
    let error = late.unwrap_or_else(|_| panic!("{made} of {tries} attempts took too long")).unwrap_err();
    assert!(matches!(error, CallError::NotSent { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn retry_pauses_start_at_half_a_second_and_double() {
    for (tries, between) in [(1, 0), (2, 500), (3, 500 + 1_000), (4, 500 + 1_000 + 2_000)] {
        pauses(ask().idempotent(true), tries, tries, Duration::from_millis(between)).await;
    }
    // A call that is not idempotent is tried once.
    pauses(ask().idempotent(false), 3, 1, Duration::ZERO).await;
}
