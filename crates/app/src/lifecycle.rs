//! From the signal to the end: readiness off, no new requests, requests in progress finished, background work stopped.

use std::{io, time::Duration};

use tokio::signal::unix::{Signal, SignalKind, signal};
use urr_jobs::Tasks;
use urr_telemetry::Health;

/// Requests in progress may take this long once the process was told to stop.
pub(crate) const DRAIN: Duration = Duration::from_secs(22);

/// What is still open then is cut off by the listener itself, which takes a moment.
const CUT: Duration = Duration::from_secs(1);

/// Consumers and reconcilers finish the batch they are in.
const STOP: Duration = Duration::from_secs(5);

/// A supervisor kills after 30 s: two of them are left to close the stores and flush what telemetry still holds.
const _: () = assert!(DRAIN.as_secs() + CUT.as_secs() + STOP.as_secs() <= 28, "the stop fits into 30 s");

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

    /// Stops everything in order. True if everything ended by itself.
    pub(crate) async fn stop(&self, health: &Health) -> bool {
        health.drain();
        let mut clean = true;
        for (part, tasks, grace) in
            [("requests", &self.servers, DRAIN + CUT), ("background work", &self.background, STOP)]
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
