//! Rate limit for log lines about failed requests: an outage causes thousands per second.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

/// Lines per second; the rest are counted. An outage must not fill the disk.
const MAX_PER_SEC: u32 = 100;

/// A rate limit for one kind of log line.
#[derive(Debug, Default)]
pub struct FailureLines {
    second: AtomicU64,
    lines: AtomicU32,
}

impl FailureLines {
    /// No lines written yet.
    pub const fn new() -> Self {
        Self { second: AtomicU64::new(0), lines: AtomicU32::new(0) }
    }

    /// Whether one more line may be written at `now` (clock ticks). Logs how many were suppressed
    /// in an earlier second.
    pub fn may_write(&self, now: Duration) -> bool {
        if self.second.swap(now.as_secs(), Ordering::Relaxed) != now.as_secs() {
            let lines = self.lines.swap(0, Ordering::Relaxed);
            if let Some(left_out) = lines.checked_sub(MAX_PER_SEC).filter(|left_out| *left_out > 0) {
                tracing::warn!(left_out, "log rate limit: more requests failed than are logged");
            }
        }
        self.lines.fetch_add(1, Ordering::Relaxed) < MAX_PER_SEC
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_limited_per_second() {
        let lines = FailureLines::new();
        let written = |at| (0..500).filter(|_| lines.may_write(Duration::from_secs(at))).count();
        assert_eq!((written(5), written(5), written(6)), (100, 0, 100));
    }
}
