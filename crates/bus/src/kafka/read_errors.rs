//! Rate-limited logging of read errors, which librdkafka retries twice a second.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rdkafka::error::KafkaError;

/// Interval at which the log line is repeated.
const LOG_EVERY: Duration = Duration::from_mins(5);

/// Read errors in a row, shared by a group, its client and its lanes.
pub(super) struct ReadErrors {
    group: &'static str,
    logged: Mutex<Option<Duration>>,
}

impl ReadErrors {
    pub(super) fn new(group: &'static str) -> Self {
        Self { group, logged: Mutex::new(None) }
    }

    /// A record was read.
    pub(super) fn over(&self) {
        if self.logged.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            tracing::info!(group = self.group, "the consumer group reads from Kafka again");
        }
    }

    /// Records a read error.
    pub(super) fn note(&self, error: &KafkaError, now: Duration) {
        metrics::counter!("urr_bus_unread_total", "group" => self.group).increment(1);
        if self.is_news(now) {
            tracing::error!(
                group = self.group, %error,
                "the consumer group cannot read from Kafka: messages wait, retrying"
            );
        } else {
            tracing::debug!(group = self.group, %error, "still cannot read from Kafka");
        }
    }

    /// Whether to log the error now.
    pub(super) fn is_news(&self, now: Duration) -> bool {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_some_and(|logged| now.saturating_sub(logged) < LOG_EVERY) {
            return false;
        }
        *logged = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_logged_at_first_and_then_rarely_until_a_record_is_read() {
        let secs = Duration::from_secs;
        let read_errors = ReadErrors::new("group");
        assert!(read_errors.is_news(secs(100)));
        assert!(!read_errors.is_news(secs(101)));
        assert!(!read_errors.is_news(secs(399)));
        assert!(read_errors.is_news(secs(400)));
        read_errors.over();
        assert!(read_errors.is_news(secs(401)));
    }
}
