//! Prometheus metrics. Every crate records through the `metrics` facade; this installs the
//! recorder.

use std::{sync::OnceLock, thread, time::Duration};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Buckets in seconds: from a lookup in memory (0.1 ms) to the request time limit (30 s).
const SECONDS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0,
];

/// Buckets in bytes: from a small JSON response to the largest body.
const BYTES: &[f64] = &[256.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 8_388_608.0];

/// Buckets for sizes of batches and queues.
const SIZES: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 10_000.0];

/// Histograms keep raw samples until they are folded into buckets. At 100,000 requests per second,
/// one second of samples is about 2 MB.
const UPKEEP: Duration = Duration::from_secs(1);

/// The process's metrics. Names: `urr_<part>_<what>_<unit>`; histograms end in `_seconds`, `_bytes`
/// or `_size`.
#[derive(Clone, Debug)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Installs the recorder for the whole process on the first call; later calls return the same
    /// one. Call it before anything records: earlier handles record nothing.
    pub fn install() -> Self {
        static INSTALLED: OnceLock<PrometheusHandle> = OnceLock::new();
        Self(INSTALLED.get_or_init(start).clone())
    }

    /// All metrics in the Prometheus text format.
    pub fn render(&self) -> String {
        self.0.render()
    }
}

fn start() -> PrometheusHandle {
    let recorder = builder().build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::warn!("another metrics recorder was installed first: /metrics will be empty");
    }
    let upkeep = handle.clone();
    #[expect(clippy::disallowed_methods, reason = "runs as long as the process, outside any runtime")]
    let started = thread::Builder::new().name("urr-metrics".to_owned()).spawn(move || {
        loop {
            thread::sleep(UPKEEP);
            upkeep.run_upkeep();
        }
    });
    if let Err(error) = started {
        tracing::warn!(%error, "upkeep thread not started: histogram samples stay in memory until /metrics is read");
    }
    handle
}

fn builder() -> PrometheusBuilder {
    let named = |suffix: &str| Matcher::Suffix(suffix.to_owned());
    PrometheusBuilder::new()
        .set_buckets(SECONDS)
        .and_then(|builder| builder.set_buckets_for_metric(named("_bytes"), BYTES))
        .and_then(|builder| builder.set_buckets_for_metric(named("_size"), SIZES))
        .expect("bucket lists are not empty")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_get_the_buckets_of_their_unit() {
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
    fn installing_twice_returns_the_same_recorder() {
        let first = Metrics::install();
        metrics::counter!("urr_install_total").increment(1);
        assert!(Metrics::install().render().contains("urr_install_total 1"));
        assert!(first.render().contains("urr_install_total 1"));
    }
}
