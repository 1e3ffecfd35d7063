//! Requests, responses and errors of the client.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use urr_kernel::Refused;

use super::BoxError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nothing was sent, so any call may be retried.
    #[error("{target} could not be reached")]
    NotSent {
        /// The base URL of the target.
        target: Arc<str>,
        /// The cause.
        source: BoxError,
    },
    /// The request may or may not have taken effect.
    #[error("{target} sent no complete response; the request may have taken effect")]
    Unknown {
        /// The base URL of the target.
        target: Arc<str>,
        /// The cause.
        source: BoxError,
    },
    /// The circuit breaker is open after too many failures.
    #[error("the circuit breaker of {target} is open after repeated failures")]
    Open {
        /// The base URL of the target.
        target: Arc<str>,
        /// When it allows calls again.
        source: Refused,
    },
    /// The response is larger than [`ClientLimits::answer_bytes`].
    #[error("{target} sent a response of more than {limit} bytes")]
    TooLarge {
        /// The base URL of the target.
        target: Arc<str>,
        /// The limit in bytes.
        limit: usize,
    },
    /// The path or a header is invalid: a bug in the caller.
    #[error("the request to {target} is not valid HTTP")]
    Invalid {
        /// The base URL of the target.
        target: Arc<str>,
        /// The cause.
        source: BoxError,
    },
}

impl CallError {
    /// When to retry, if known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Open { source, .. } => Some(source.retry_after),
            _ => None,
        }
    }

    pub(super) fn is_network(&self) -> bool {
        matches!(self, Self::NotSent { .. } | Self::Unknown { .. })
    }
}

/// One request to a target.
#[derive(Clone, Debug)]
pub struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) idempotent: bool,
    pub(super) within: Option<Duration>,
}

impl Call {
    /// POST of a JSON document. `path` starts with a slash and is appended to the base URL.
    pub fn post_json(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { method: Method::POST, headers, idempotent: false, ..Self::get(path) }.with_body(body.into())
    }

    /// POST of an `application/x-www-form-urlencoded` body.
    pub fn post_form(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        Self::post_json(path, body).header(header::CONTENT_TYPE, form)
    }

    /// GET. Idempotent by definition.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            idempotent: true,
            within: None,
        }
    }

    /// Sets a header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Declares the call idempotent, so that it is retried after network errors.
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Limits the total time of all attempts and pauses.
    pub fn within(mut self, time: Duration) -> Self {
        self.within = Some(time);
        self
    }

    fn with_body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }
}

/// A complete response of any status.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}
