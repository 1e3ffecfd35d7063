//! Tracing, metrics, health, error-chain logging.
