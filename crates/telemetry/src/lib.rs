//! Tracing, metrics, health, error-chain logging.

mod chain;
mod failures;
mod health;
mod lines;
mod logging;
mod metrics;
mod settings;
mod trace;

pub use chain::chain;
pub use failures::FailureLines;
pub use health::{Check, Health, Report};
pub use logging::{Guard, InitError, LAST_WORDS, Logging, flush, init};
pub use metrics::Metrics;
pub use settings::{LogFormat, Settings};
pub use trace::{Otlp, follow, traceparent};
