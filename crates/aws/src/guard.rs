//! Wraps every call in a deadline, a circuit breaker and metrics.

use std::{
    fmt,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
};
use tokio::time::timeout;
use urr_kernel::{Breaker, BreakerLimits, Clock};

use crate::Error;

/// Wraps the calls to one service.
pub(crate) struct Guard {
    service: &'static str,
    clock: Clock,
    breaker: Mutex<Breaker>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&self.service).finish()
    }
}

/// A call of the SDK. Boxed because it is large.
pub(crate) type Asked<'a, T, E> =
    Pin<Box<dyn Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send + 'a>>;

/// Clients that got an error retry within seconds, so the breaker probes every second. A slow reply
/// is better than none, so only the deadline decides what is too slow.
const BREAKER: BreakerLimits = BreakerLimits {
    window: 10,
    failures_percent: 50,
    open_for: Duration::from_secs(1),
    trials: 2,
    slow_call: Duration::from_mins(1),
};

impl Guard {
    pub(crate) fn new(service: &'static str, clock: Clock) -> Self {
        Self { service, clock, breaker: Mutex::new(Breaker::new(BREAKER)) }
    }

    /// Makes a call. `limit` covers all of its attempts.
    pub(crate) async fn call<T, E>(
        &self,
        verb: &'static str,
        limit: Duration,
        call: Asked<'_, T, E>,
    ) -> Result<T, Error>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let service = self.service;
        let started = self.clock.ticks();
        let permit = self.breaker().permit(started);
        let outcome = match permit {
            Err(refused) => Err(Error::open(service, refused)),
            Ok(()) => self.ask(started, limit, call).await,
        };
        let label = outcome.as_ref().err().map_or("ok", Error::label);
        metrics::counter!("urr_aws_calls_total", "service" => service, "verb" => verb, "outcome" => label)
            .increment(1);
        let took = self.clock.ticks().saturating_sub(started);
        metrics::histogram!("urr_aws_call_seconds", "service" => service, "verb" => verb)
            .record(took.as_secs_f64());
        outcome
    }

    async fn ask<T, E>(&self, started: Duration, limit: Duration, call: Asked<'_, T, E>) -> Result<T, Error>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let service = self.service;
        let outcome = match timeout(limit, call).await {
            Ok(outcome) => outcome.map_err(|error| Error::of(service, &error)),
            Err(_) => Err(Error::Timeout { service, limit }),
        };
        self.report(started, outcome.as_ref().err().is_none_or(|error| !error.is_unavailable()));
        outcome
    }

    fn report(&self, started: Duration, served: bool) {
        let now = self.clock.ticks();
        let mut breaker = self.breaker();
        let was_open = breaker.is_open(now);
        breaker.report(now, now.saturating_sub(started), served);
        if !was_open && breaker.is_open(now) {
            metrics::counter!("urr_aws_breaker_opened_total", "service" => self.service).increment(1);
            tracing::warn!(
                service = self.service,
                "service keeps failing: calls are rejected for one second, then retried"
            );
        }
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
