//! An HTTP/1.1 client over a plain socket, for load and for tests. It supports keep-alive,
//! `content-length` and chunked bodies, and never retries on its own.

use std::{
    fmt::{self, Write as _},
    io,
    net::SocketAddr,
    time::Duration,
};

use httparse::Status;
use serde::de::DeserializeOwned;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// Default time limit of a response: a little more than the server's own.
const PATIENCE: Duration = Duration::from_secs(35);

/// The largest response that is read. A map of 50,000 seats is about 10 MB.
const MAX_RESPONSE: usize = 64 * 1024 * 1024;

/// Maximum number of response headers; ours have a dozen.
const MAX_HEADERS: usize = 32;

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// The connection failed: the server has not seen the request.
    #[error("not sent: {0}")]
    NotSent(io::Error),
    /// The request was sent and no complete response arrived: the server may or may not have
    /// applied it.
    #[error("no answer: {0}")]
    Unknown(io::Error),
}

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Request<'r> {
    /// `GET`, `POST`.
    pub method: &'r str,
    /// Path and query.
    pub path: &'r str,
    /// Access token, sent as a bearer.
    pub token: Option<&'r str>,
    /// JSON body.
    pub body: Option<Vec<u8>>,
    /// Further headers. A `content-type` here replaces the one for JSON.
    pub headers: &'r [(&'r str, &'r str)],
}

impl<'r> Request<'r> {
    /// A GET request.
    pub fn get(path: &'r str) -> Self {
        Self { method: "GET", path, ..Self::default() }
    }

    /// A POST request with a JSON body.
    pub fn post(path: &'r str, body: &serde_json::Value) -> Self {
        Self { method: "POST", path, body: Some(body.to_string().into_bytes()), ..Self::default() }
    }

    /// With this access token.
    pub fn by(mut self, token: &'r str) -> Self {
        self.token = Some(token);
        self
    }

    /// The request as bytes.
    pub fn bytes(&self, host: impl fmt::Display) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nhost: {host}\r\n", self.method, self.path);
        if let Some(token) = self.token {
            let _ = write!(head, "authorization: Bearer {token}\r\n");
        }
        if let Some(body) = &self.body {
            if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                head.push_str("content-type: application/json\r\n");
            }
            let _ = write!(head, "content-length: {}\r\n", body.len());
        }
        for (name, value) in self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }
}

/// A response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The complete body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The first header with this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of `retry-after`.
    pub fn retry_after(&self) -> Option<Duration> {
        self.header("retry-after")?.parse().ok().map(Duration::from_secs)
    }

    /// The body as text.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The body as JSON; null if it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body, deserialized.
    pub fn read<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| anyhow::anyhow!("{error} in {}", self.show()))
    }

    /// The `code` of a problem body, or an empty string.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Status and the start of the body, for messages.
    pub fn show(&self) -> String {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(400)]);
        format!("{} {body}", self.status)
    }
}

/// One connection, opened when needed and reused while the server keeps it open.
#[derive(Debug)]
pub struct Connection {
    address: SocketAddr,
    stream: Option<TcpStream>,
    /// The last response, its chunks joined.
    buffer: Vec<u8>,
    patience: Option<Duration>,
}

impl Connection {
    /// Connects with the first request.
    pub fn to(address: SocketAddr) -> Self {
        Self { address, stream: None, buffer: Vec::new(), patience: Some(PATIENCE) }
    }

    /// Connects at once. Requests have no time limit: the timers would be measured too.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let mut connection = Self { patience: None, ..Self::to(address) };
        connection.stream = Some(connection.connect().await?);
        Ok(connection)
    }

    /// Sets the time limit of a request.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Sends one request and reads its response. After an error the connection is not reused.
    pub async fn send(&mut self, request: &Request<'_>) -> Result<Answer, Lost> {
        let head = self.exchange(&request.bytes(self.address), request.method != "HEAD").await?;
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Response::new(&mut headers);
        parsed.parse(&self.buffer).map_err(|error| Lost::Unknown(io::Error::other(error)))?;
        let header = |header: &httparse::Header<'_>| {
            (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned())
        };
        Ok(Answer {
            status: head.status,
            headers: parsed.headers.iter().map(header).collect(),
            body: self.body(head).to_vec(),
        })
    }

    /// Sends a request that is already serialized; an error unless the status is 200.
    pub(crate) async fn expect_200(&mut self, request: &[u8]) -> Result<Result<(), String>, Lost> {
        let head = self.exchange(request, true).await?;
        let body = || String::from_utf8_lossy(self.body(head)).into_owned();
        Ok(if head.status == 200 { Ok(()) } else { Err(body()) })
    }

    fn body(&self, head: Head) -> &[u8] {
        &self.buffer[head.length..]
    }

    async fn exchange(&mut self, request: &[u8], has_body: bool) -> Result<Head, Lost> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => within(self.patience, self.connect()).await.map_err(Lost::NotSent)?,
        };
        let exchange = exchange(&mut stream, &mut self.buffer, request, has_body);
        let head = within(self.patience, exchange).await.map_err(Lost::Unknown)?;
        if !head.closes {
            self.stream = Some(stream);
        }
        Ok(head)
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

