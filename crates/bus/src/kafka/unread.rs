//! Records that cannot be read: the client asks again by itself, twice a second, and somebody has to hear of it.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rdkafka::error::KafkaError;

/// The line is repeated while it lasts, rarely enough to be read.
const TELL_EVERY: Duration = Duration::from_mins(5);

/// What a group, its member and the lanes know of failures in a row.
pub(super) struct Unread {
    group: &'static str,
    told: Mutex<Option<Duration>>,
}

impl Unread {
    pub(super) fn new(group: &'static str) -> Self {
        Self { group, told: Mutex::new(None) }
    }

    /// A record came.
    pub(super) fn over(&self) {
        if self.told.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            tracing::info!(group = self.group, "records can be read again");
        }
    }

    /// None came, because of this.
    pub(super) fn note(&self, error: &KafkaError, now: Duration) {
        metrics::counter!("urr_bus_unread_total", "group" => self.group).increment(1);
        if self.is_news(now) {
            tracing::error!(group = self.group, %error, "the group cannot read; it goes on asking");
        } else {
            tracing::debug!(group = self.group, %error, "no message");
        }
    }

    /// Whether it is time to say so.
    pub(super) fn is_news(&self, now: Duration) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_some_and(|told| now.saturating_sub(told) < TELL_EVERY) {
            return false;
        }
        *told = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_told_and_the_next_ones_rarely_until_a_record_comes() {
        let secs = Duration::from_secs;
        let unread = Unread::new("group");
        assert!(unread.is_news(secs(100)));
        assert!(!unread.is_news(secs(101)));
        assert!(!unread.is_news(secs(399)));
        assert!(unread.is_news(secs(400)));
        unread.over();
        assert!(unread.is_news(secs(401)));
    }
}
