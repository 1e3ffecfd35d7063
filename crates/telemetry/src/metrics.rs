//! Numbers for Prometheus. Every crate counts through the `metrics` facade; this is where the numbers end up.

use std::{sync::OnceLock, thread, time::Duration};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Seconds: from a lookup in memory (0.1 ms) to the longest request allowed (30 s).
const SECONDS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0,
];

/// Bytes: from a small JSON answer to the largest body.
const BYTES: &[f64] = &[256.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 8_388_608.0];

/// Sizes of batches and queues.
const SIZES: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 10_000.0];

/// Histograms keep raw samples until somebody folds them into buckets. At 100,000 requests a second, one second of
/// samples is about 2 MB.
const UPKEEP: Duration = Duration::from_secs(1);

/// The process's metrics. Names: `urr_<part>_<what>_<unit>`; histograms end in `_seconds`, `_bytes` or `_size`.
#[derive(Clone, Debug)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Starts collecting for the whole process, the first time it is called; later calls give the same collector. Comes before
    /// anything that counts: a number asked for earlier goes nowhere.
    pub fn install() -> Self {
        static INSTALLED: OnceLock<PrometheusHandle> = OnceLock::new();
        Self(INSTALLED.get_or_init(start).clone())
    }

    /// Everything counted so far, in the Prometheus text format.
    pub fn render(&self) -> String {
        self.0.render()
    }
}

fn start() -> PrometheusHandle {
    let recorder = builder().build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::warn!("another metrics recorder was installed first; /metrics will be empty");
    }
    let upkeep = handle.clone();
    #[expect(clippy::disallowed_methods, reason = "it lives as long as the process, which no runtime does")]
    let started = thread::Builder::new().name("urr-metrics".to_owned()).spawn(move || {
        loop {
            thread::sleep(UPKEEP);
            upkeep.run_upkeep();
        }
    });
    if let Err(error) = started {
        tracing::warn!(%error, "histograms are folded only when /metrics is read");
    }
    handle
}

fn builder() -> PrometheusBuilder {
    let named = |suffix: &str| Matcher::Suffix(suffix.to_owned());
    PrometheusBuilder::new()
        .set_buckets(SECONDS)
        .and_then(|builder| builder.set_buckets_for_metric(named("_bytes"), BYTES))
        .and_then(|builder| builder.set_buckets_for_metric(named("_size"), SIZES))
        .expect("no list of buckets is empty")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rendered_with_buckets_that_fit_their_unit() {
        let recorder = builder().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            metrics::counter!("urr_test_total", "route" => "/a\"b").increment(3);
            metrics::histogram!("urr_test_seconds").record(0.003);
            metrics::histogram!("urr_batch_size").record(7.0);
        });
        let text = handle.render();
        assert!(text.contains("urr_test_total{route=\"/a\\\"b\"} 3"), "{text}");
        assert!(text.contains("urr_test_seconds_bucket{le=\"0.0025\"} 0"), "{text}");
        assert!(text.contains("urr_test_seconds_bucket{le=\"0.005\"} 1"), "{text}");
        assert!(text.contains("urr_batch_size_bucket{le=\"10\"} 1"), "{text}");
    }

    #[test]
    fn installing_twice_gives_the_same_collector() {
        let first = Metrics::install();
        metrics::counter!("urr_install_total").increment(1);
        assert!(Metrics::install().render().contains("urr_install_total 1"));
        assert!(first.render().contains("urr_install_total 1"));
    }
}
