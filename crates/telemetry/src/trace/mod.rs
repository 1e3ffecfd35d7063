//! Traces to an OpenTelemetry collector, and the header that carries them between roles.

#[cfg(feature = "otlp")]
mod otlp;

#[cfg(not(feature = "otlp"))]
#[path = "off.rs"]
mod otlp;

use std::time::Duration;

pub(crate) use otlp::Tracer;
pub use otlp::{follow, traceparent};

/// How long shutdown waits for the last spans.
pub(crate) const STOP_TIME: Duration = Duration::from_secs(2);

/// Where traces are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Otlp {
    /// The collector's base URL, such as `http://127.0.0.1:4318`; spans are sent to `/v1/traces`
    /// below it.
    pub endpoint: String,
    /// The service name in traces.
    pub service: String,
    /// The share of requests that are traced, from 0 to 1. A caller's own sampling decision is
    /// kept.
    pub sample: f64,
}
