//! One place to pass requests on to, as they come: bodies are streamed both ways, nothing is kept and nothing is tried again.

use std::{fmt, sync::Arc};

use axum::body::Body;
use http::{Request, Response, Uri, uri::PathAndQuery};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{self, connect::HttpConnector};

use super::BoxError;

type Wire<C> = legacy::Client<C, Body>;

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
        mut request: Request<Body>,
    ) -> Result<Response<Body>, PipeError> {
        let mut to = self.base.clone().into_parts();
        to.path_and_query = Some(path);
        *request.uri_mut() = Uri::from_parts(to).map_err(|error| self.not_sent(error.into()))?;
        *request.version_mut() = http::Version::HTTP_11;
        let answer = match &self.wire {
            Connection::Plain(wire) => wire.request(request).await,
            Connection::Tls(wire) => wire.request(request).await,
        };
        match answer {
            Ok(answer) => Ok(answer.map(Body::new)),
            Err(error) if error.is_connect() => Err(self.not_sent(error.into())),
            Err(error) => Err(PipeError::Unknown { target: self.name.clone(), source: error.into() }),
        }
    }

    fn not_sent(&self, source: BoxError) -> PipeError {
        PipeError::NotSent { target: self.name.clone(), source }
    }
}
