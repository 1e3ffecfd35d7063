//! Tests of the listener's limits, over real sockets and with raw bytes.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    routing::{get, post},
};
use bytes::Bytes;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Semaphore,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use urr_http::{AccessLog, Edge, EdgeParts, Json, Limits, Peer, Server, named};
use urr_kernel::{Clock, Ids};
use urr_telemetry::Health;

/// No test waits longer than this for anything.
const DEADLINE: Duration = Duration::from_mins(1);

struct Running {
    addr: SocketAddr,
    stop: CancellationToken,
    end: AbortOnDropHandle<std::io::Result<()>>,
}

/// Serves `router` behind the edge on a port of its own.
async fn serve(router: Router, limits: Limits) -> Running {
    let clock = Clock::system();
    let parts = EdgeParts {
        limits,
        ids: Ids::random(clock.clone()),
        clock,
        access_log: AccessLog { sample: 0 },
        health: Health::new(),
        hsts: false,
    };
    let server = Server::bind("127.0.0.1:0").await.unwrap();
    let addr = server.local_addr().unwrap();
    let stop = CancellationToken::new();
    let end = spawn(server.serve(Edge::around(named(router), parts), limits, stop.clone()));
    Running { addr, stop, end: AbortOnDropHandle::new(end) }
}

#[expect(clippy::disallowed_methods, reason = "a test has no task tracker to spawn on")]
fn spawn<F: Future<Output: Send> + Send + 'static>(future: F) -> JoinHandle<F::Output> {
    tokio::spawn(future)
}

fn echo() -> Router {
    Router::new()
        .route("/", get(async || "hello"))
        .route("/peer", get(async |Extension(Peer(peer)): Extension<Peer>| peer.to_string()))
        .route("/echo", post(async |Json(body): Json<Value>| Json(body)))
        .route("/ignore", post(async || "I did not read it"))
}

/// Sends bytes and reads until the server closes the connection. A request must ask for that with
/// `connection: close`.
async fn talk(addr: SocketAddr, bytes: &[u8]) -> String {
    timeout(DEADLINE, async {
        let (mut read, mut write) = TcpStream::connect(addr).await.unwrap().into_split();
        let bytes = bytes.to_vec();
        // The server may close before it has read everything; only its response matters.
        let writing = spawn(async move {
            let _refused = write.write_all(&bytes).await;
            write
        });
        let mut answer = Vec::new();
        read.read_to_end(&mut answer).await.unwrap();
        writing.await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    })
    .await
    .expect("the server closes the connection")
}

fn small(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits { drain_time: Duration::from_secs(20), ..Limits::default() };
    change(&mut limits);
    limits
}

