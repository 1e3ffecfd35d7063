//! A client of HTTP/1.1 over a plain socket. It knows keep-alive, lengths and chunks, and it never asks twice by itself.

use std::{io, net::SocketAddr, time::Duration};

use serde::de::DeserializeOwned;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    time::timeout,
};

/// How long one answer may take unless the caller says otherwise: the server's own limit and a little.
const PATIENCE: Duration = Duration::from_secs(35);

/// The largest body that is read. A map of 50,000 seats is about 10 MB.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// Header lines of one answer.
const MAX_HEADERS: usize = 100;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// The connection could not be made: the server has seen nothing.
    #[error("not sent: {0}")]
    NotSent(io::Error),
    /// The request went out and no whole answer came back: the server may or may not have acted.
    #[error("no answer: {0}")]
    Unknown(io::Error),
}

/// What to ask.
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
    /// Asks for something.
    pub fn get(path: &'r str) -> Self {
        Self { method: "GET", path, ..Self::default() }
    }

    /// Sends JSON.
    pub fn post(path: &'r str, body: &serde_json::Value) -> Self {
        Self { method: "POST", path, body: Some(body.to_string().into_bytes()), ..Self::default() }
    }

    /// In somebody's name.
    pub fn by(mut self, token: &'r str) -> Self {
        self.token = Some(token);
        self
    }

    fn bytes(&self, host: SocketAddr) -> Vec<u8> {
        use std::fmt::Write as _;
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

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The first header of this name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null if it is not.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as a known shape.
    pub fn read<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| anyhow::anyhow!("{error} in {}", self.show()))
    }

    /// The `code` of a problem body, or nothing.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Status and the start of the body, for messages.
    pub fn show(&self) -> String {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(400)]);
        format!("{} {body}", self.status)
    }
}

/// One connection, made when it is needed and kept while the server keeps it.
#[derive(Debug)]
pub struct Connection {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
    patience: Duration,
}

impl Connection {
    /// Speaks to this address.
    pub fn to(address: SocketAddr) -> Self {
        Self { address, stream: None, patience: PATIENCE }
    }

    /// Gives up on an answer after this long.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sends one request and reads its answer. Whatever goes wrong, the connection is not used again.
    pub async fn send(&mut self, request: &Request<'_>) -> Result<Answer, Lost> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.connect().await.map_err(Lost::NotSent)?,
        };
        let exchange = exchange(&mut stream, request, self.address);
        let answer = match timeout(self.patience, exchange).await {
            Ok(answer) => answer.map_err(Lost::Unknown)?,
            Err(_) => return Err(Lost::Unknown(io::ErrorKind::TimedOut.into())),
        };
        if answer.header("connection") != Some("close") {
            self.stream = Some(stream);
        }
        Ok(answer)
    }

    async fn connect(&self) -> io::Result<BufReader<TcpStream>> {
        let stream = timeout(self.patience, TcpStream::connect(self.address)).await??;
        stream.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    }
}

async fn exchange(
    stream: &mut BufReader<TcpStream>,
    request: &Request<'_>,
    address: SocketAddr,
) -> io::Result<Answer> {
    // A server that refuses a body early stops reading it. What it said is still to be read.
    let sent = stream.get_mut().write_all(&request.bytes(address)).await;
    match (read_answer(stream, request.method).await, sent) {
        (Ok(answer), _) => Ok(answer),
        (Err(_), Err(error)) | (Err(error), Ok(())) => Err(error),
    }
}

async fn read_answer(stream: &mut BufReader<TcpStream>, method: &str) -> io::Result<Answer> {
    let status_line = line(stream).await?;
    let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(bad)?;
    let mut headers = Vec::new();
    loop {
        let text = line(stream).await?;
        if text.is_empty() {
            break;
        }
        let (name, value) = text.split_once(':').ok_or_else(bad)?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        if headers.len() > MAX_HEADERS {
            return Err(bad());
        }
    }
    let mut answer = Answer { status, headers, body: Vec::new() };
    if method == "HEAD" {
        return Ok(answer);
    }
    if let Some(length) = answer.header("content-length") {
        let length: usize = length.parse().map_err(|_| bad())?;
        answer.body = exactly(stream, length).await?;
    } else if answer.header("transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case("chunked")) {
        answer.body = chunks(stream).await?;
    }
    Ok(answer)
}

async fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    /// Longer than any line this server sends.
    const MAX_LINE: u64 = 16 * 1024;
    let mut text = String::new();
    let read = (&mut *stream).take(MAX_LINE).read_line(&mut text).await?;
    if read == 0 || !text.ends_with('\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}

async fn exactly(stream: &mut BufReader<TcpStream>, length: usize) -> io::Result<Vec<u8>> {
    if length > MAX_BODY {
        return Err(bad());
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

async fn chunks(stream: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(&line(stream).await?, 16).map_err(|_| bad())?;
        if body.len().saturating_add(size) > MAX_BODY {
            return Err(bad());
        }
        body.extend(exactly(stream, size).await?);
        line(stream).await?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn bad() -> io::Error {
    io::ErrorKind::InvalidData.into()
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
    async fn lengths_and_chunks_are_read() {
        let answer = answered_with("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await.unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, b"hi".as_slice()));
        let chunked = "HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"c\r\n9\r\node\":\"x\"}\r\n0\r\n\r\n";
        let answer = answered_with(chunked).await.unwrap();
        assert_eq!((answer.status, answer.code()), (409, "x".to_owned()));
    }

    #[tokio::test]
    async fn a_cut_answer_is_unknown_and_a_closed_port_is_not_sent() {
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
