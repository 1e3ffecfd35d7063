//! Request smuggling: ambiguous requests through the proxy, to a service that records what it
//! received.
//!
//! Each request is either rejected with 400 and a closed connection, or forwarded in exactly one
//! interpretation. The service is a plain socket with its own strict parser: anything that is not
//! clearly one request is a violation.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use urr_testkit::within;

use crate::sample::{AUTH, CATALOG, TICKETS};
use crate::{
    raw::{find, talk},
    world::{Options, PATIENCE, World},
};

/// Requests the service received, as `METHOD /path body`, or the violation found.
type Book = Arc<Mutex<Vec<String>>>;

async fn recorder() -> (SocketAddr, Book, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, book) = (listener.local_addr().unwrap(), Book::default());
    let mut tasks = JoinSet::new();
    let written = Arc::clone(&book);
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(record(stream, Arc::clone(&written)));
        }
    });
    (address, book, tasks)
}

async fn record(mut stream: TcpStream, book: Book) {
    let mut heard = Vec::new();
    let mut chunk = [0; 4_096];
    while let Ok(read @ 1..) = stream.read(&mut chunk).await {
        heard.extend_from_slice(&chunk[..read]);
        while let Some((entry, used)) = strictly(&heard) {
            heard.drain(..used);
            book.lock().unwrap().push(entry);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: text/plain\r\n\r\nok";
            if stream.write_all(answer).await.is_err() {
                return;
            }
        }
    }
}

/// Parses one request at the start of the bytes, accepting only what all parsers agree on.
fn strictly(bytes: &[u8]) -> Option<(String, usize)> {
    let end = find(bytes, b"\r\n\r\n")?;
    let violation =
        |why: &str| Some((format!("VIOLATION {why}: {:?}", String::from_utf8_lossy(bytes)), bytes.len()));
    let Ok(head) = std::str::from_utf8(&bytes[..end]) else { return violation("no text") };
    if head.replace("\r\n", "").contains(['\r', '\n', '\0']) {
        return violation("stray line ends");
    }
    let mut lines = head.split("\r\n");
    let request_line = lines.next().unwrap();
    let [method, path, "HTTP/1.1"] = request_line.split(' ').collect::<Vec<_>>()[..] else {
        return violation("request line");
    };
    let (mut lengths, mut codings, mut hosts) = (Vec::new(), Vec::new(), 0);
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { return violation("a line without a name") };
        if name.contains(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-' && letter != '_') {
            return violation("a strange name");
        }
        match name.to_ascii_lowercase().as_str() {
            "content-length" => lengths.push(value.trim().to_owned()),
            "transfer-encoding" => codings.push(value.trim().to_owned()),
            "host" => hosts += 1,
            "upgrade" | "http2-settings" | "trailer" | "expect" | "x-user-id" => return violation(name),
            _ => {}
        }
    }
    if hosts != 1 || lengths.len() + codings.len() > 1 {
        return violation("ambiguous headers");
    }
    let rest = &bytes[end + 4..];
    let (body, used) = if let [length] = &lengths[..] {
        let Ok(length) = length.parse::<usize>() else { return violation("a strange length") };
        (rest.get(..length)?.to_vec(), length)
    } else if let [coding] = &codings[..] {
        if coding != "chunked" {
            return violation("a strange coding");
        }
        match chunked(rest)? {
            Ok(found) => found,
            Err(why) => return violation(why),
        }
    } else {
        (Vec::new(), 0)
    };
    let body = String::from_utf8_lossy(&body);
    Some((format!("{method} {path} {body}").trim_end().to_owned(), end + 4 + used))
}

fn chunked(mut rest: &[u8]) -> Option<Result<(Vec<u8>, usize), &'static str>> {
    let whole = rest.len();
    let mut body = Vec::new();
    loop {
        let end = find(rest, b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end])
            .ok()
            .filter(|size| size.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some(Ok(size)) = size.map(|size| usize::from_str_radix(size, 16)) else {
            return Some(Err("a strange chunk"));
        };
        let chunk = rest.get(end + 2..end + 2 + size)?;
        body.extend_from_slice(chunk);
        let after = rest.get(end + 2 + size..end + 4 + size)?;
        if after != b"\r\n" {
            return Some(Err("a chunk of another size, or trailers"));
        }
        rest = &rest[end + 4 + size..];
        if size == 0 {
            return Some(Ok((body, whole - rest.len())));
        }
    }
}

