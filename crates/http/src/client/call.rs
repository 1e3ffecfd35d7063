//! A request, its answer, and the ways there can be none.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use urr_kernel::Refused;

use super::BoxError;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nothing reached the other side, so asking again is safe whatever was asked.
    #[error("{target} could not be reached")]
    NotSent {
        /// Who was asked.
        target: Arc<str>,
        /// What went wrong.
        source: BoxError,
    },
    /// The request may or may not have taken effect.
    #[error("{target} was asked but gave no complete answer")]
    Unknown {
        /// Who was asked.
        target: Arc<str>,
        /// What went wrong.
        source: BoxError,
    },
    /// The target failed too often lately and is left alone for a while.
    #[error("{target} is left alone for now")]
    Open {
        /// Who would have been asked.
        target: Arc<str>,
        /// How long it is left alone.
        source: Refused,
    },
    /// The other side answered more than [`ClientLimits::answer_bytes`].
    #[error("{target} answered more than {limit} bytes")]
    TooLarge {
        /// Who was asked.
        target: Arc<str>,
        /// How many bytes would have been read.
        limit: usize,
    },
    /// The path or a header could not be written as HTTP: a mistake of the caller.
    #[error("the request to {target} is not valid HTTP")]
    Invalid {
        /// Who would have been asked.
        target: Arc<str>,
        /// What is wrong with it.
        source: BoxError,
    },
}

impl CallError {
    /// When asking again makes sense, if that is known.
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
    /// POST of a JSON document. `path` starts with a slash and is appended to the target's base URL.
    pub fn post_json(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { method: Method::POST, headers, idempotent: false, ..Self::get(path) }.with_body(body.into())
    }

    /// POST of a form, as `application/x-www-form-urlencoded` has it.
    pub fn post_form(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        Self::post_json(path, body).header(header::CONTENT_TYPE, form)
    }

    /// GET, which is idempotent by definition.
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

    /// Promises that asking twice does no more than asking once, so that network errors are tried again.
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// All tries and pauses together take no longer than this.
    pub fn within(mut self, time: Duration) -> Self {
        self.within = Some(time);
        self
    }

    fn with_body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }
}

/// A complete answer, of whatever status.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}
