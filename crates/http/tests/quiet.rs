//! Tests of the keep-alive timeout and of the connection limit per address.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{net::SocketAddr, time::Duration};

use axum::{Router, routing::get};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use urr_http::{Limits, Server};

/// Shorter than the default keep-alive, so that a connection that was not closed early fails the
/// test.
const PATIENCE: Duration = Duration::from_secs(30);

/// The header read timeout in these tests.
const HEAD: Duration = Duration::from_millis(300);

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

struct Running {
    address: SocketAddr,
    _task: JoinSet<()>,
}

async fn serve(limits: Limits) -> Running {
    start(Server::bind("127.0.0.1:0").await.unwrap(), limits)
}

fn start(server: Server, limits: Limits) -> Running {
    let address = server.local_addr().unwrap();
    let router = Router::new().route("/", get(async || "hello"));
    let mut task = JoinSet::new();
    task.spawn(async move { server.serve(router, limits, CancellationToken::new()).await.unwrap() });
    Running { address, _task: task }
}

/// Sends one request on a new connection from this address. The connection stays open.
async fn ask_from(address: [u8; 4], running: &Running) -> (TcpStream, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((address, 0).into()).unwrap();
    let mut stream = socket.connect(running.address).await.unwrap();
    // The server may close a refused connection before this write; its response can still be read.
    let _refused = stream.write_all(GET).await;
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    (stream, String::from_utf8(status.to_vec()).unwrap())
}

/// Everything received until the connection is silent for `quiet`, or closed.
async fn heard(stream: &mut TcpStream, quiet: Duration) -> String {
    let mut answer = Vec::new();
    while let Ok(Ok(1..)) = timeout(quiet, stream.read_buf(&mut answer)).await {}
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn keep_alive_outlasts_the_header_read_timeout() {
    let limits = Limits { header_read_time: HEAD, ..Limits::default() };
    let running = serve(limits).await;
    timeout(PATIENCE, async {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        // Each pause is longer than the header read timeout.
        for _ in 0..2 {
            stream.write_all(GET).await.unwrap();
            let answer = heard(&mut stream, HEAD * 2).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        // Once a head has begun, the header read timeout applies.
        stream.write_all(b"GET / HT").await.unwrap();
        let mut rest = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("it is closed").unwrap();
        assert_eq!(rest, b"");
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn keep_alive_is_short_while_many_are_connected() {
    let crowded = Limits { header_read_time: HEAD, max_connections: 1, ..Limits::default() };
    let running = serve(crowded).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(GET).await.unwrap();
    let mut answer = Vec::new();
    // With more than half of the connections in use, the shorter timeout applies.
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it is closed").unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test]
async fn one_address_cannot_take_every_connection() {
    let limits = Limits { max_connections: 64, max_connections_per_address: 16, ..Limits::default() };
    let running = serve(limits).await;
    timeout(PATIENCE, async {
        let (crowded, other) = ([127, 0, 0, 2], [127, 0, 0, 3]);
        let mut open = Vec::new();
        for number in 0..100 {
            let (stream, status) = ask_from(crowded, &running).await;
            let expected = if number < 16 { "HTTP/1.1 200" } else { "HTTP/1.1 503" };
            assert_eq!(status, expected, "connection {number}");
            open.push(stream);
        }
        for _ in 0..16 {
            let (stream, status) = ask_from(other, &running).await;
            assert_eq!(status, "HTTP/1.1 200", "others are served");
            open.push(stream);
        }
        drop(open);
        while ask_from(crowded, &running).await.1 != "HTTP/1.1 200" {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("closed connections free their slots");
}

#[tokio::test]
async fn shared_addresses_are_exempt_from_the_limit() {
    let limits = Limits { max_connections_per_address: 1, ..Limits::default() };
    let server = Server::bind("127.0.0.1:0").await.unwrap().sharing(|peer| peer.is_loopback());
    let running = start(server, limits);
    timeout(PATIENCE, async {
        let mut open = Vec::new();
        for _ in 0..10 {
            let (stream, status) = ask_from([127, 0, 0, 1], &running).await;
            assert_eq!(status, "HTTP/1.1 200");
            open.push(stream);
        }
    })
    .await
    .unwrap();
}
