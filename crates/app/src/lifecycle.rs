//! From the signal to the end: readiness off, time for balancers to see it if they need any, no new requests, requests in progress finished, background work stopped.

use std::{io, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};
use urr_jobs::Tasks;
use urr_telemetry::Health;

/// Requests in progress may take this long once the process was told to stop, what the notice takes included.
pub(crate) const DRAIN: Duration = Duration::from_secs(18);

/// What is still open then is cut off by the listener itself, which takes a moment.
const CUT: Duration = Duration::from_secs(1);

/// Consumers and reconcilers finish the batch they are in.
const STOP: Duration = Duration::from_secs(5);

/// What the whole stop takes at most: requests and background work each get a moment to unwind if they did not end in time, and then the
/// last lines and traces are written. 18 + 1 + 1 + 5 + 1 + 3 = 29 s.
const ALL: u64 = DRAIN.as_secs()
    + CUT.as_secs()
    + STOP.as_secs()
    + 2 * urr_jobs::UNWIND.as_secs()
    + urr_telemetry::LAST_WORDS.as_secs();

/// A supervisor kills after 30 s: one of them is left to close the stores.
const _: () = assert!(ALL <= 29, "the stop fits into 30 s");

/// What requests in progress have left when the listeners close, after a notice of this length.
pub(crate) const fn drain_after(notice: Duration) -> Duration {
    DRAIN.saturating_sub(notice)
}

/// The signals that mean "stop".
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on the process no longer dies of them.
    pub(crate) fn install() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The name of the next one.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// The two kinds of work a process does. They stop one after the other: a request in progress may still need background
/// work, such as the outbox relay, but nothing in the background needs a new request.
#[derive(Clone, Default)]
pub(crate) struct Work {
    /// The listeners.
    pub servers: Tasks,
    /// Reconcilers, relays and consumers.
    pub background: Tasks,
}

impl Work {
    /// Waits until somebody asks the process to stop or an essential part of it ends by itself.
    pub(crate) async fn until_stop(&self, signals: &mut Signals) {
        let (servers, background) = (self.servers.token(), self.background.token());
        tokio::select! {
            signal = signals.next() => tracing::info!(signal, "stopping"),
            () = servers.cancelled() => {}
            () = background.cancelled() => {}
        }
    }

    /// Stops everything in order. For the time of the notice only readiness tells of it, so that balancers look elsewhere before the
    /// listeners close. True if everything ended by itself.
    pub(crate) async fn stop(&self, health: &Health, notice: Duration) -> bool {
        health.drain();
        let (servers, background) = (self.servers.token(), self.background.token());
        tokio::select! {
            biased;
            () = servers.cancelled() => {}
            () = background.cancelled() => {}
            () = sleep(notice) => {}
        }
        let mut clean = true;
        let drain = drain_after(notice) + CUT;
        for (part, tasks, grace) in
            [("requests", &self.servers, drain), ("background work", &self.background, STOP)]
        {
            if let Err(unfinished) = tasks.shutdown(grace).await {
                tracing::warn!(part, %unfinished, "stopped without waiting any longer");
                clean = false;
            }
        }
        clean
    }

    /// The essential part that ended by itself, if one did.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.servers.failed().or_else(|| self.background.failed())
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use axum::{Router, routing::get};
    use tokio::time::timeout;
    use urr_http::{Call, Client, ClientLimits, Limits, Server, StatusCode};
    use urr_kernel::Clock;
    use urr_telemetry::Metrics;

    use super::*;

    const NOTICE: Duration = Duration::from_secs(15);

    #[tokio::test]
    async fn a_notice_says_that_the_process_stops_while_new_connections_are_served() {
        let (work, health) = (Work::default(), Health::new());
        let server = Server::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", server.local_addr().unwrap());
        let routes = urr_http::ops_routes(health.clone(), Metrics::install());
        let routes = Router::new().route("/", get(async || "served")).merge(routes);
        let serve = server.serve(routes, Limits::default(), work.servers.token());
        work.servers.spawn_essential("http", async { serve.await.unwrap() });

        // A client of its own each time, and so a connection.
        let ask = async |path: &str| {
            let client = Client::new(ClientLimits::default(), Clock::system());
            client.target(&base).unwrap().send(Call::get(path)).await
        };
        let talk = async {
            while ask("/health/ready").await.unwrap().status != StatusCode::SERVICE_UNAVAILABLE {}
            assert_eq!(ask("/").await.unwrap().body, "served");
        };
        tokio::select! {
            _ = work.stop(&health, NOTICE) => panic!("it stopped without notice"),
            () = talk => {}
        }
        assert!(work.stop(&health, Duration::ZERO).await);
        assert!(ask("/").await.is_err(), "the listener is closed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_with_notice_is_over_as_soon_as_one_without() {
        let (work, health) = (Work::default(), Health::new());
        work.servers.spawn("request", std::future::pending());
        work.background.spawn("batch", std::future::pending());
        let token = work.servers.token();
        let mut stop = pin!(timeout(Duration::from_secs(30), work.stop(&health, NOTICE)));
        let almost = NOTICE.saturating_sub(Duration::from_secs(1));
        assert!(timeout(almost, &mut stop).await.is_err());
        assert!(health.is_draining() && !token.is_cancelled());
        assert!(timeout(Duration::from_secs(2), &mut stop).await.is_err());
        assert!(token.is_cancelled(), "the listeners close");
        let clean = stop.await.expect("a supervisor would kill it now");
        assert!(!clean, "two never end");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_when_a_part_has_ended_by_itself() {
        let (work, health) = (Work::default(), Health::new());
        work.servers.spawn_essential("http", async {});
        work.servers.token().cancelled().await;
        timeout(Duration::from_secs(1), work.stop(&health, NOTICE)).await.unwrap();
    }
}
