//! Outages of a single node: hangs, lost connections and recovery.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use futures_util::future::join_all;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinSet,
};
use urr_kernel::Clock;
use urr_testkit::{Proxy, fixed_clock, free_port, services, until, within};

use super::{COUNT, LIMIT, count, done, kv, server::Server};
use crate::{Error, Kv, KvConfig};

const KEY: &[&str] = &["test:{outages}"];

fn through(proxy: &Proxy) -> KvConfig {
    KvConfig::single(format!("redis://{}", proxy.address()))
}

fn target(url: &str) -> &str {
    url.strip_prefix("redis://").unwrap().trim_end_matches('/')
}

/// A server that accepts connections and never responds, until the set is dropped.
async fn silence() -> (KvConfig, JoinSet<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.push(stream);
        }
    });
    (KvConfig::single(url), tasks)
}

#[tokio::test]
async fn without_redis_the_client_starts_and_calls_fail() {
    within(LIMIT, async {
        let kv = kv(&KvConfig::single(format!("redis://127.0.0.1:{}", free_port())));
        let error = count(&kv, KEY).await.unwrap_err();
        assert!(matches!(error, Error::Down(_)), "{error:?}");
        assert!(error.is_unavailable());
        kv.ping().await.unwrap_err();
    })
    .await;
}

