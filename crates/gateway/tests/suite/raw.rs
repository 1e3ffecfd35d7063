//! A raw HTTP client, for requests that no library would send.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// How long to wait for a response that should not come.
const SILENCE: Duration = Duration::from_millis(50);

/// Size of one read.
const READ_BYTES: usize = 4 * 1024;

/// One response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// All responses on a connection.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) replies: Vec<Reply>,
    /// Whether the server closed the connection.
    pub(crate) closed: bool,
}

/// Writes the bytes on one connection. Reads until the server closes it, or until the expected
/// number of responses is followed by silence.
pub(crate) async fn talk(address: SocketAddr, bytes: &[u8], answers: usize) -> Conversation {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may close the connection before everything is written.
    let _hung_up = stream.write_all(bytes).await;
    let mut heard = Vec::new();
    let mut chunk = [0; READ_BYTES];
    loop {
        match tokio::time::timeout(SILENCE, stream.read(&mut chunk)).await {
            Ok(Ok(0) | Err(_)) => return Conversation { replies: replies(&heard), closed: true },
            Ok(Ok(read)) => heard.extend_from_slice(&chunk[..read]),
            Err(_silent) if replies(&heard).len() < answers => {}
            Err(_silent) => return Conversation { replies: replies(&heard), closed: false },
        }
    }
}

/// Sends the requests on one connection, and reads each response before the next request.
pub(crate) async fn each(address: SocketAddr, requests: &[String]) -> Vec<Reply> {
    let mut answers = Vec::new();
    let mut stream: Option<TcpStream> = None;
    for request in requests {
        let mut open = match stream.take() {
            Some(stream) => stream,
            None => TcpStream::connect(address).await.unwrap(),
        };
        open.write_all(request.as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        let mut chunk = [0; READ_BYTES];
        let reply = loop {
            let read = open.read(&mut chunk).await.unwrap();
            heard.extend_from_slice(&chunk[..read]);
            if let Some(reply) = replies(&heard).pop() {
                break reply;
            }
            assert!(read > 0, "{request:?} was not answered: {:?}", String::from_utf8_lossy(&heard));
        };
        if !reply.head.to_ascii_lowercase().contains("connection: close") {
            stream = Some(open);
        }
        answers.push(reply);
    }
    answers
}

/// Parses the complete responses. Interim ones are skipped.
fn replies(mut bytes: &[u8]) -> Vec<Reply> {
    let mut found = Vec::new();
    while let Some(end) = find(bytes, b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status: u16 = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let rest = &bytes[end + 4..];
        if status == 100 {
            bytes = rest;
            continue;
        }
        let lower = head.to_ascii_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length:"));
        let (body, used) = if let Some(length) = length {
            let length: usize = length.trim().parse().unwrap();
            if rest.len() < length {
                break;
            }
            (rest[..length].to_vec(), length)
        } else if lower.contains("transfer-encoding: chunked") {
            let Some(end) = find(rest, b"0\r\n\r\n") else { break };
            (rest[..end].to_vec(), end + 5)
        } else {
            (Vec::new(), 0)
        };
        found.push(Reply { status, head, body: String::from_utf8_lossy(&body).into_owned() });
        bytes = &rest[used..];
    }
    found
}

pub(crate) fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}