/// Expected outcome.
enum Outcome {
    /// 400 and a closed connection; the service received at most this.
    Refused(&'static [&'static str]),
    /// The service received exactly this, and the client got these statuses.
    Framed(&'static [&'static str], &'static [u16]),
    /// Either of the above.
    Either(&'static [&'static str]),
    /// The connection is closed without a response.
    HungUp,
}
use Outcome::{Either, Framed, HungUp, Refused};

impl Outcome {
    /// Number of responses to wait for. A rejection ends with a closed connection.
    fn answers(&self) -> usize {
        match self {
            Framed(_, answers) => answers.len(),
            Either(_) => 1,
            Refused(_) | HungUp => usize::MAX,
        }
    }

    fn is(&self, got: &[String], statuses: &[u16], closed: bool) -> bool {
        match self {
            Refused(at_most) => {
                statuses.last() == Some(&400)
                    && closed
                    && got.iter().all(|entry| at_most.contains(&entry.as_str()))
            }
            Framed(expected, answers) => got == *expected && statuses == *answers,
            HungUp => got.is_empty() && statuses.is_empty() && closed,
            Either(_) if statuses == [400] => got.is_empty(),
            Either(expected) => got == *expected && statuses == [200],
        }
    }
}

const LOGIN: &str = "POST /api/auth/login HTTP/1.1\r\nHost: a.example\r\n";
const EVENTS: &str = "GET /api/events HTTP/1.1\r\nHost: a.example\r\n\r\n";