async fn within<T>(limit: Option<Duration>, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match limit {
        Some(limit) => timeout(limit, work).await?,
        None => work.await,
    }
}

async fn exchange(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    request: &[u8],
    has_body: bool,
) -> io::Result<Head> {
    // A server that refuses a body early stops reading it. Its response can still be read.
    let sent = stream.write_all(request).await;
    match (receive(stream, buffer, has_body).await, sent) {
        (Ok(head), _) => Ok(head),
        (Err(_), Err(error)) | (Err(error), Ok(())) => Err(error),
    }
}

async fn receive(stream: &mut TcpStream, buffer: &mut Vec<u8>, has_body: bool) -> io::Result<Head> {
    buffer.clear();
    let head = loop {
        more(stream, buffer).await?;
        if let Some(head) = Head::read(buffer)? {
            break head;
        }
    };
    match head.body {
        Body::Length(length) if has_body => {
            while buffer.len() < head.length.saturating_add(length) {
                more(stream, buffer).await?;
            }
        }
        Body::Chunked if has_body => {
            let body = chunks(stream, buffer, head.length).await?;
            buffer.truncate(head.length);
            buffer.extend(body);
        }
        Body::Length(_) | Body::Chunked => {}
    }
    Ok(head)
}

async fn chunks(stream: &mut TcpStream, buffer: &mut Vec<u8>, mut at: usize) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let (digits, size) = match httparse::parse_chunk_size(&buffer[at..]) {
            Ok(Status::Complete(found)) => found,
            Ok(Status::Partial) => {
                more(stream, buffer).await?;
                continue;
            }
            Err(_) => return Err(io::ErrorKind::InvalidData.into()),
        };
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::InvalidData)?;
        let start = at + digits;
        // Each chunk ends with CRLF.
        let end =
            start.checked_add(size).and_then(|end| end.checked_add(2)).ok_or(io::ErrorKind::InvalidData)?;
        while buffer.len() < end {
            more(stream, buffer).await?;
        }
        body.extend_from_slice(&buffer[start..start + size]);
        at = end;
        if size == 0 {
            return Ok(body);
        }
    }
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<()> {
    let read = stream.read_buf(buffer).await?;
    if read == 0 || buffer.len() > MAX_RESPONSE {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// The parts of a response head that the client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    /// Length of the head in bytes.
    length: usize,
    body: Body,
    /// Whether the server closes the connection after the response.
    closes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Length(usize),
    Chunked,
}

impl Head {
    /// Parses with hyper's parser, so that the load generator costs as little as the server. `None`
    /// if incomplete.
    fn read(bytes: &[u8]) -> io::Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Response::new(&mut headers);
        let Status::Complete(length) = parsed.parse(bytes).map_err(io::Error::other)? else {
            return Ok(None);
        };
        let mut head =
            Self { status: parsed.code.unwrap_or_default(), length, body: Body::Length(0), closes: false };
        for header in &*parsed.headers {
            let value = || std::str::from_utf8(header.value).map_err(io::Error::other);
            if header.name.eq_ignore_ascii_case("content-length") {
                head.body = Body::Length(value()?.parse().map_err(io::Error::other)?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                head.body = Body::Chunked;
            } else if header.name.eq_ignore_ascii_case("connection") {
                head.closes = value()?.eq_ignore_ascii_case("close");
            }
        }
        Ok(Some(head))
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Answers one connection with `text` and closes it.
    async fn answered_with(text: &'static str) -> Result<Answer, Lost> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut connection = Connection::to(listener.local_addr().unwrap());
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(text.as_bytes()).await.unwrap();
        };
        let request = Request::get("/");
        tokio::join!(connection.send(&request), server).0
    }

    #[tokio::test]
    async fn content_length_and_chunked_bodies_are_read() {
        let answer = answered_with("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await.unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, b"hi".as_slice()));
        let chunked = "HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"c\r\n9\r\node\":\"x\"}\r\n0\r\n\r\n";
        let answer = answered_with(chunked).await.unwrap();
        assert_eq!((answer.status, answer.code()), (409, "x".to_owned()));
    }

    #[test]
    fn head_parsing_waits_for_the_end_and_ignores_case() {
        let answer =
            b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 12\r\nCONNECTION: Close\r\n\r\nHello";
        let head = Head { status: 429, length: answer.len() - 5, body: Body::Length(12), closes: true };
        assert_eq!(Head::read(answer).unwrap(), Some(head));
        assert_eq!(Head::read(&answer[..head.length - 1]).unwrap(), None);
        assert!(Head::read(b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n").is_err());
        assert!(Head::read(b"SSH-2.0-OpenSSH\r\n\r\n").is_err());
    }

    #[tokio::test]
    async fn truncated_response_is_unknown_and_closed_port_is_not_sent() {
        for cut in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi"] {
            assert!(matches!(answered_with(cut).await, Err(Lost::Unknown(_))), "{cut:?}");
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let lost = Connection::to(address).send(&Request::get("/")).await;
        assert!(matches!(lost, Err(Lost::NotSent(_))));
    }
}
