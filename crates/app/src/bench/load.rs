//! The load: a fixed number of clients, each sending its next request when the last one was answered.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use httparse::Status;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Barrier,
    task::JoinSet,
};
use urr_kernel::Clock;

use super::{machine, report::Measured};

/// The largest answer that is read: a reservation is below 2 kB.
const MAX_ANSWER: usize = 64 * 1024;

/// The most headers an answer has; ours have a dozen.
const MAX_HEADERS: usize = 32;

/// How much and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Clients at the same time.
    pub(super) clients: usize,
    /// Not measured: connections are made, caches and the allocator fill.
    pub(super) warm_up: Duration,
    /// Measured.
    pub(super) span: Duration,
}

/// Work that a client does again and again. `None`: there is no more.
pub(super) trait Client: Send + 'static {
    /// Does it once.
    fn once(&mut self) -> impl Future<Output = Option<Result<(), String>>> + Send;
}

/// Runs the clients and gathers what they measured. Counts good answers for whoever shows progress.
pub(super) async fn run<C: Client>(
    clients: Vec<C>,
    pace: Pace,
    clock: &Clock,
    done: &Arc<AtomicU64>,
) -> Measured {
    let start = Arc::new(Barrier::new(clients.len()));
    let mut running = JoinSet::new();
    for client in clients {
        running.spawn(drive(client, Arc::clone(&start), pace, clock.clone(), Arc::clone(done)));
    }
    tokio::time::sleep(pace.warm_up).await;
    let processor = machine::processor_time();
    let mut sum = Measured::default();
    while let Some(part) = running.join_next().await {
        let part = part.unwrap_or_else(|broken| Measured {
            failed: 1,
            first_failure: Some(broken.to_string()),
            ..Measured::default()
        });
        sum.latencies.extend(part.latencies);
        sum.took = sum.took.max(part.took);
        sum.failed += part.failed;
        sum.first_failure = sum.first_failure.or(part.first_failure);
    }
    sum.processor = machine::processor_time().saturating_sub(processor);
    sum
}

async fn drive<C: Client>(
    mut client: C,
    start: Arc<Barrier>,
    pace: Pace,
    clock: Clock,
    done: Arc<AtomicU64>,
) -> Measured {
    start.wait().await;
    let measured_from = clock.ticks() + pace.warm_up;
    let measured_to = measured_from + pace.span;
    let mut measured = Measured::default();
    let mut now = clock.ticks();
    while now < measured_to {
        let sent = now;
        let Some(answer) = client.once().await else { break };
        now = clock.ticks();
        match answer {
            Ok(()) if sent >= measured_from && now <= measured_to => {
                measured.latencies.push(now.saturating_sub(sent));
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok(()) => {}
            Err(why) => {
                measured.failed += 1;
                measured.first_failure.get_or_insert(why);
            }
        }
    }
    // A run that ran out of work is measured up to that moment.
    measured.took = now.min(measured_to).saturating_sub(measured_from);
    measured
}

/// The requests of a run, each sent once, whoever comes first.
#[derive(Debug)]
pub(super) struct Deck {
    requests: Vec<Vec<u8>>,
    next: AtomicUsize,
    /// Whether to begin again at the end, for requests that change nothing.
    endless: bool,
}

impl Deck {
    /// Requests that can be sent once.
    pub(super) fn once(requests: Vec<Vec<u8>>) -> Arc<Self> {
        Arc::new(Self { requests, next: AtomicUsize::new(0), endless: false })
    }

    /// Requests that can be sent for ever.
    pub(super) fn endless(requests: Vec<Vec<u8>>) -> Arc<Self> {
        Arc::new(Self { requests, next: AtomicUsize::new(0), endless: true })
    }

    /// The next one.
    pub(super) fn draw(&self) -> Option<&[u8]> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let at = if self.endless { next % self.requests.len().max(1) } else { next };
        self.requests.get(at).map(Vec::as_slice)
    }
}

/// A connection that stays open.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Its status.
    pub(crate) status: u16,
    /// Its body as text.
    pub(crate) body: String,
    /// How long to wait before asking again, if it says so.
    pub(crate) retry_after: Option<Duration>,
}

