//! The client against servers that respond, fail, stall or send invalid data.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, routing::post};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use urr_http::{Call, CallError, Client, ClientLimits, Limits, Server, Target};
use urr_kernel::{BreakerLimits, Clock, Timestamp};

/// No test waits longer than this for anything.
const DEADLINE: Duration = Duration::from_mins(1);

/// The default limits with a short retry pause.
fn limits() -> ClientLimits {
    ClientLimits { pause: Duration::from_millis(1), ..ClientLimits::default() }
}

fn client(limits: ClientLimits) -> Client {
    Client::new(limits, Clock::system())
}

#[expect(clippy::disallowed_methods, reason = "a test has no task tracker to spawn on")]
fn spawn<F: Future<Output: Send> + Send + 'static>(future: F) -> AbortOnDropHandle<F::Output> {
    AbortOnDropHandle::new(tokio::spawn(future))
}

async fn serve(router: Router) -> (String, AbortOnDropHandle<std::io::Result<()>>) {
    let server = Server::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", server.local_addr().unwrap());
    (base, spawn(server.serve(router, Limits::default(), CancellationToken::new())))
}

/// A plain TCP server. `act` handles each connection, by its number.
async fn raw<F>(
    act: impl Fn(usize, TcpStream) -> F + Send + 'static,
) -> (String, Arc<AtomicUsize>, AbortOnDropHandle<()>)
where
    F: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let task = spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            act(counted.fetch_add(1, Ordering::SeqCst), stream).await;
        }
    });
    (base, count, task)
}

async fn read_request(stream: &mut TcpStream) {
    let mut seen = Vec::new();
    while !seen.ends_with(b"{}") {
        assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0, "the client hung up early");
    }
}

async fn answer(mut stream: TcpStream) {
    read_request(&mut stream).await;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await.unwrap();
}

async fn hang_up(mut stream: TcpStream) {
    read_request(&mut stream).await;
}

fn ask() -> Call {
    Call::post_json("/x", "{}")
}

async fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn headers_and_body_are_sent_and_any_status_is_a_response() {
    let echo = async |headers: HeaderMap, body: Bytes| {
        assert_eq!(headers["content-type"], "application/json");
        (StatusCode::CONFLICT, [("x-back", headers["x-token"].clone())], body)
    };
    let (base, _server) = serve(Router::new().route("/internal/echo", post(echo))).await;
    let target = client(limits()).target(&format!("{base}/internal/")).unwrap();
    let call = Call::post_json("/echo", "{\"a\":1}")
        .header(HeaderName::from_static("x-token"), HeaderValue::from_static("secret"));
    let answer = target.send(call).await.unwrap();
    assert_eq!((answer.status, &answer.body[..]), (StatusCode::CONFLICT, &b"{\"a\":1}"[..]));
    assert_eq!(answer.headers["x-back"], "secret");
}

#[tokio::test]
async fn a_refused_connection_is_not_sent() {
    let target = client(limits()).target(&closed_port().await).unwrap();
    assert!(matches!(target.send(ask()).await, Err(CallError::NotSent { .. })));
}

#[tokio::test]
async fn a_connect_timeout_is_not_sent() {
    // The listener never accepts, so once its backlog is full the kernel ignores new connections.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(stream) = timeout(Duration::from_millis(200), TcpStream::connect(addr)).await {
        queue.push(stream.unwrap());
        assert!(queue.len() < 100, "the backlog is one connection");
    }
    let limits = ClientLimits { connect: Duration::from_millis(50), ..limits() };
    let target = client(limits).target(&format!("http://{addr}")).unwrap();
    assert!(matches!(target.send(ask()).await, Err(CallError::NotSent { .. })));
}

