//! Progress on stderr: one line that is redrawn on a terminal, or a line at intervals in a log.

use std::{
    io::{IsTerminal as _, Write as _},
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

use urr_kernel::Clock;

use super::schedule::Crowd;
use crate::{bench::thousands, program::ProcessMemory};

/// The interval on a terminal, and in a log.
const MOVES: Duration = Duration::from_millis(500);
const LOGS: Duration = Duration::from_secs(10);

/// The width of the bar.
const BAR: usize = 24;

/// The display. Dropping it draws the last line.
pub(super) struct Progress {
    /// Taken to end the thread.
    stop: Option<Sender<()>>,
    shown: Option<thread::JoinHandle<()>>,
}

impl Progress {
    #[expect(clippy::disallowed_methods, reason = "a thread of its own: every runtime is busy")]
    pub(super) fn start(crowd: &Arc<Crowd>, memory: ProcessMemory, speed: u32, clock: &Clock) -> Self {
        let (stop, stopped) = channel::<()>();
        let looked_at = std::io::stderr().is_terminal();
        let (every, begin, end) = if looked_at { (MOVES, "\r\x1b[2K", "") } else { (LOGS, "", "\n") };
        let (crowd, clock) = (Arc::clone(crowd), clock.clone());
        let shown = thread::spawn(move || {
            let mut last = (clock.ticks(), 0);
            let mut show = |end: &str| {
                let (now, progress) = (clock.ticks(), crowd.progress());
                let line = line(progress, last, now, speed, memory.resident());
                last = (now, progress.4);
                // A closed stderr is not an error.
                let mut err = std::io::stderr().lock();
                let _ = write!(err, "{begin}{line}{end}").and_then(|()| err.flush());
            };
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                show(end);
            }
            show("\n");
        });
        Self { stop: Some(stop), shown: Some(shown) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A panic was already printed.
        let _ = self.shown.take().map(thread::JoinHandle::join);
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of fans are far below 2^52")]
fn line(
    (joined, admitted, gone, fans, requests): (u32, u32, u32, usize, u64),
    (then, before): (Duration, u64),
    now: Duration,
    speed: u32,
    memory: u64,
) -> String {
    let share = |part: u32| f64::from(part) / fans as f64;
    let filled = bar(share(gone));
    let rate = (requests - before) as f64 / now.saturating_sub(then).as_secs_f64().max(0.001);
    format!(
        "[{filled}] {} joined, {} in, {} gone of {} | {} requests/s, {:.1} per fan | {} s at {speed} times | {} MiB",
        thousands(joined.into()),
        thousands((admitted - gone).into()),
        thousands(gone.into()),
        thousands(fans as f64),
        thousands(rate),
        requests as f64 / fans as f64,
        now.as_secs(),
        memory / (1024 * 1024),
    )
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a short bar"
)]
fn bar(share: f64) -> String {
    let full = ((share * BAR as f64) as usize).min(BAR);
    format!("{}{}", "#".repeat(full), ".".repeat(BAR - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_line_shows_counts_and_rates() {
        let second = Duration::from_secs(1);
        let line = line((1_000, 600, 500, 1_000, 6_000), (second, 1_000), second * 2, 60, 3 * 1024 * 1024);
        assert_eq!(
            line,
            "[############............] 1,000 joined, 100 in, 500 gone of 1,000 | 5,000 requests/s, 6.0 per fan | 2 s at 60 times | 3 MiB"
        );
        assert_eq!([bar(0.0), bar(2.0)], [".".repeat(BAR), "#".repeat(BAR)]);
    }
}