impl Reply {
    /// Which error it is; empty if it is none.
    pub(crate) fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        body["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Wire {
    /// Connects.
    pub(crate) async fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(4 * 1024) })
    }

    /// Sends a request and reads its whole answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> io::Result<Reply> {
        let head = self.exchange(request).await?;
        Ok(Reply {
            status: head.status,
            body: String::from_utf8_lossy(&self.buffer[head.length..]).into_owned(),
            retry_after: head.retry_after.map(Duration::from_secs),
        })
    }

    /// Sends a request and reads its answer; says what it was if it was not 200.
    async fn ask_for_200(&mut self, request: &[u8]) -> io::Result<Result<(), String>> {
        let head = self.exchange(request).await?;
        let body = || String::from_utf8_lossy(&self.buffer[head.length..]).into_owned();
        Ok(if head.status == 200 { Ok(()) } else { Err(body()) })
    }

    async fn exchange(&mut self, request: &[u8]) -> io::Result<Head> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let head = loop {
            self.more().await?;
            if let Some(head) = Head::read(&self.buffer)? {
                break head;
            }
        };
        while self.buffer.len() < head.length + head.body_length {
            self.more().await?;
        }
        Ok(head)
    }

    async fn more(&mut self) -> io::Result<()> {
        let read = self.stream.read_buf(&mut self.buffer).await?;
        if read == 0 || self.buffer.len() > MAX_ANSWER {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

/// A client that plays a deck.
#[derive(Debug)]
pub(super) struct HttpClient {
    deck: Arc<Deck>,
    wire: Wire,
    broken: bool,
}

impl HttpClient {
    /// So many clients, all connected.
    pub(super) async fn connect(
        count: usize,
        address: SocketAddr,
        deck: &Arc<Deck>,
    ) -> io::Result<Vec<Self>> {
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            clients.push(Self { deck: Arc::clone(deck), wire: Wire::connect(address).await?, broken: false });
        }
        Ok(clients)
    }
}

impl Client for HttpClient {
    async fn once(&mut self) -> Option<Result<(), String>> {
        if self.broken {
            return None;
        }
        let deck = Arc::clone(&self.deck);
        let request = deck.draw()?;
        Some(self.wire.ask_for_200(request).await.unwrap_or_else(|error| {
            self.broken = true;
            Err(format!("the connection broke: {error}"))
        }))
    }
}

/// What the head of an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    length: usize,
    body_length: usize,
    /// In seconds.
    retry_after: Option<u64>,
}

impl Head {
    /// By the parser that servers use: what a client spends on reading is not to be taken for what a server spends on answering.
    /// `None`: there is more to come.
    fn read(bytes: &[u8]) -> io::Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut answer = httparse::Response::new(&mut headers);
        let Status::Complete(length) = answer.parse(bytes).map_err(io::Error::other)? else {
            return Ok(None);
        };
        let number = |wanted: &str| {
            let header = answer.headers.iter().find(|header| header.name.eq_ignore_ascii_case(wanted))?;
            std::str::from_utf8(header.value).ok()?.parse().ok()
        };
        let body_length = number("content-length").and_then(|length| usize::try_from(length).ok());
        Ok(Some(Self {
            status: answer.code.ok_or(io::ErrorKind::InvalidData)?,
            length,
            body_length: body_length.ok_or(io::ErrorKind::InvalidData)?,
            retry_after: number("retry-after"),
        }))
    }
}

/// A latency in milliseconds.
pub(super) fn millis(latency: Duration) -> f64 {
    latency.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Countdown(u32);

    impl Client for Countdown {
        async fn once(&mut self) -> Option<Result<(), String>> {
            self.0 = self.0.checked_sub(1)?;
            Some(if self.0.is_multiple_of(2) { Ok(()) } else { Err("odd".to_owned()) })
        }
    }

    #[tokio::test]
    async fn a_run_ends_when_there_is_no_more_work_and_counts_failures() {
        let pace = Pace { clients: 2, warm_up: Duration::ZERO, span: Duration::from_mins(1) };
        let done = Arc::new(AtomicU64::new(0));
        let clock = Clock::system();
        let measured = run(vec![Countdown(10), Countdown(10)], pace, &clock, &done).await;
        assert_eq!((measured.latencies.len(), measured.failed), (10, 10));
        assert_eq!(measured.first_failure.as_deref(), Some("odd"));
        assert_eq!(done.load(Ordering::Relaxed), 10);
        assert!(measured.took < Duration::from_mins(1));
    }

    #[test]
    fn a_deck_is_dealt_once_or_for_ever() {
        let once = Deck::once(vec![vec![1], vec![2]]);
        assert_eq!([once.draw(), once.draw(), once.draw()], [Some(&[1][..]), Some(&[2][..]), None]);
        let endless = Deck::endless(vec![vec![1]]);
        assert_eq!([endless.draw(), endless.draw()], [Some(&[1][..]), Some(&[1][..])]);
    }

    #[test]
    fn a_head_is_read_once_it_is_there_and_whatever_its_case() {
        let answer = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 12\r\nretry-after: 7\r\n\r\nHello";
        let head = Head { status: 429, length: answer.len() - 5, body_length: 12, retry_after: Some(7) };
        assert_eq!(Head::read(answer).unwrap(), Some(head));
        assert_eq!(Head::read(&answer[..head.length - 1]).unwrap(), None);
        assert!(Head::read(b"HTTP/1.1 200 OK\r\n\r\n").is_err(), "nobody knows where its body ends");
        assert!(Head::read(b"SSH-2.0-OpenSSH\r\n\r\n").is_err());
    }
}
