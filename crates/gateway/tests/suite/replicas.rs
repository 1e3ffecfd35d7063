//! Several replicas of one role: load distribution and failover.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, routing::any};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt as _, net::TcpListener, task::JoinSet};
use urr_kernel::Role;
use urr_testkit::within;

use crate::sample::{AUTH, CATALOG, PAYMENTS};
use crate::{
    proxy::{answer_all, backend, in_front_of, nobody},
    world::{Options, PATIENCE, Served, World, request},
};

async fn named(name: &'static str) -> Served {
    backend(Router::new().fallback(any(async move || name))).await
}

#[tokio::test]
async fn replicas_are_used_round_robin_and_reads_survive_a_dead_one() {
    within(PATIENCE, async {
        let (one, other) = (named("one").await, named("other").await);
        let world = in_front_of(&CATALOG, &[one.address, other.address]);
        let ask = async |world: &World| world.send(request("GET", "/api/events", &[])).await.2;
        assert_eq!(
            [ask(&world).await, ask(&world).await, ask(&world).await],
            ["one", "other", "one"].map(Vec::from)
        );

        let world = in_front_of(&CATALOG, &[nobody(), other.address]);
        for _ in 0..20 {
            world.clock.advance(Duration::from_secs(2));
            assert_eq!(ask(&world).await, b"other");
        }
    })
    .await;
}

#[tokio::test]
async fn an_unsent_request_with_a_body_goes_to_another_replica() {
    within(PATIENCE, async {
        let other = backend(Router::new().fallback(any(async |body: String| body))).await;
        let world = in_front_of(&AUTH, &[nobody(), nobody(), other.address]);
        for _ in 0..6 {
            let mut request = request("POST", "/api/auth/login", &[]);
            let pieces = ["pass", "word"].map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece)));
            *request.body_mut() = Body::from_stream(futures_util::stream::iter(pieces));
            let (status, _, body) = world.send(request).await;
            assert_eq!((status, &*body), (200, &b"password"[..]));
            world.clock.advance(Duration::from_secs(2));
        }
    })
    .await;
}

/// Reads the first piece of a request on each connection, then closes it.
async fn hang_up(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut chunk = [0; 4_096];
        assert_ne!(stream.read(&mut chunk).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_partially_sent_request_is_not_repeated() {
    within(PATIENCE, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let breaks = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(hang_up(listener));
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let count = async move || {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        let other = backend(Router::new().fallback(any(count))).await;

        for (body, ends) in [("", true), ("password", true), ("pass", false)] {
            let world = in_front_of(&AUTH, &[breaks, other.address]);
            let mut request = request("POST", "/api/auth/login", &[]);
            if ends {
                *request.body_mut() = Body::from(body);
            } else {
                let piece = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from(body))]);
                let never = futures_util::stream::pending();
                *request.body_mut() = Body::from_stream(futures_util::StreamExt::chain(piece, never));
            }
            let (status, _, answer) = world.send(request).await;
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            assert_eq!((status, &answer["code"]), (502, &json!("gateway.no_answer")), "{body:?}");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 0);
    })
    .await;
}

/// A replica that accepts connections and never responds.
struct Frozen {
    address: std::net::SocketAddr,
    connections: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl Frozen {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, mut task) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
        let counted = Arc::clone(&connections);
        task.spawn(async move {
            let mut open = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                open.push(stream);
            }
        });
        Self { address, connections, _task: task }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn reads_leave_a_frozen_replica_after_a_third_of_the_time_limit() {
    within(PATIENCE, async {
        // A third of it is long past before a slow machine reaches the whole.
        const LIMIT: Duration = Duration::from_secs(6);
        let frozen = Frozen::start().await;
        let other = named("other").await;
        let clock = urr_kernel::Clock::system();
        let start = |replicas| {
            let remote = vec![(&CATALOG, replicas)];
            World::with(Options {
                remote,
                time_limit: Some(LIMIT),
                clock: clock.clone(),
                ..Options::default()
            })
        };
        let world = start(vec![frozen.address, other.address]);
        for _ in 0..20 {
            let (status, _, body) = world.send(request("GET", "/api/events", &[])).await;
            assert_eq!((status, &*body), (200, &b"other"[..]));
        }
        // It is avoided after the first timeout, and taken out for ten seconds after the second.
        let connections = frozen.connections();
        assert!((1..=2).contains(&connections), "the frozen replica got {connections} requests");

        // Without another replica the error comes early.
        let world = start(vec![frozen.address]);
        let (status, body) = within(LIMIT, world.get("/api/events", &[])).await;
        assert_eq!((status, &body["code"]), (504, &json!("gateway.timeout")));
    })
    .await;
}

#[tokio::test]
async fn writes_are_sent_once_even_to_a_frozen_replica() {
    within(PATIENCE, async {
        const LIMIT: Duration = Duration::from_millis(900);
        let frozen = Frozen::start().await;
        let served = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&served);
        let count = async move || {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        let other = backend(Router::new().fallback(any(count))).await;
        let world = World::with(Options {
            remote: vec![(&AUTH, vec![frozen.address, other.address])],
            time_limit: Some(LIMIT),
            clock: urr_kernel::Clock::system(),
            ..Options::default()
        });
        let login = async || world.ask("POST", "/api/auth/login", &[]).await;
        // Four concurrent requests: two wait for the frozen replica, which is taken out after a
        // third of the time limit.
        let answers = futures_util::future::join_all((0..4).map(|_| login())).await;
        let timed_out = answers.iter().filter(|(status, _)| *status == 504).count();
        assert_eq!((timed_out, served.load(Ordering::Relaxed)), (2, 2), "{answers:?}");
        for _ in 0..10 {
            assert_eq!(login().await.0, 200);
        }
        assert_eq!(frozen.connections(), 2);
    })
    .await;
}

#[tokio::test]
async fn without_replicas_the_error_names_the_service_and_retry_after() {
    within(PATIENCE, async {
        let address = nobody();
        let world = in_front_of(&PAYMENTS, &[address]);
        let bearer = world.bearer(Role::User);
        let ask = async || world.get("/api/payments/user/me", &[("authorization", &bearer)]).await;
        for _ in 0..15 {
            let (status, body) = ask().await;
            assert_eq!((status, &body["code"]), (503, &json!("http.unavailable")));
            assert_eq!(body["service"], "payments");
            assert!(body["message"].as_str().unwrap().contains("Payments"), "{body}");
        }
        let (_, body) = ask().await;
        assert_eq!(body["retryAfter"], 10, "the breaker is open");

        let listener = TcpListener::bind(address).await.unwrap();
        world.clock.advance(Duration::from_secs(10));
        let mut tasks = JoinSet::new();
        tasks.spawn(answer_all(listener, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
        assert_eq!(ask().await.0, 200, "a trial");
    })
    .await;
}

#[tokio::test]
async fn a_replica_that_rejects_all_requests_is_avoided_and_one_that_rejects_some_is_not() {
    within(PATIENCE, async {
        let other = named("other").await;
        for (answer, statuses) in [
            (
                "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
                [503, 200, 200, 200],
            ),
            ("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n", [503, 200, 503, 200]),
            (
                "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
                [404, 200, 404, 200],
            ),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let world = in_front_of(&CATALOG, &[listener.local_addr().unwrap(), other.address]);
            let mut tasks = JoinSet::new();
            tasks.spawn(answer_all(listener, answer));
            for status in statuses {
                assert_eq!(world.send(request("GET", "/api/events", &[])).await.0, status, "{answer}");
            }
        }
    })
    .await;
}
