//! One place to pass requests on to, as they come: bodies are streamed both ways, nothing is kept and nothing is tried again. A
//! request of which nothing was sent is given back as it was, for somebody else.

use std::{fmt, sync::Arc};

use axum::body::Body;
use http::{Request, Response, Uri, request::Parts, uri::PathAndQuery};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{self, connect::HttpConnector};

use super::{BoxError, lent::Lent};

type Wire<C> = legacy::Client<C, Lent>;

/// Why a request that was passed on has no answer.
#[derive(Debug, thiserror::Error)]
pub enum PipeError {
    /// Nothing reached the other side.
    #[error("{target} could not be reached")]
    NotSent {
        /// Who was asked.
        target: Arc<str>,
        /// What went wrong.
        source: BoxError,
        /// The request as it was, until somebody takes it.
        request: Option<Box<Request<Body>>>,
    },
    /// The request may or may not have taken effect.
    #[error("{target} was asked but gave no answer")]
    Unknown {
        /// Who was asked.
        target: Arc<str>,
        /// What went wrong.
        source: BoxError,
    },
}

impl PipeError {
    /// The request, if nothing of it was sent: somebody else can still answer it.
    pub fn take_request(&mut self) -> Option<Request<Body>> {
        match self {
            Self::NotSent { request, .. } => request.take().map(|request| *request),
            Self::Unknown { .. } => None,
        }
    }
}

/// One place to pass requests on to. Clones share its connections.
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

    /// Passes the request on to `path` and waits for the head of the answer, for as long as the caller does. Headers go as they
    /// are; how the body is framed is decided here, from the body alone.
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
        let (body, lender) = Lent::new(body);
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
        match lender.back() {
            Some(body) if error.is_connect() => Err(self.not_sent(error.into(), spare.map(|()| body))),
            _ => Err(PipeError::Unknown { target: self.name.clone(), source: error.into() }),
        }
    }

    fn not_sent(&self, source: BoxError, request: Request<Body>) -> PipeError {
        PipeError::NotSent { target: self.name.clone(), source, request: Some(Box::new(request)) }
    }
}

/// Everything that is sent but the body.
fn copy(head: &Parts) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = head.uri.clone();
    *request.version_mut() = head.version;
    *request.headers_mut() = head.headers.clone();
    request
}
