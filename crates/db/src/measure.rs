//! Transaction metrics and the log line for slow transactions.

use std::time::Duration;

use urr_kernel::Clock;

use crate::tx::Ended;

/// Transactions slower than this are logged. Normal ones take milliseconds.
const SLOW: Duration = Duration::from_secs(1);

/// Measures one running transaction. Dropped without [`end`](Self::end), it counts as cancelled.
pub(crate) struct Measure<'c> {
    name: &'static str,
    clock: &'c Clock,
    began: Duration,
    outcome: &'static str,
}

impl<'c> Measure<'c> {
    pub(crate) fn start(name: &'static str, clock: &'c Clock) -> Self {
        Self { name, clock, began: clock.ticks(), outcome: "cancelled" }
    }

    pub(crate) fn end<T, E>(mut self, ended: Ended<T, E>) -> Ended<T, E> {
        self.outcome = match (&ended.result, ended.failure) {
            (Ok(_), _) => "committed",
            (Err(_), None) => "refused",
            (Err(_), Some(kind)) => kind.label(),
        };
        ended
    }
}

impl Drop for Measure<'_> {
    fn drop(&mut self) {
        let took = self.clock.ticks().saturating_sub(self.began);
        metrics::histogram!("urr_db_transaction_seconds", "transaction" => self.name)
            .record(took.as_secs_f64());
        metrics::counter!("urr_db_transactions_total", "transaction" => self.name, "outcome" => self.outcome)
            .increment(1);
        if took > SLOW {
            let millis = took.as_millis();
            tracing::warn!(transaction = self.name, outcome = self.outcome, millis, "slow transaction");
        }
    }
}
