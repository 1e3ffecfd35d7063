//! Remote services: what is forwarded, how it fails, and how requests are distributed.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Extension, Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
    routing::{any, get},
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::{Mutex, mpsc},
    task::JoinSet,
};
use tower::ServiceExt as _;
use urr_http::{Limits, Peer, RoleRoutes};
use urr_kernel::Role;
use urr_testkit::within;

use crate::sample::{AUTH, CATALOG, QUEUE, STATS, TICKETS};
use crate::world::{Options, PATIENCE, Served, World, request};

pub(crate) fn in_front_of(service: &'static RoleRoutes, replicas: &[SocketAddr]) -> World {
    World::with(Options { remote: vec![(service, replicas.to_vec())], ..Options::default() })
}

/// Returns what it received.
async fn report(headers: HeaderMap, request: Request) -> Response {
    let lines: Vec<_> =
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    let (method, uri) = (request.method().to_string(), request.uri().to_string());
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let body =
        json!({"method": method, "uri": uri, "headers": lines, "body": String::from_utf8_lossy(&body)});
    let headers = [
        ("x-answer", "passes"),
        ("connection", "x-hop"),
        ("x-hop", "stays"),
        ("keep-alive", "timeout=5"),
        ("proxy-authenticate", "Basic"),
    ];
    (StatusCode::IM_A_TEAPOT, headers, body.to_string()).into_response()
}

pub(crate) async fn backend(router: Router) -> Served {
    Served::start(router, Limits::default()).await
}

/// An address on which nothing listens.
pub(crate) fn nobody() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], urr_testkit::free_port()))
}

#[tokio::test]
async fn hop_by_hop_headers_are_not_forwarded() {
    within(PATIENCE, async {
        let backend = backend(Router::new().fallback(any(report))).await;
        let world = in_front_of(&TICKETS, &[backend.address]);
        let bearer = world.bearer(Role::User);
        let mut request = request(
            "POST",
            "/api/v1/seats/reserve?a=%2f&b",
            &[
                ("authorization", &bearer),
                ("host", "urr.example"),
                ("x-user-id", "forged"),
                ("x-forwarded-for", "1.1.1.1"),
                ("x-request-id", "not a uuid"),
                ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
                ("connection", "x-mine"),
                ("x-mine", "stays"),
            ],
        );
        *request.body_mut() = Body::from("body");
        let (status, headers, body) = world.send(request).await;
        assert_eq!((status, headers["x-answer"].to_str().unwrap()), (418, "passes"));
        for name in ["connection", "x-hop", "keep-alive", "proxy-authenticate"] {
            assert!(!headers.contains_key(name), "{name}");
        }
        let got: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(got["method"], "POST");
        assert_eq!(got["uri"], "/api/seats/reserve?a=%2f&b", "the forwarded path equals the guarded one");
        assert_eq!(got["body"], "body");
        let mut lines: Vec<_> =
            got["headers"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect();
        lines.sort();
        let id = headers["x-request-id"].to_str().unwrap();
        let expected = [
            format!("authorization: {bearer}"),
            "content-length: 4".to_owned(),
            "host: urr.example".to_owned(),
            "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned(),
            "via: 1.1 urr".to_owned(),
            "x-forwarded-for: 198.51.100.1".to_owned(),
            format!("x-request-id: {id}"),
            format!("x-urr-hop: {}", world.mark("198.51.100.1")),
        ];
        assert_eq!(lines, expected);
    })
    .await;
}

#[tokio::test]
async fn guards_apply_to_remote_routes_too() {
    let world = in_front_of(&STATS, &[nobody()]);
    assert_eq!(world.get("/api/stats/overview", &[]).await.0, 401);
    let user = world.bearer(Role::User);
    assert_eq!(world.get("/api/stats/overview", &[("authorization", &user)]).await.0, 403);
}

/// Both bodies are streamed: each side sends its next piece only after the other has received the
/// last.
#[tokio::test]
async fn bodies_are_streamed_both_ways() {
    within(PATIENCE, async {
        type Halves = (mpsc::Sender<Bytes>, mpsc::Receiver<Result<Bytes, std::io::Error>>);
        async fn converse(State(halves): State<Arc<Mutex<Option<Halves>>>>, request: Request) -> Response {
            let (seen, answers) = halves.lock().await.take().unwrap();
            let mut body = request.into_body();
            let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
            seen.send(first).await.unwrap();
            let second = body.frame().await.unwrap().unwrap().into_data().unwrap();
            seen.send(second).await.unwrap();
            let answers = futures_util::stream::unfold(answers, async |mut answers| {
                Some((answers.recv().await?, answers))
            });
            Body::from_stream(answers).into_response()
        }
        let (seen, mut saw) = mpsc::channel(1);
        let (answer, answers) = mpsc::channel(1);
        let halves = Arc::new(Mutex::new(Some((seen, answers))));
        let backend = backend(Router::new().fallback(any(converse)).with_state(halves)).await;
        let world = in_front_of(&AUTH, &[backend.address]);

        let (speak, words) = mpsc::channel::<Result<Bytes, std::io::Error>>(1);
        let words = futures_util::stream::unfold(words, async |mut words| Some((words.recv().await?, words)));
        let mut request = request("POST", "/api/auth/login", &[]);
        *request.body_mut() = Body::from_stream(words);
        let mut tasks = JoinSet::new();
        let app = world.app.clone();
        tasks.spawn(async move { app.oneshot(request).await.unwrap() });

        speak.send(Ok(Bytes::from("one"))).await.unwrap();
        assert_eq!(saw.recv().await.unwrap(), "one");
        speak.send(Ok(Bytes::from("two"))).await.unwrap();
        assert_eq!(saw.recv().await.unwrap(), "two");
        drop(speak);

        let response = tasks.join_next().await.unwrap().unwrap();
        let mut body = response.into_body();
        for word in ["three", "four"] {
            answer.send(Ok(Bytes::from(word))).await.unwrap();
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), word);
        }
        drop(answer);
        assert!(body.frame().await.is_none());
    })
    .await;
}