#[tokio::test]
async fn a_read_timeout_leaves_the_outcome_unknown() {
    let (base, count, _server) = raw(|_, stream| async move {
        let _open = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let limits = ClientLimits { read: Duration::from_millis(100), ..limits() };
    let target = client(limits).target(&base).unwrap();
    assert!(matches!(target.send(ask()).await, Err(CallError::Unknown { .. })));
    assert_eq!(count.load(Ordering::SeqCst), 1, "a call is not retried unless it is idempotent");
}

#[tokio::test]
async fn a_truncated_response_leaves_the_outcome_unknown() {
    let (base, _, _server) = raw(|_, mut stream| async move {
        read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await.unwrap();
    })
    .await;
    let target = client(limits()).target(&base).unwrap();
    assert!(matches!(target.send(ask()).await, Err(CallError::Unknown { .. })));
}

#[tokio::test]
async fn an_idempotent_call_is_tried_three_times() {
    let (base, count, _server) =
        raw(|n, stream| async move { if n < 2 { hang_up(stream).await } else { answer(stream).await } })
            .await;
    let target = client(limits()).target(&base).unwrap();
    let reply = target.send(ask().idempotent(true)).await.unwrap();
    assert_eq!((&reply.body[..], count.load(Ordering::SeqCst)), (&b"ok"[..], 3));

    let (base, count, _server) = raw(|_, stream| hang_up(stream)).await;
    let target = client(limits()).target(&base).unwrap();
    assert!(matches!(target.send(ask().idempotent(true)).await, Err(CallError::Unknown { .. })));
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_call_that_is_not_idempotent_is_tried_once() {
    let (base, count, _server) = raw(|_, stream| hang_up(stream)).await;
    let target = client(limits()).target(&base).unwrap();
    assert!(target.send(ask()).await.is_err());
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_error_status_is_not_retried() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let fail = async move || {
        counted.fetch_add(1, Ordering::SeqCst);
        StatusCode::INTERNAL_SERVER_ERROR
    };
    let (base, _server) = serve(Router::new().route("/x", post(fail))).await;
    let target = client(limits()).target(&base).unwrap();
    assert_eq!(target.send(ask().idempotent(true)).await.unwrap().status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn no_retry_starts_beyond_the_time_limit_of_the_call() {
    let limits = ClientLimits { pause: DEADLINE, ..limits() };
    let target = client(limits).target(&closed_port().await).unwrap();
    let call = ask().idempotent(true).within(Duration::from_secs(5));
    let error = timeout(DEADLINE / 2, target.send(call)).await.expect("the call fails instead of waiting");
    assert!(matches!(error, Err(CallError::NotSent { .. })));
}

#[tokio::test]
async fn a_response_over_the_size_limit_is_refused() {
    let (base, _server) = serve(Router::new().route("/x", post(async || "z".repeat(1_001)))).await;
    let target = client(ClientLimits { answer_bytes: 1_000, ..limits() }).target(&base).unwrap();
    assert!(matches!(target.send(ask()).await, Err(CallError::TooLarge { limit: 1_000, .. })));
    let target = client(ClientLimits { answer_bytes: 1_001, ..limits() }).target(&base).unwrap();
    assert_eq!(target.send(ask()).await.unwrap().body.len(), 1_001);
}

async fn fail_until_open(target: &Target) {
    for _ in 0..BreakerLimits::SERVICE.window {
        assert!(!target.is_open());
        let _failed = target.send(ask()).await;
    }
    assert!(target.is_open());
}

#[tokio::test]
async fn the_breaker_opens_after_failures_and_closes_again() {
    let (base, count, _server) =
        raw(|n, stream| async move { if n < 10 { hang_up(stream).await } else { answer(stream).await } })
            .await;
    let clock = Clock::fixed(Timestamp::from_micros(1_700_000_000_000_000));
    let target = Client::new(limits(), clock.clone()).target(&base).unwrap();
    fail_until_open(&target).await;
    let error = target.send(ask().idempotent(true)).await.unwrap_err();
    assert!(matches!(error, CallError::Open { .. }), "{error}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(10)));
    assert_eq!(count.load(Ordering::SeqCst), 10, "an open breaker sends nothing");

    clock.advance(Duration::from_secs(10));
    for _ in 0..3 {
        target.send(ask()).await.unwrap();
    }
    assert!(!target.is_open());
}

#[tokio::test]
async fn status_503_opens_the_breaker_and_500_does_not() {
    let router = Router::new()
        .route("/out/x", post(async || StatusCode::SERVICE_UNAVAILABLE))
        .route("/bug/x", post(async || StatusCode::INTERNAL_SERVER_ERROR));
    let (base, _server) = serve(router).await;
    let client = client(limits());
    let (out, bug) =
        (client.target(&format!("{base}/out")).unwrap(), client.target(&format!("{base}/bug")).unwrap());
    fail_until_open(&out).await;
    for _ in 0..20 {
        bug.send(ask()).await.unwrap();
    }
    assert!(!bug.is_open(), "each target has a breaker of its own");
}

#[tokio::test]
async fn concurrent_calls_are_limited() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (at_once, peak) = (now.clone(), most.clone());
    let busy = async move || {
        peak.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        at_once.fetch_sub(1, Ordering::SeqCst);
    };
    let (base, _server) = serve(Router::new().route("/x", post(busy))).await;
    let target = client(ClientLimits { in_flight: 3, ..limits() }).target(&base).unwrap();
    let calls: tokio::task::JoinSet<_> = (0..50)
        .map(|_| {
            let target = target.clone();
            async move { target.send(ask()).await }
        })
        .collect();
    for reply in calls.join_all().await {
        assert_eq!(reply.unwrap().status, StatusCode::OK);
    }
    assert!(most.load(Ordering::SeqCst) <= 3);
}

#[tokio::test]
async fn invalid_targets_and_paths_are_refused() {
    let client = client(limits());
    for base in ["", "127.0.0.1:80", "ftp://a", "http://", "http://user:pw@a", "http://a/?x=1", "redis://a"] {
        assert!(client.target(base).is_err(), "{base}");
    }
    let target = client.target("http://127.0.0.1:9").unwrap();
    for path in ["x", "", "/a b", "/a\r\nhost: evil"] {
        assert!(matches!(target.send(Call::get(path)).await, Err(CallError::Invalid { .. })), "{path:?}");
    }
}

/// A TLS server with a self-signed certificate for `localhost`. It answers one request per
/// connection.
async fn tls_server() -> (String, CertificateDer<'static>, AbortOnDropHandle<()>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let task = spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut seen = Vec::new();
            while !seen.ends_with(b"{}") && stream.read_buf(&mut seen).await.is_ok_and(|read| read > 0) {}
            let reply = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\ntls";
            let _gone = stream.write_all(reply).await;
            let _gone = stream.shutdown().await;
        }
    });
    (base, certificate, task)
}

#[tokio::test]
async fn https_accepts_only_trusted_certificates() {
    let (base, certificate, _server) = tls_server().await;
    let trusting = Client::trusting(limits(), Clock::system(), vec![certificate]);
    let reply = trusting.target(&base).unwrap().send(ask()).await.unwrap();
    assert_eq!(&reply.body[..], b"tls");

    // On a system without root certificates, creating the target fails instead.
    if let Ok(target) = client(limits()).target(&base) {
        assert!(matches!(target.send(ask()).await, Err(CallError::NotSent { .. })));
    }
}