/// Name, bytes, outcome. `{LOGIN}` stands for an unfinished head, `{EVENTS}` for a complete
/// request.
const CORPUS: &[(&str, &str, Outcome)] = &[
    // Length and coding disagree: the coding wins, is forwarded with new framing, and the
    // connection is closed.
    (
        "CL.TE",
        "{LOGIN}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
        Framed(&["POST /api/auth/login"], &[200]),
    ),
    (
        "CL.TE with a whole request behind",
        "{LOGIN}Content-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{EVENTS}",
        Framed(&["POST /api/auth/login"], &[200]),
    ),
    (
        "TE.CL",
        "{LOGIN}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n1a\r\nGET /evil HTTP/1.1\r\nX: 1\r\n\r\n0\r\n\r\n",
        Framed(&["POST /api/auth/login GET /evil HTTP/1.1\r\nX: 1"], &[200]),
    ),
    (
        "TE.CL with a false length of zero",
        "{LOGIN}Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        Framed(&["POST /api/auth/login hello"], &[200]),
    ),
    // Obfuscated codings.
    ("TE.TE unknown", "{LOGIN}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", Refused(&[])),
    ("TE.TE identity", "{LOGIN}Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", Refused(&[])),
    (
        "TE.TE twice, the last unknown",
        "{LOGIN}Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
        Refused(&[]),
    ),
    ("TE.TE chunked not last", "{LOGIN}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", Refused(&[])),
    (
        "TE.TE with a tab and capitals",
        "{LOGIN}Transfer-Encoding:\tChunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        Framed(&["POST /api/auth/login hello"], &[200]),
    ),
    (
        "TE.TE with a space before the colon",
        "{LOGIN}Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\nhello",
        Refused(&[]),
    ),
    ("TE.TE quoted", "{LOGIN}Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", Refused(&[])),
    (
        "TE in HTTP/1.0",
        "POST /api/auth/login HTTP/1.0\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        Refused(&[]),
    ),
    // Lengths.
    ("two lengths", "{LOGIN}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", Refused(&[])),
    (
        "the same length twice",
        "{LOGIN}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        Framed(&["POST /api/auth/login hello"], &[200]),
    ),
    ("a list of lengths", "{LOGIN}Content-Length: 5, 6\r\n\r\nhello", Refused(&[])),
    ("a signed length", "{LOGIN}Content-Length: +5\r\n\r\nhello", Refused(&[])),
    ("a negative length", "{LOGIN}Content-Length: -5\r\n\r\nhello", Refused(&[])),
    ("a length in hexadecimal", "{LOGIN}Content-Length: 0x5\r\n\r\nhello", Refused(&[])),
    ("a huge length", "{LOGIN}Content-Length: 99999999999999999999\r\n\r\nhello", Refused(&[])),
    (
        "a length that is said to be about the connection",
        "{LOGIN}Connection: Content-Length\r\nContent-Length: 5\r\n\r\nhello",
        Framed(&["POST /api/auth/login hello"], &[200]),
    ),
    (
        "a body of GET",
        "GET /api/events HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello{EVENTS}",
        Framed(&["GET /api/events hello", "GET /api/events"], &[200, 200]),
    ),
    // Lines.
    ("obs-fold", "{LOGIN}X: 1\r\n Content-Length: 5\r\n\r\nhello", Refused(&[])),
    ("obs-fold of the first line", "GET /api/events HTTP/1.1\r\n Host: a.example\r\n\r\n", Refused(&[])),
    ("bare LF in the head", "GET /api/events HTTP/1.1\nHost: a.example\n\n", Either(&["GET /api/events"])),
    (
        "a header behind a bare LF",
        "{LOGIN}X: 1\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        Either(&["POST /api/auth/login hello"]),
    ),
    ("bare CR in a value", "{LOGIN}X: 1\rTransfer-Encoding: chunked\r\n\r\n", Refused(&[])),
    ("NUL in a value", "{LOGIN}X: \0\r\n\r\n", Refused(&[])),
    ("a name with a space", "{LOGIN}X Y: 1\r\n\r\n", Refused(&[])),
    ("no colon", "{LOGIN}Nonsense\r\n\r\n", Refused(&[])),
    ("two spaces in the first line", "GET  /api/events HTTP/1.1\r\nHost: a.example\r\n\r\n", Refused(&[])),
    ("a request line of HTTP/0.9", "GET /api/events\r\n\r\n", Refused(&[])),
    ("HTTP/2 on the wrong port", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HungUp),
    ("two hosts", "GET /api/events HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", Either(&[])),
    ("no host", "GET /api/events HTTP/1.1\r\n\r\n", Framed(&[], &[400])),
    (
        "no host but in the first line",
        "GET http://a.example/api/events HTTP/1.1\r\n\r\n{EVENTS}",
        Framed(&["GET /api/events"], &[400, 200]),
    ),
    // Chunks.
    (
        "a chunk with an extension",
        "{LOGIN}Transfer-Encoding: chunked\r\n\r\n5;a=b;c=\"d\"\r\nhello\r\n0;e\r\n\r\n",
        Framed(&["POST /api/auth/login hello"], &[200]),
    ),
    (
        "bare LF in a chunk extension",
        "{LOGIN}Transfer-Encoding: chunked\r\n\r\n5;a\nb\r\nhello\r\n0\r\n\r\n",
        Refused(&[]),
    ),
    ("bare LF behind a chunk", "{LOGIN}Transfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n", Refused(&[])),
    (
        "a chunk of another size",
        "{LOGIN}Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
        Refused(&[]),
    ),
    ("a chunk of no size", "{LOGIN}Transfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n", Refused(&[])),
    (
        "a chunk of a negative size",
        "{LOGIN}Transfer-Encoding: chunked\r\n\r\n-1\r\nhello\r\n0\r\n\r\n",
        Refused(&[]),
    ),
    (
        "a chunk of too large a size",
        "{LOGIN}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\nhello\r\n0\r\n\r\n",
        Refused(&[]),
    ),
    (
        "a trailer that would be a header",
        "{LOGIN}Transfer-Encoding: chunked\r\nTrailer: X-User-Id\r\n\r\n5\r\nhello\r\n0\r\nX-User-Id: 1\r\n\r\n",
        Framed(&["POST /api/auth/login hello"], &[200]),
    ),
    // One connection, several requests.
    (
        "a pipeline",
        "{EVENTS}{EVENTS}{EVENTS}",
        Framed(&["GET /api/events", "GET /api/events", "GET /api/events"], &[200, 200, 200]),
    ),
    (
        "a body left unread after an early answer",
        "POST /api/seats/reserve HTTP/1.1\r\nHost: a.example\r\nContent-Length: 55\r\n\r\nGET /api/events/1 HTTP/1.1\r\nHost: a.example\r\nX-Pad: 1\r\n\r\n",
        Framed(&[], &[401]),
    ),
    (
        "a chunked body left unread after an early answer",
        "POST /api/seats/reserve HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n37\r\nGET /api/events/1 HTTP/1.1\r\nHost: a.example\r\nX-Pad: 1\r\n\r\n\r\n0\r\n\r\n",
        Framed(&[], &[401]),
    ),
    // Other protocols, other forms.
    (
        "an upgrade with a request behind",
        "GET /api/events HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n{EVENTS}",
        Framed(&["GET /api/events", "GET /api/events"], &[200, 200]),
    ),
    (
        "an upgrade to HTTP/2",
        "GET /api/events HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
        Framed(&["GET /api/events"], &[200]),
    ),
    (
        "absolute form",
        "GET http://evil.example/api/events HTTP/1.1\r\nHost: a.example\r\n\r\n",
        Framed(&["GET /api/events"], &[200]),
    ),
    (
        "absolute form to what is internal",
        "GET http://a.example/internal/roles HTTP/1.1\r\nHost: a.example\r\n\r\n",
        Framed(&[], &[404]),
    ),
    (
        "authority form",
        "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        Framed(&[], &[404]),
    ),
    ("asterisk form", "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", Framed(&[], &[404])),
    (
        "expectations",
        "{LOGIN}Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
        Framed(&["POST /api/auth/login hello"], &[200]),
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_ambiguous_request_is_rejected_or_forwarded_in_one_way() {
    let (address, book, _tasks) = recorder().await;
    let remote = [&AUTH, &CATALOG, &TICKETS].map(|service| (service, vec![address])).into();
    let world = World::with(Options { remote, ..Options::default() });
    let served = world.serve().await;
    let mut wrong = Vec::new();
    for (name, bytes, outcome) in CORPUS {
        let bytes = bytes.replace("{LOGIN}", LOGIN).replace("{EVENTS}", EVENTS);
        let said = within(PATIENCE, talk(served.address, bytes.as_bytes(), outcome.answers())).await;
        // Leftover bytes would now precede the next request on the connection.
        let probe = EVENTS.replace("events", "events/probe");
        let probe = within(PATIENCE, talk(served.address, probe.as_bytes(), 1)).await;
        let mut got = std::mem::take(&mut *book.lock().unwrap());
        let apart = got.pop().as_deref() == Some("GET /api/events/probe")
            && matches!(&probe.replies[..], [reply] if reply.body == "ok");
        let statuses: Vec<_> = said.replies.iter().map(|reply| reply.status).collect();
        if !apart || !outcome.is(&got, &statuses, said.closed) {
            wrong.push(format!(
                "{name}: {statuses:?}, closed {}, kept apart {apart}, got {got:#?}",
                said.closed
            ));
        }
        // All requests count as sign-ins from one address.
        world.clock.advance(std::time::Duration::from_mins(1));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_strict_parser_detects_violations() {
    let violations = [
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: 1\n\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\n\r\n",
    ];
    for text in violations {
        assert!(strictly(text.as_bytes()).unwrap().0.starts_with("VIOLATION"), "{text:?}");
    }
    let good = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET";
    assert_eq!(strictly(good.as_bytes()), Some(("POST /x hello".to_owned(), good.len() - 3)));
    assert_eq!(strictly(&good.as_bytes()[..70]), None, "the request is incomplete");
}