#[tokio::test]
async fn connections_are_reused() {
    within(PATIENCE, async {
        let port = async |Extension(Peer(peer)): Extension<Peer>| peer.port().to_string();
        let backend = backend(Router::new().fallback(get(port))).await;
        let world = in_front_of(&CATALOG, &[backend.address]);
        let mut ports = Vec::new();
        for _ in 0..20 {
            ports.push(world.send(request("GET", "/api/events", &[])).await.2);
        }
        ports.dedup();
        assert_eq!(ports.len(), 1);
    })
    .await;
}

/// Sends the same response to every request on every connection.
pub(crate) async fn answer_all(listener: TcpListener, answer: &'static str) {
    let mut connections = JoinSet::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        connections.spawn(async move {
            let mut chunk = [0; 4_096];
            while matches!(stream.read(&mut chunk).await, Ok(1..)) {
                stream.write_all(answer.as_bytes()).await.unwrap();
                if answer.is_empty() {
                    return;
                }
            }
        });
    }
}

#[tokio::test]
async fn broken_and_missing_responses_have_different_errors_and_no_request_is_repeated() {
    within(PATIENCE, async {
        let asked = Arc::new(AtomicUsize::new(0));
        let hangs = {
            let asked = Arc::clone(&asked);
            backend(Router::new().fallback(any(async move || -> () {
                asked.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>().await;
            })))
            .await
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let breaks = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(answer_all(listener, ""));

        for (address, status, code) in
            [(breaks, 502, "gateway.no_answer"), (hangs.address, 504, "gateway.timeout")]
        {
            let world = World::with(Options {
                remote: vec![(&QUEUE, vec![address, address])],
                time_limit: Some(Duration::from_millis(200)),
                ..Options::default()
            });
            let bearer = world.bearer(Role::User);
            for (method, path) in [("GET", "/api/queue/status/1"), ("POST", "/api/queue/check/1")] {
                let (answered, body) = world.ask(method, path, &[("authorization", &bearer)]).await;
                assert_eq!(
                    (answered, &body["code"], &body["service"]),
                    (status, &json!(code), &json!("queue"))
                );
            }
        }
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    })
    .await;
}

#[tokio::test]
async fn any_status_counts_as_a_response() {
    within(PATIENCE, async {
        let busy = backend(Router::new().fallback(any(async || StatusCode::SERVICE_UNAVAILABLE))).await;
        let world = in_front_of(&AUTH, &[busy.address]);
        for _ in 0..30 {
            let (status, _, body) = world.send(request("POST", "/api/auth/refresh", &[])).await;
            assert_eq!((status, body.len()), (503, 0), "a 503 of one route must not block the others");
        }
    })
    .await;
}

#[tokio::test]
async fn a_broken_request_body_does_not_count_against_the_replica() {
    within(PATIENCE, async {
        let backend = backend(Router::new().fallback(any(report))).await;
        let world = in_front_of(&AUTH, &[backend.address]);
        for _ in 0..20 {
            let pieces = (0..20).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 1_000])));
            let mut too_large = request("POST", "/api/auth/login", &[]);
            *too_large.body_mut() = Body::from_stream(futures_util::stream::iter(pieces));
            let (status, _, body) = world.send(too_large).await;
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!((status, &body["code"]), (413, &json!("http.body_too_large")));
            world.clock.advance(Duration::from_secs(2));
        }
        assert_eq!(world.ask("POST", "/api/auth/login", &[]).await.0, 418);
    })
    .await;
}

