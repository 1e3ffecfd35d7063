//! Formats measurements as a table.

use std::{fmt::Write as _, time::Duration};

use super::load::millis;
use crate::report::Report;

/// One row of the table.
#[derive(Debug)]
pub(super) struct Row {
    /// The name of the row.
    pub(super) name: String,
    /// The measurement, or why there is none.
    pub(super) outcome: Result<Measured, String>,
}

/// Responses within a period.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// The latency of each successful request.
    pub(super) latencies: Vec<Duration>,
    /// The length of the period.
    pub(super) took: Duration,
    /// CPU time of the whole process in the period, load and server together.
    pub(super) processor: Duration,
    /// Requests that failed.
    pub(super) failed: u64,
    /// Why the first of them failed.
    pub(super) first_failure: Option<String>,
}

impl Measured {
    /// Successful requests per second.
    #[expect(clippy::cast_precision_loss, reason = "a run has far fewer than 2^52 answers")]
    pub(super) fn rate(&self) -> f64 {
        if self.took.is_zero() { 0.0 } else { self.latencies.len() as f64 / self.took.as_secs_f64() }
    }

    /// CPU time per successful request, in microseconds. Unlike the rate it does not depend on
    /// other processes.
    #[expect(clippy::cast_precision_loss, reason = "a run has far fewer than 2^52 answers")]
    fn processor_micros(&self) -> f64 {
        self.processor.as_secs_f64() * 1_000_000.0 / self.latencies.len().max(1) as f64
    }

    /// Adds the measurements of another period.
    pub(super) fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.took += other.took;
        self.processor += other.processor;
        self.failed += other.failed;
        self.first_failure = self.first_failure.take().or(other.first_failure);
    }

    /// The latency that `percent` of the requests did not exceed. The latencies must be sorted.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get((self.latencies.len() * percent / 100).min(last)).copied().unwrap_or_default()
    }
}

/// Adds the table to a report, and a fault for each row with failures.
pub(super) fn print(report: &mut Report, rows: &mut [Row]) {
    report.line("");
    report.line(table(rows).trim_end());
    let failed = rows.iter().filter(|row| row.outcome.as_ref().map_or(true, |measured| measured.failed > 0));
    report.faults.extend(failed.map(|row| format!("{} did not work as it should", row.name)));
}

/// The rows as text. Rates are compared with the first row.
fn table(rows: &mut [Row]) -> String {
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let mut text = format!(
        "{:width$}  {:>10}  {:>9}  {:>9}  {:>9}  {:>9}\n",
        "", "per second", "p50 ms", "p99 ms", "cpu µs", "of first"
    );
    let base = rows.first().and_then(|row| row.outcome.as_ref().ok()).map_or(0.0, Measured::rate);
    for row in rows {
        let name = &row.name;
        let line = match &mut row.outcome {
            Err(why) => format!("{name:width$}  {why}"),
            Ok(measured) => {
                measured.latencies.sort_unstable();
                let rate = measured.rate();
                let share = if base > 0.0 { format!("{:.1} %", rate / base * 100.0) } else { "-".to_owned() };
                let (p50, p99) = (measured.percentile(50), measured.percentile(99));
                let mut line = format!(
                    "{name:width$}  {:>10}  {:>9.3}  {:>9.3}  {:>9.1}  {share:>9}",
                    thousands(rate),
                    millis(p50),
                    millis(p99),
                    measured.processor_micros(),
                );
                if measured.failed > 0 {
                    let first = measured.first_failure.as_deref().unwrap_or("no reason given");
                    let _ = write!(line, "  {} FAILED, such as: {first}", measured.failed);
                }
                line
            }
        };
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// `1,000,000 waiting`
#[expect(clippy::cast_precision_loss, reason = "a queue is far shorter than 2^52")]
pub(super) fn named(waiting: usize) -> String {
    format!("{} waiting", thousands(waiting as f64))
}

/// `16,384`
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is a small positive number"
)]
pub(crate) fn thousands(rate: f64) -> String {
    let digits = (rate.round() as u64).to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(answers: u64) -> Measured {
        let latencies = (1..=answers).rev().map(Duration::from_millis).collect();
        let (took, processor) = (Duration::from_secs(1), Duration::from_millis(answers));
        Measured { latencies, took, processor, ..Measured::default() }
    }

    #[test]
    fn rates_are_compared_with_the_first_row() {
        let mut rows = [
            Row { name: "no-op".to_owned(), outcome: Ok(measured(2_000)) },
            Row { name: "holds".to_owned(), outcome: Ok(measured(500)) },
            Row { name: "other".to_owned(), outcome: Err("not asked for".to_owned()) },
        ];
        let text = table(&mut rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1].split_whitespace().collect::<Vec<_>>(),
            ["no-op", "2,000", "1001.000", "1981.000", "1000.0", "100.0", "%"]
        );
        assert_eq!(
            lines[2].split_whitespace().collect::<Vec<_>>(),
            ["holds", "500", "251.000", "496.000", "1000.0", "25.0", "%"]
        );
        assert_eq!(lines[3], "other  not asked for");
    }

    #[test]
    fn table_shows_failures() {
        let failed = Measured { failed: 3, first_failure: Some("409".to_owned()), ..measured(10) };
        let text = table(&mut [Row { name: "holds".to_owned(), outcome: Ok(failed) }]);
        assert!(text.contains("3 FAILED, such as: 409"), "{text}");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0.4, 999.0, 1_000.0, 1_234_567.0].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
