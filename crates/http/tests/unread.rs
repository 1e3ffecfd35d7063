//! Responses to requests that cannot be parsed, over real sockets.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{net::SocketAddr, time::Duration};

use axum::{Router, routing::get};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use urr_http::{AccessLog, Edge, EdgeParts, Limits, Server};
use urr_kernel::{Clock, Ids};
use urr_telemetry::Health;

/// No test waits longer than this for anything.
const DEADLINE: Duration = Duration::from_mins(1);

/// More than the socket buffers hold.
const LARGE: usize = 16 * 1024 * 1024;

async fn serve() -> (SocketAddr, AbortOnDropHandle<std::io::Result<()>>) {
    let clock = Clock::system();
    let parts = EdgeParts {
        limits: Limits::default(),
        ids: Ids::random(clock.clone()),
        clock,
        access_log: AccessLog { sample: 0 },
        health: Health::new(),
        hsts: true,
    };
    let router =
        Router::new().route("/", get(async || "hello")).route("/large", get(async || vec![b'x'; LARGE]));
    let server = Server::bind("127.0.0.1:0").await.unwrap();
    let address = server.local_addr().unwrap();
    let serving = server.serve(Edge::around(router, parts), Limits::default(), CancellationToken::new());
    #[expect(clippy::disallowed_methods, reason = "a test has no task tracker to spawn on")]
    let end = tokio::spawn(serving);
    (address, AbortOnDropHandle::new(end))
}

/// Sends bytes, waits, and reads until the server closes the connection.
async fn talk(address: SocketAddr, bytes: &[u8], wait: Duration) -> String {
    let talk = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        tokio::time::sleep(wait).await;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    };
    timeout(DEADLINE, talk).await.expect("the server closes the connection")
}

fn check(answer: &str, status: u16, code: &str) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    for line in [
        "connection: close",
        "content-type: application/problem+json",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
        "strict-transport-security: max-age=31536000; includeSubDomains",
        &format!("content-length: {}", body.len()),
    ] {
        assert_eq!(head.lines().filter(|known| *known == line).count(), 1, "{line}: {head}");
    }
    assert_eq!(head.lines().filter(|line| line.starts_with("date: ")).count(), 1, "{head}");
    let problem: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&problem["code"], &problem["status"]), (&Value::from(code), &Value::from(status)));
    assert_eq!(problem["message"], problem["error"]);
    let id = problem["requestId"].as_str().unwrap();
    assert!(head.contains(&format!("x-request-id: {id}\r\n")), "{answer}");
}

#[tokio::test]
async fn an_unparsable_request_gets_a_problem() {
    let (address, _server) = serve().await;
    let long = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "y".repeat(20_000));
    let many = format!("GET / HTTP/1.1\r\nhost: a\r\n{}\r\n", "a: b\r\n".repeat(200));
    for (request, status, code) in [
        ("nonsense\r\n\r\n", 400, "http.bad_head"),
        ("GET / HTTP/1.1\r\nhost: a\r\nbad name: x\r\n\r\n", 400, "http.bad_head"),
        ("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n", 400, "http.bad_head"),
        ("GET / HTTP/7.3\r\nhost: a\r\n\r\n", 400, "http.bad_head"),
        (&long, 431, "http.head_too_large"),
        (&many, 431, "http.head_too_large"),
    ] {
        check(&talk(address, request.as_bytes(), Duration::ZERO).await, status, code);
    }
}

#[tokio::test]
async fn the_previous_response_is_sent_intact() {
    let (address, _server) = serve().await;
    let answers = talk(address, b"GET / HTTP/1.1\r\nhost: a\r\n\r\nnonsense\r\n\r\n", Duration::ZERO).await;
    let (first, second) = answers.split_once("hello").unwrap();
    assert!(first.starts_with("HTTP/1.1 200") && first.contains("content-length: 5\r\n"), "{answers}");
    check(second, 400, "http.bad_head");
}

#[tokio::test]
async fn a_slowly_read_response_is_not_replaced() {
    let (address, _server) = serve().await;
    let requests = b"GET /large HTTP/1.1\r\nhost: a\r\n\r\nnonsense\r\n\r\n";
    let answers = talk(address, requests, Duration::from_millis(300)).await;
    let (head, rest) = answers.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("content-length: {LARGE}")), "{head}");
    let (body, refusal) = rest.split_at(LARGE);
    assert!(body.bytes().all(|byte| byte == b'x'));
    // hyper may write both responses in one call. Then its bare 400 is not replaced.
    assert!(refusal.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{refusal}");
}