#[tokio::test]
async fn a_hanging_server_costs_one_deadline_until_the_breaker_opens() {
    within(LIMIT, async {
        let (config, _server) = silence().await;
        let clock = Clock::system();
        let kv = Kv::connect(&config, clock.clone()).unwrap();
        let started = clock.ticks();
        assert_eq!(count(&kv, KEY).await, Err(Error::Timeout(KvConfig::DEADLINE)));
        let took = clock.ticks().saturating_sub(started);
        assert!(took >= KvConfig::DEADLINE, "the call took only {took:?}");

        let own = kv.run_within(Duration::from_millis(20), &COUNT, KEY, &[]).await;
        assert_eq!(own, Err(Error::Timeout(Duration::from_millis(20))), "a call may have its own deadline");

        join_all((0..20).map(|_| count(&kv, KEY))).await;
        let error = count(&kv, KEY).await.unwrap_err();
        assert!(matches!(error, Error::Open { .. }), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn concurrent_calls_to_a_hanging_server_are_limited() {
    within(LIMIT, async {
        let (config, _server) = silence().await;
        let kv = kv(&KvConfig { deadline: Duration::from_secs(10), ..config });
        let calls =
            join_all((0..9_000).map(|_| kv.run_within(Duration::from_secs(2), &COUNT, KEY, &[]))).await;
        let full = calls.iter().filter(|call| **call == Err(Error::Full)).count();
        // The background task's own call takes a slot too.
        assert!((9_000 - 8_192..=9_000 - 8_192 + 2).contains(&full), "{full} calls were refused");
    })
    .await;
}

#[tokio::test]
async fn the_client_reconnects_after_redis_returns() {
    let Some(url) = services::redis() else { return };
    within(LIMIT, async {
        let mut proxy = Proxy::start(target(&url)).await;
        let kv = kv(&through(&proxy));
        until(LIMIT, async || count(&kv, KEY).await.is_ok()).await;
        for _ in 0..3 {
            proxy.cut().await;
            let error = count(&kv, KEY).await.unwrap_err();
            assert!(error.is_unavailable(), "{error:?}");
            until(LIMIT, async || matches!(count(&kv, KEY).await, Err(Error::Open { .. }))).await;
            proxy.restore().await;
            until(LIMIT, async || count(&kv, KEY).await.is_ok()).await;
        }
    })
    .await;
}

/// A proxy to `target` whose first connection stops forwarding, without closing, when notified.
async fn with_a_silent_cut(target: String) -> (KvConfig, Arc<Notify>, JoinSet<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let cut = Arc::new(Notify::new());
    let mut tasks = JoinSet::new();
    let told = Arc::clone(&cut);
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        let mut is_first = true;
        while let Ok((mut client, _)) = listener.accept().await {
            let (target, told, is_first) = (target.clone(), Arc::clone(&told), std::mem::take(&mut is_first));
            connections.spawn(async move {
                let mut server = TcpStream::connect(target).await.unwrap();
                tokio::select! {
                    _ = copy_bidirectional(&mut client, &mut server) => {}
                    () = told.notified(), if is_first => std::future::pending().await,
                }
            });
        }
    });
    (KvConfig::single(url), cut, tasks)
}

#[tokio::test]
async fn a_silently_broken_connection_is_replaced() {
    let Some(url) = services::redis() else { return };
    within(LIMIT, async {
        let (config, cut, _forwarder) = with_a_silent_cut(target(&url).to_owned()).await;
        let kv = kv(&config);
        until(LIMIT, async || count(&kv, KEY).await.is_ok()).await;
        cut.notify_one();
        until(LIMIT, async || matches!(count(&kv, KEY).await, Err(Error::Timeout(_)))).await;
        until(LIMIT, async || count(&kv, KEY).await.is_ok()).await;
    })
    .await;
}

/// A client behind a proxy, connected.
async fn connected(url: &str) -> (Proxy, Kv) {
    let proxy = Proxy::start(target(url)).await;
    let kv = kv(&through(&proxy));
    until(LIMIT, async || count(&kv, KEY).await.is_ok()).await;
    (proxy, kv)
}

#[tokio::test]
async fn the_client_recovers_after_redis_was_frozen() {
    let Some(url) = services::redis() else { return };
    within(LIMIT, async {
        let (mut proxy, kv) = connected(&url).await;
        proxy.stall().await;
        until(LIMIT, async || matches!(count(&kv, KEY).await, Err(Error::Open { .. }))).await;
        proxy.restore().await;
        until(LIMIT, async || count(&kv, KEY).await.is_ok()).await;
    })
    .await;
}

#[tokio::test]
async fn one_stall_that_fails_many_calls_does_not_open_the_breaker() {
    let Some(url) = services::redis() else { return };
    within(LIMIT, async {
        let (mut proxy, kv) = connected(&url).await;
        proxy.stall().await;
        let stalled = join_all((0..200).map(|_| count(&kv, KEY))).await;
        proxy.restore().await;
        let timed_out = |answer: &_| *answer == Err(Error::Timeout(KvConfig::DEADLINE));
        assert!(stalled.iter().all(timed_out), "{stalled:?}");
        until(LIMIT, async || match count(&kv, KEY).await {
            Err(Error::Open { .. }) => panic!("one stall opened the breaker"),
            answer => answer.is_ok(),
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn dropping_the_last_clone_stops_the_background_task() {
    within(LIMIT, async {
        let (config, _server) = silence().await;
        let kv = kv(&config);
        let inner = Arc::downgrade(&kv.0);
        let other = kv.clone();
        drop(kv);
        assert!(inner.upgrade().is_some());
        drop(other);
        until(LIMIT, async || inner.upgrade().is_none()).await;
    })
    .await;
}

#[tokio::test]
async fn the_breaker_opens_for_a_second_and_closes_after_three_good_trials() {
    let Some(url) = services::redis() else { return };
    within(LIMIT, async {
        let clock = fixed_clock();
        let mut proxy = Proxy::start(target(&url)).await;
        let kv = Kv::connect(&through(&proxy), clock.clone()).unwrap();
        until(LIMIT, async || count(&kv, KEY).await.is_ok()).await;
        proxy.cut().await;
        let mut failed = 0;
        while !matches!(count(&kv, KEY).await, Err(Error::Open { .. })) {
            failed += 1;
            assert!(failed <= 3, "three failures in a row are enough");
        }
        proxy.restore().await;
        clock.advance(Duration::from_millis(400));
        let retry_after = Duration::from_millis(600);
        assert_eq!(count(&kv, KEY).await, Err(Error::Open { retry_after }), "it is too early for a trial");
        clock.advance(retry_after);
        for _ in 0..4 {
            assert_eq!(count(&kv, KEY).await, Ok(done()));
        }
    })
    .await;
}

#[tokio::test]
async fn a_wrong_password_works_after_the_server_changes_it() {
    within(LIMIT, async {
        let Some(server) = Server::start(&["--requirepass", "old"]).await else { return };
        let kv = kv(&KvConfig::single(format!("redis://:new@127.0.0.1:{}", server.port)));
        let error = count(&kv, KEY).await.unwrap_err();
        assert!(error.is_unavailable(), "{error:?}");
        let mut admin = server.connect_as(Some("old")).await;
        redis::cmd("CONFIG").arg("SET").arg("requirepass").arg("new").exec_async(&mut admin).await.unwrap();
        // The first call may still fail with a connection attempt already under way.
        let tries = [count(&kv, KEY).await, count(&kv, KEY).await, count(&kv, KEY).await];
        assert!(tries.contains(&Ok(done())), "{tries:?}");
    })
    .await;
}

#[tokio::test]
async fn an_evicting_memory_policy_is_reported() {
    within(LIMIT, async {
        let Some(server) = Server::start(&["--maxmemory-policy", "allkeys-lru"]).await else { return };
        let kv = kv(&super::patient(KvConfig::single(server.url())));
        assert_eq!(kv.maxmemory_policy().await.unwrap(), "allkeys-lru");
    })
    .await;
}
