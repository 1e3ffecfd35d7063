//! How far it is, while it lasts: a line that moves for whoever looks, a line now and then for a log.

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

use super::crowd::Crowd;
use crate::{bench::report::thousands, served::Served};

/// How often the line moves, and how often there is one in a log.
const MOVES: Duration = Duration::from_millis(500);
const LOGS: Duration = Duration::from_secs(10);

/// The width of the bar.
const BAR: usize = 24;

/// The display. Ends when [`Show::end`] is called.
pub(super) struct Show {
    stop: Sender<()>,
    shown: thread::JoinHandle<()>,
}

impl Show {
    #[expect(clippy::disallowed_methods, reason = "it is shown while every runtime is busy")]
    pub(super) fn start(crowd: &Arc<Crowd>, served: &Served, speed: u32, clock: &Clock) -> Self {
        let (stop, stopped) = channel::<()>();
        let looked_at = std::io::stderr().is_terminal();
        let (every, begin, end) = if looked_at { (MOVES, "\r\x1b[2K", "") } else { (LOGS, "", "\n") };
        let (crowd, clock, memory) = (Arc::clone(crowd), clock.clone(), served.meter());
        let shown = thread::spawn(move || {
            let mut last = (clock.ticks(), 0);
            let mut show = |end: &str| {
                let (now, progress) = (clock.ticks(), crowd.progress());
                let line = line(progress, last, now, speed, memory.bytes());
                last = (now, progress.4);
                // Nobody is left to be told when stderr is closed.
                let mut err = std::io::stderr().lock();
                let _ = write!(err, "{begin}{line}{end}").and_then(|()| err.flush());
            };
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                show(end);
            }
            show("\n");
        });
        Self { stop, shown }
    }

    pub(super) fn end(self) {
        drop(self.stop);
        // A thread that panicked has already said so.
        let _ = self.shown.join();
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of people are far below 2^52")]
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
    reason = "a share of a few signs"
)]
fn bar(share: f64) -> String {
    let full = ((share * BAR as f64) as usize).min(BAR);
    format!("{}{}", "#".repeat(full), ".".repeat(BAR - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_it_is() {
        let second = Duration::from_secs(1);
        let line = line((1_000, 600, 500, 1_000, 6_000), (second, 1_000), second * 2, 60, 3 * 1024 * 1024);
        assert_eq!(
            line,
            "[############............] 1,000 joined, 100 in, 500 gone of 1,000 | 5,000 requests/s, 6.0 per fan | 2 s at 60 times | 3 MiB"
        );
        assert_eq!([bar(0.0), bar(2.0)], [".".repeat(BAR), "#".repeat(BAR)]);
    }
}
