//! Replaces tracing in a build without the feature `otlp`: configuring a collector is an error, all
//! else does nothing.

use tracing::Span;
use tracing_subscriber::layer::Identity;

use crate::{InitError, Otlp};

/// Cannot be constructed in this build.
pub(crate) enum Tracer {}

impl Tracer {
    pub(crate) fn start(otlp: &Otlp) -> Result<Self, InitError> {
        let source = "this binary was built without the feature `otlp`".into();
        Err(InitError::Otlp { endpoint: otlp.endpoint.clone(), source })
    }

    pub(crate) fn layer(&self) -> Identity {
        match *self {}
    }

    pub(crate) fn stop(self) {
        match self {}
    }
}

/// Always `None` in this build.
pub fn traceparent() -> Option<String> {
    None
}

/// Does nothing in this build.
pub fn follow(_span: &Span, _traceparent: &str) {}
