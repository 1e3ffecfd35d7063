//! axum glue: problems, extractors, limits, timeouts, security headers, client with breaker and retry.
