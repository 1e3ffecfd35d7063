//! Closed-loop load: a fixed number of clients, each of which waits for a response before its next
//! request.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Barrier, task::JoinSet};
use urr_kernel::Clock;

use super::table::Measured;
use crate::{http::Connection, machine};

/// Number of clients and duration of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Concurrent clients.
    pub(super) clients: usize,
    /// Not measured: connections are opened, caches and the allocator fill.
    pub(super) warm_up: Duration,
    /// Measured.
    pub(super) span: Duration,
}

/// Work that a client repeats.
pub(super) trait Client: Send + 'static {
    /// Runs it once. `None` means that no work is left.
    fn once(&mut self) -> impl Future<Output = Option<Result<(), String>>> + Send;
}

/// Runs the clients and collects their measurements. Also counts successes for the progress line.
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
    // If the requests ran out, the measurement ends there.
    measured.took = now.min(measured_to).saturating_sub(measured_from);
    measured
}

/// The requests of a run, shared by all clients.
#[derive(Debug)]
pub(super) struct RequestSource {
    requests: Vec<Vec<u8>>,
    next: AtomicUsize,
    /// Whether to start over at the end, for requests that change nothing.
    endless: bool,
}

impl RequestSource {
    /// Each request is sent once.
    pub(super) fn once(requests: Vec<Vec<u8>>) -> Arc<Self> {
        Arc::new(Self { requests, next: AtomicUsize::new(0), endless: false })
    }

    /// The requests are repeated for as long as the run lasts.
    pub(super) fn endless(requests: Vec<Vec<u8>>) -> Arc<Self> {
        Arc::new(Self { requests, next: AtomicUsize::new(0), endless: true })
    }

    /// The next request; `None` at the end.
    pub(super) fn draw(&self) -> Option<&[u8]> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let at = if self.endless { next % self.requests.len().max(1) } else { next };
        self.requests.get(at).map(Vec::as_slice)
    }
}

/// A client that sends the requests of a deck.
#[derive(Debug)]
pub(super) struct HttpClient {
    source: Arc<RequestSource>,
    connection: Connection,
    broken: bool,
}

impl HttpClient {
    /// Opens the connections of all clients.
    pub(super) async fn connect(
        count: usize,
        address: SocketAddr,
        source: &Arc<RequestSource>,
    ) -> io::Result<Vec<Self>> {
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            let connection = Connection::open(address).await?;
            clients.push(Self { source: Arc::clone(source), connection, broken: false });
        }
        Ok(clients)
    }
}

impl Client for HttpClient {
    async fn once(&mut self) -> Option<Result<(), String>> {
        if self.broken {
            return None;
        }
        let source = Arc::clone(&self.source);
        let request = source.draw()?;
        Some(self.connection.expect_200(request).await.unwrap_or_else(|error| {
            self.broken = true;
            Err(format!("connection lost: {error}"))
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
    async fn run_ends_when_work_runs_out_and_counts_failures() {
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
    fn deck_ends_or_repeats() {
        let once = RequestSource::once(vec![vec![1], vec![2]]);
        assert_eq!([once.draw(), once.draw(), once.draw()], [Some(&[1][..]), Some(&[2][..]), None]);
        let endless = RequestSource::endless(vec![vec![1]]);
        assert_eq!([endless.draw(), endless.draw()], [Some(&[1][..]), Some(&[1][..])]);
    }
}
