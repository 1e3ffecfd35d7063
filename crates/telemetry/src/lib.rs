//! Tracing, metrics, health, error-chain logging.

mod chain;

pub use chain::chain;
