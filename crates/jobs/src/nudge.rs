//! Wakes a worker before its next scheduled run.

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Tells one worker that there may be work. Nudges are coalesced until the worker waits again. A
/// nudge sent while the worker is busy is kept, so work committed meanwhile does not wait for the
/// next period.
#[derive(Clone, Debug, Default)]
pub struct Nudge(Arc<Notify>);

impl Nudge {
    /// A nudge that has not been sent.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes the worker, now or as soon as it waits.
    pub fn nudge(&self) {
        self.0.notify_one();
    }

    /// Waits for the next nudge.
    pub async fn nudged(&self) {
        self.0.notified().await;
    }
}

impl From<Arc<Notify>> for Nudge {
    fn from(notify: Arc<Notify>) -> Self {
        Self(notify)
    }
}

/// Why a pause ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time passed.
    Elapsed,
    /// A nudge arrived.
    Nudged,
    /// The process is stopping.
    Stopping,
}

/// Waits for a nudge, the timeout or shutdown, whichever comes first. Every wait of a background
/// loop uses this, so that shutdown interrupts it.
pub async fn pause(stopping: &CancellationToken, nudge: Option<&Nudge>, time: Duration) -> Woken {
    let nudged = async {
        match nudge {
            Some(nudge) => nudge.nudged().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = stopping.cancelled() => Woken::Stopping,
        () = nudged => Woken::Nudged,
        () = tokio::time::sleep(time) => Woken::Elapsed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    #[tokio::test(start_paused = true)]
    async fn nudges_before_the_pause_are_kept_and_coalesced() {
        let (stopping, nudge) = (CancellationToken::new(), Nudge::new());
        nudge.nudge();
        nudge.nudge();
        assert_eq!(pause(&stopping, Some(&nudge), HOUR).await, Woken::Nudged);
        assert_eq!(pause(&stopping, Some(&nudge), HOUR).await, Woken::Elapsed);
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_ends_a_pause_even_when_nudged() {
        let (stopping, nudge) = (CancellationToken::new(), Nudge::new());
        nudge.nudge();
        stopping.cancel();
        assert_eq!(pause(&stopping, Some(&nudge), HOUR).await, Woken::Stopping);
    }
}