const GET_AND_CLOSE: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn a_request_is_answered_and_has_its_peer_address() {
    let running = serve(echo(), Limits::default()).await;
    let answer = talk(running.addr, GET_AND_CLOSE).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"), "{answer}");
    let answer = talk(running.addr, b"GET /peer HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    assert!(answer.contains("127.0.0.1:"), "{answer}");
}

#[tokio::test]
async fn headers_that_never_end_close_the_connection() {
    let running = serve(echo(), small(|limits| limits.header_read_time = Duration::from_millis(100))).await;
    let answer = talk(running.addr, b"GET / HTTP/1.1\r\nhost: a\r\nx-slow: ").await;
    assert!(!answer.contains("200"), "{answer}");
}

#[tokio::test]
async fn trickling_headers_close_the_connection() {
    let running = serve(echo(), small(|limits| limits.header_read_time = Duration::from_millis(200))).await;
    let closed = timeout(DEADLINE, async {
        let (mut read, mut write) = TcpStream::connect(running.addr).await.unwrap().into_split();
        let trickle = spawn(async move {
            write.write_all(b"GET / HTTP/1.1\r\nx: ").await.unwrap();
            let mut every = tokio::time::interval(Duration::from_millis(20));
            while write.write_all(b"a").await.is_ok() {
                every.tick().await;
            }
        });
        let mut answer = Vec::new();
        let _reset = read.read_to_end(&mut answer).await;
        drop(read);
        trickle.await.unwrap();
        answer
    });
    let answer = closed.await.expect("a trickle of bytes does not keep the connection open");
    assert!(!String::from_utf8_lossy(&answer).contains("200"));
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let brief = small(|limits| {
        limits.header_read_time = Duration::from_millis(100);
        limits.keep_alive_time = Duration::from_millis(200);
    });
    let running = serve(echo(), brief).await;
    let answer = talk(running.addr, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(talk(running.addr, b"").await, "");
}

#[tokio::test]
async fn a_header_of_a_mebibyte_is_431() {
    let running = serve(echo(), Limits::default()).await;
    let request = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "y".repeat(1024 * 1024));
    let answer = talk(running.addr, request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn header_size_is_limited_as_configured() {
    let running = serve(echo(), small(|limits| limits.header_bytes = 9_000)).await;
    let padded = |length: usize| {
        let empty = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx: \r\n\r\n";
        empty.replace("x: ", &format!("x: {}", "y".repeat(length - empty.len())))
    };
    let fits = talk(running.addr, padded(8_900).as_bytes()).await;
    assert!(fits.starts_with("HTTP/1.1 200"), "{fits}");
    let over = talk(running.addr, padded(9_100).as_bytes()).await;
    assert!(over.starts_with("HTTP/1.1 431"), "{over}");
}

#[tokio::test]
async fn ten_thousand_headers_are_431() {
    for limits in [Limits::default(), small(|limits| limits.headers = 20)] {
        let running = serve(echo(), limits).await;
        let request = format!("GET / HTTP/1.1\r\nhost: a\r\n{}\r\n", "a: b\r\n".repeat(10_000));
        let answer = talk(running.addr, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    let running = serve(echo(), small(|limits| limits.headers = 20)).await;
    let headers = |count: usize| {
        format!("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{}\r\n", "a: b\r\n".repeat(count - 2))
    };
    assert!(talk(running.addr, headers(20).as_bytes()).await.starts_with("HTTP/1.1 200"));
    assert!(talk(running.addr, headers(21).as_bytes()).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test]
async fn http_1_1_requires_a_host_header() {
    let running = serve(echo(), Limits::default()).await;
    let nameless = talk(running.addr, b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await;
    assert!(nameless.starts_with("HTTP/1.1 400") && nameless.contains("http.host_required"), "{nameless}");
    assert!(nameless.contains("x-request-id: ") && nameless.contains("\"requestId\""), "{nameless}");
    let old = talk(running.addr, b"GET / HTTP/1.0\r\n\r\n").await;
    assert!(old.starts_with("HTTP/1.0 200"), "{old}");
}

#[tokio::test]
async fn a_large_body_is_413_before_it_is_read_and_the_client_gets_the_response() {
    let running = serve(echo(), Limits::default()).await;
    let mut request =
        b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 2097152\r\n\r\n".to_vec();
    // Only the head is sent: the announced length is enough to refuse.
    let answer = talk(running.addr, &request).await;
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("http.body_too_large"), "{answer}");
    // The whole body is sent: the response must not be lost in a reset.
    request.extend_from_slice(&vec![b' '; 2_097_152]);
    let answer = talk(running.addr, &request).await;
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("http.body_too_large"), "{answer}");
}

#[tokio::test]
async fn a_chunked_body_is_cut_off_at_the_limit() {
    let running = serve(echo(), small(|limits| limits.body_bytes = 10_000)).await;
    let head = "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
    let answer = talk(running.addr, format!("{head}{}", chunk.repeat(3)).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn a_body_that_never_arrives_is_408() {
    let running = serve(echo(), small(|limits| limits.request_time = Duration::from_millis(100))).await;
    let request =
        b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"half\":";
    let answer = talk(running.addr, request).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("http.slow_body"), "{answer}");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let running = serve(echo(), Limits::default()).await;
    let post = |body: &str| {
        format!(
            "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let requests =
        format!("{}{}{}", post("{\"a\":1}"), post("{\"a\":22}"), String::from_utf8_lossy(GET_AND_CLOSE));
    let answer = talk(running.addr, requests.as_bytes()).await;
    let bodies: Vec<_> = ["{\"a\":1}", "{\"a\":22}", "hello"]
        .iter()
        .map(|body| answer.find(body).expect("answered"))
        .collect();
    assert!(bodies.is_sorted() && answer.matches("HTTP/1.1 200").count() == 3, "{answer}");
}

#[tokio::test]
async fn an_unread_body_is_not_parsed_as_the_next_request() {
    let running = serve(echo(), Limits::default()).await;
    let smuggled = "GET /peer HTTP/1.1\r\nhost: a\r\n\r\n";
    let filler = "z".repeat(300_000);
    let request = format!(
        "POST /ignore HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{smuggled}{filler}",
        smuggled.len() + filler.len()
    );
    let answer = talk(running.addr, request.as_bytes()).await;
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert!(answer.ends_with("I did not read it"), "{answer}");
}

#[tokio::test]
async fn ambiguous_framing_is_refused_or_closes_the_connection() {
    let running = serve(echo(), Limits::default()).await;
    let next = "GET /peer HTTP/1.1\r\nhost: a\r\n\r\n";
    for headers in [
        "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: +5\r\n",
        "content-length: 5, 6\r\n",
        "content-length: -1\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "x: a\r\n b\r\n",
        "bad name: a\r\n",
        "x: a\0b\r\n",
    ] {
        let request = format!("POST /ignore HTTP/1.1\r\nhost: a\r\n{headers}\r\n0\r\n\r\n{next}");
        let answer = talk(running.addr, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{headers:?}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{headers:?}: {answer}");
    }
}

#[tokio::test]
async fn odd_request_targets_are_4xx() {
    let running = serve(echo(), Limits::default()).await;
    for line in
        ["OPTIONS * HTTP/1.1", "CONNECT a:80 HTTP/1.1", "GET http://other/none HTTP/1.1", "GET /%00 HTTP/1.1"]
    {
        let request = format!("{line}\r\nhost: a\r\nconnection: close\r\n\r\n");
        let answer = talk(running.addr, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("http.not_found"), "{line}: {answer}");
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected() {
    let ended = Arc::new(Semaphore::new(0));
    let told = ended.clone();
    let flood = async move || {
        let on_drop = PermitOnDrop(told.clone());
        let chunks = futures_util::stream::repeat_with(move || {
            let _alive = &on_drop;
            Ok::<_, std::io::Error>(Bytes::from_static(&[b'z'; 8_192]))
        });
        axum::body::Body::from_stream(chunks)
    };
    let limits = small(|limits| limits.write_stall_time = Duration::from_millis(100));
    let running = serve(Router::new().route("/flood", get(flood)), limits).await;
    let mut silent = TcpStream::connect(running.addr).await.unwrap();
    silent.write_all(b"GET /flood HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    // The client never reads, so the server closes the connection and drops the endless body.
    timeout(DEADLINE, ended.acquire()).await.expect("the connection was dropped").unwrap().forget();
}

/// Adds a permit when dropped.
struct PermitOnDrop(Arc<Semaphore>);

impl Drop for PermitOnDrop {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

#[tokio::test]
async fn connections_over_the_limit_get_503_until_one_closes() {
    let running = serve(echo(), small(|limits| limits.max_connections = 2)).await;
    let ask = async |stream: &mut TcpStream| {
        stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let mut answer = vec![0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    };
    let [mut first, mut second] =
        [TcpStream::connect(running.addr).await.unwrap(), TcpStream::connect(running.addr).await.unwrap()];
    assert_eq!([ask(&mut first).await, ask(&mut second).await], ["HTTP/1.1 200", "HTTP/1.1 200"]);
    let answer = talk(running.addr, GET_AND_CLOSE).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("http.overloaded"), "{answer}");

    drop(first);
    timeout(DEADLINE, async {
        while !talk(running.addr, GET_AND_CLOSE).await.starts_with("HTTP/1.1 200") {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("a closed connection frees its slot");
}

#[tokio::test]
async fn shutdown_finishes_requests_closes_idle_connections_and_refuses_new_ones() {
    let (entered, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (arrived, waiting) = (entered.clone(), gate.clone());
    let slow = async move || {
        arrived.add_permits(1);
        waiting.acquire().await.unwrap().forget();
        "finished"
    };
    let router = Router::new().route("/slow", get(slow)).route("/", get(async || "hello"));
    let running = serve(router, Limits::default()).await;
    let addr = running.addr;
    // An idle keep-alive connection.
    let mut idle = TcpStream::connect(addr).await.unwrap();
    idle.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"hello") {
        assert_ne!(idle.read_buf(&mut answer).await.unwrap(), 0, "the connection stays open");
    }
    let in_progress = spawn(async move { talk(addr, b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await });
    entered.acquire().await.unwrap().forget();

    running.stop.cancel();
    let mut rest = Vec::new();
    timeout(DEADLINE, idle.read_to_end(&mut rest)).await.expect("the idle connection is closed").unwrap();
    assert!(rest.is_empty());
    timeout(DEADLINE, async { while TcpStream::connect(addr).await.is_ok() {} })
        .await
        .expect("new connections are refused");
    gate.add_permits(1);
    let answer = timeout(DEADLINE, in_progress).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("finished"), "{answer}");
    timeout(DEADLINE, running.end).await.expect("the server stops").unwrap().unwrap();
}

#[tokio::test]
async fn a_request_that_outlasts_the_drain_is_cut_off() {
    let entered = Arc::new(Semaphore::new(0));
    let arrived = entered.clone();
    let stuck = async move || -> &'static str {
        arrived.add_permits(1);
        std::future::pending().await
    };
    let limits = small(|limits| limits.drain_time = Duration::from_millis(50));
    let running = serve(Router::new().route("/stuck", get(stuck)), limits).await;
    let addr = running.addr;
    let cut = spawn(async move { talk(addr, b"GET /stuck HTTP/1.1\r\nhost: a\r\n\r\n").await });
    entered.acquire().await.unwrap().forget();
    running.stop.cancel();
    timeout(DEADLINE, running.end).await.expect("the server stops after the drain time").unwrap().unwrap();
    assert_eq!(timeout(DEADLINE, cut).await.unwrap().unwrap(), "");
}

#[tokio::test]
async fn binding_an_address_in_use_fails() {
    let running = serve(echo(), Limits::default()).await;
    assert_eq!(Server::bind(running.addr).await.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
}