#[tokio::test]
async fn a_slow_request_body_does_not_count_against_the_replica() {
    within(PATIENCE, async {
        const LIMIT: Duration = Duration::from_secs(1);
        let hangs = async || -> () { std::future::pending().await };
        let router = Router::new().route("/api/auth/register", any(hangs)).fallback(any(report));
        let backend = backend(router).await;
        let remote = vec![(&AUTH, vec![backend.address])];
        let clock = urr_kernel::Clock::system();
        let world = World::with(Options { remote, time_limit: Some(LIMIT), clock, ..Options::default() });
        let slow = async |path: &str, ends_after: Duration| {
            let mut slow = request("POST", path, &[]);
            let rest = futures_util::stream::once(async move {
                tokio::time::sleep(ends_after).await;
                Ok::<_, std::io::Error>(Bytes::from("rest"))
            });
            *slow.body_mut() = Body::from_stream(rest);
            let (status, _, body) = world.send(slow).await;
            (status, serde_json::from_slice::<Value>(&body).unwrap()["code"].clone())
        };
        for (path, ends_after, answer) in [
            ("/api/auth/login", Duration::MAX, (408, json!("http.slow_body"))),
            ("/api/auth/register", LIMIT * 4 / 5, (504, json!("gateway.timeout"))),
        ] {
            let answers = futures_util::future::join_all((0..10).map(|_| slow(path, ends_after))).await;
            assert_eq!(answers, vec![answer; 10]);
            assert_eq!(
                world.ask("POST", "/api/auth/login", &[]).await.0,
                418,
                "the replica must not be taken out after {path}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn compressed_responses_of_other_processes_are_forwarded_unchanged() {
    within(PATIENCE, async {
        let squeezed = async |headers: HeaderMap| {
            assert_eq!(headers[header::ACCEPT_ENCODING], "gzip");
            ([(header::CONTENT_TYPE, "text/html"), (header::CONTENT_ENCODING, "gzip")], vec![7; 5_000])
        };
        let plain = async || ([(header::CONTENT_TYPE, "text/html")], vec![b'a'; 5_000]);
        let router = Router::new().route("/api/events", get(squeezed)).route("/api/artists", get(plain));
        let backend = backend(router).await;
        let world = in_front_of(&CATALOG, &[backend.address]);
        let gzip = [("accept-encoding", "gzip")];
        let (_, headers, body) = world.send(request("GET", "/api/events", &gzip)).await;
        assert_eq!((headers[header::CONTENT_ENCODING].to_str().unwrap(), body), ("gzip", vec![7; 5_000]));
        let (_, headers, body) = world.send(request("GET", "/api/artists", &gzip)).await;
        assert!(!headers.contains_key(header::CONTENT_ENCODING), "compressing would require buffering");
        assert_eq!(body.len(), 5_000);
    })
    .await;
}
