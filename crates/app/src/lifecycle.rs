//! Shutdown, in order: not ready, a notice period for load balancers, listeners closed, requests in
//! progress finished, background work stopped.

use std::{io, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};
use urr_jobs::Tasks;
use urr_telemetry::Health;

/// How long requests in progress may take after the signal, including the notice period.
pub(crate) const DRAIN: Duration = Duration::from_secs(18);

/// Time for the listener to cut off the requests that are left then.
const CUT: Duration = Duration::from_secs(1);

/// Time for consumers and reconcilers to finish their current batch.
const STOP: Duration = Duration::from_secs(5);

/// The longest shutdown. Requests and background work that did not end in time each get a second to
/// unwind; then the last log lines and traces are written. 18 + 1 + 1 + 5 + 1 + 3 = 29 s.
const ALL: u64 = DRAIN.as_secs()
    + CUT.as_secs()
    + STOP.as_secs()
    + 2 * urr_jobs::UNWIND.as_secs()
    + urr_telemetry::LAST_WORDS.as_secs();

/// A supervisor kills after 30 s; one second is left to close the stores.
const _: () = assert!(ALL <= 29, "the stop fits into 30 s");

/// The time left for requests in progress when the listeners close, after the notice period.
pub(crate) const fn drain_after(notice: Duration) -> Duration {
    DRAIN.saturating_sub(notice)
}

/// The signals that mean "stop".
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Installs the handlers. From then on these signals no longer end the process.
    pub(crate) fn install() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for a signal and returns its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// The tasks of a process. Listeners stop first: a request in progress may need background work,
/// such as the outbox relay, but background work needs no new request.
#[derive(Clone, Default)]
pub(crate) struct ProcessTasks {
    /// The listeners.
    pub servers: Tasks,
    /// Reconcilers, relays and consumers.
    pub background: Tasks,
}

impl ProcessTasks {
    /// Waits until a signal arrives or an essential task ends unexpectedly.
    pub(crate) async fn until_stop(&self, signals: &mut Signals) {
        let (servers, background) = (self.servers.token(), self.background.token());
        tokio::select! {
            signal = signals.next() => tracing::info!(signal, "stopping"),
            () = servers.cancelled() => {}
            () = background.cancelled() => {}
        }
    }

    /// Stops everything in order. During the notice period only readiness changes, so that load
    /// balancers stop sending requests before the listeners close. Returns `true` if all tasks
    /// ended in time.
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
                tracing::warn!(part, %unfinished, "shutdown timed out: unfinished tasks were cut off");
                clean = false;
            }
        }
        clean
    }

    /// The essential task that ended unexpectedly, if any.
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
    async fn during_the_notice_period_new_connections_are_served_but_not_ready() {
        let (work, health) = (ProcessTasks::default(), Health::new());
        let server = Server::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", server.local_addr().unwrap());
        let routes = urr_http::ops_routes(health.clone(), Metrics::install());
        let routes = Router::new().route("/", get(async || "served")).merge(routes);
        let serve = server.serve(routes, Limits::default(), work.servers.token());
        work.servers.spawn_essential("http", async { serve.await.unwrap() });

        // A new client each time, and so a new connection.
        let ask = async |path: &str| {
            let client = Client::new(ClientLimits::default(), Clock::system());
            client.target(&base).unwrap().send(Call::get(path)).await
        };
        let talk = async {
            while ask("/health/ready").await.unwrap().status != StatusCode::SERVICE_UNAVAILABLE {}
            assert_eq!(ask("/").await.unwrap().body, "served");
        };
        tokio::select! {
            _ = work.stop(&health, NOTICE) => panic!("it stopped before the notice period ended"),
            () = talk => {}
        }
        assert!(work.stop(&health, Duration::ZERO).await);
        assert!(ask("/").await.is_err(), "the listener is closed");
    }

    #[tokio::test(start_paused = true)]
    async fn the_notice_period_does_not_extend_the_shutdown() {
        let (work, health) = (ProcessTasks::default(), Health::new());
        work.servers.spawn("request", std::future::pending());
        work.background.spawn("batch", std::future::pending());
        let token = work.servers.token();
        let mut stop = pin!(timeout(Duration::from_secs(30), work.stop(&health, NOTICE)));
        let almost = NOTICE.saturating_sub(Duration::from_secs(1));
        assert!(timeout(almost, &mut stop).await.is_err());
        assert!(health.is_draining() && !token.is_cancelled());
        assert!(timeout(Duration::from_secs(2), &mut stop).await.is_err());
        assert!(token.is_cancelled(), "the listeners close");
        let clean = stop.await.expect("the shutdown takes less than 30 s");
        assert!(!clean, "two tasks never end");
    }

    #[tokio::test(start_paused = true)]
    async fn the_notice_period_is_skipped_when_an_essential_task_has_ended() {
        let (work, health) = (ProcessTasks::default(), Health::new());
        work.servers.spawn_essential("http", async {});
        work.servers.token().cancelled().await;
        timeout(Duration::from_secs(1), work.stop(&health, NOTICE)).await.unwrap();
    }
}
