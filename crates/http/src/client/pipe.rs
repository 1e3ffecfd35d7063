//! Forwards requests to another process. Bodies are streamed both ways; nothing is buffered or
//! retried. If nothing was sent, the caller gets the request back and can try another replica.

use std::{fmt, sync::Arc};

use axum::body::Body;
use http::{Request, Response, Uri, request::Parts, uri::PathAndQuery};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{self, connect::HttpConnector};

use super::{BoxError, recoverable_body::RecoverableBody};

type Wire<C> = legacy::Client<C, RecoverableBody>;

/// Why a forwarded request has no response.
#[derive(Debug, thiserror::Error)]
pub enum PipeError {
    /// Nothing was sent.
    #[error("{target} could not be reached")]
    NotSent {
        /// The base URL of the target.
        target: Arc<str>,
        /// The cause.
        source: BoxError,
        /// The unsent request, until it is taken.
        request: Option<Box<Request<Body>>>,
    },
    /// The request may or may not have taken effect.
    #[error("{target} sent no response; the request may have taken effect")]
    Unknown {
        /// The base URL of the target.
        target: Arc<str>,
        /// The cause.
        source: BoxError,
    },
}

impl PipeError {
    /// The unsent request, which can go to another replica.
    pub fn take_request(&mut self) -> Option<Request<Body>> {
        match self {
            Self::NotSent { request, .. } => request.take().map(|request| *request),
            Self::Unknown { .. } => None,
        }
    }
}

/// A target for forwarded requests. Clones share its connections.
#[derive(Clone)]
pub struct Pipe {
    name: Arc<str>,
    base: Uri,
    wire: Connection,
}

#[derive(Clone)]
pub(super) enum Connection {
    Plain(Wire<HttpConnector>),
    Tls(Wire<HttpsConnector<HttpConnector>>),
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pipe").field(&self.name).finish()
    }
}

impl Pipe {
    pub(super) fn new(name: Arc<str>, base: Uri, wire: Connection) -> Self {
        Self { name, base, wire }
    }

    /// The base URL.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends the request to `path` and waits for the response head. There is no timeout; the caller
    /// sets one. Headers are sent unchanged; the body's framing is derived from the body.
    pub async fn send(
        &self,
        path: PathAndQuery,
        request: Request<Body>,
    ) -> Result<Response<Body>, PipeError> {
        let mut to = self.base.clone().into_parts();
        to.path_and_query = Some(path);
        let to = match Uri::from_parts(to) {
            Ok(to) => to,
            Err(error) => return Err(self.not_sent(error.into(), request)),
        };
        let (mut head, body) = request.into_parts();
        let spare = copy(&head);
        let (body, recovery) = RecoverableBody::new(body);
        head.uri = to;
        head.version = http::Version::HTTP_11;
        let request = Request::from_parts(head, body);
        let answer = match &self.wire {
            Connection::Plain(wire) => wire.request(request).await,
            Connection::Tls(wire) => wire.request(request).await,
        };
        let error = match answer {
            Ok(answer) => return Ok(answer.map(Body::new)),
            Err(error) => error,
        };
        match recovery.back() {
            Some(body) if error.is_connect() => Err(self.not_sent(error.into(), spare.map(|()| body))),
            _ => Err(PipeError::Unknown { target: self.name.clone(), source: error.into() }),
        }
    }

    fn not_sent(&self, source: BoxError, request: Request<Body>) -> PipeError {
        PipeError::NotSent { target: self.name.clone(), source, request: Some(Box::new(request)) }
    }
}

/// Copies everything that is sent except the body.
fn copy(head: &Parts) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = head.uri.clone();
    *request.version_mut() = head.version;
    *request.headers_mut() = head.headers.clone();
    request
}
