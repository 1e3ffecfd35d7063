//! The front door: versioning, cookies, access tokens over local routers.
//!
//! In this order: the version is taken out of the path, headers that only we may set are taken out of the request, and the access
//! token becomes an [`Actor`]. Only then is the request routed, so a guard and the route it guards always see the same path.

pub mod address;
mod codes;
mod compress;
mod door;
mod front;
pub mod limit;
mod matched;
mod openapi;
mod origin;
mod proxy;
pub mod revoked;
pub mod table;
mod token;
mod version;

use std::{convert::Infallible, sync::Arc};

use axum::{
    Router,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderName};
use tower::Service as _;
use urr_http::Problem;
use urr_kernel::{Actor, Clock};
use urr_passes::{Refusal, access::Verifier};

pub use self::{
    codes::CODES,
    door::{Gateway, Guards},
    front::front,
    origin::{BadOrigin, Origins},
    proxy::Upstream,
};
use crate::codes::{TOKEN_EXPIRED, TOKEN_INVALID};

/// Headers that carry what we found out about a request. Coming from outside they are a forgery.
const INTERNAL_HEADERS: [&str; 3] = ["x-user-", "x-queue-", "x-urr-"];

/// What the gateway needs.
#[derive(Clone, Debug)]
pub struct GatewayParts {
    /// Reads access tokens.
    pub access: Verifier,
    /// Tells whether they have expired.
    pub clock: Clock,
}

/// Puts the gateway in front of a router. Handlers find the caller as [`urr_http::Caller`].
///
/// A missing token means [`Actor::Anonymous`]. A bad one is refused under `/api`, so that a client learns to refresh it; elsewhere,
/// on pages, and under `/api/auth`, where a new one is to be had, its bearer is nobody.
pub fn layers(router: Router, parts: GatewayParts) -> Router {
    let router = if router.has_routes() { urr_http::named(router) } else { router };
    let parts = Arc::new(parts);
    Router::new().fallback_service(tower::service_fn(move |request| {
        let (parts, router) = (parts.clone(), router.clone());
        async move { Ok::<_, Infallible>(parts.pass(router, request).await) }
    }))
}

impl GatewayParts {
    async fn pass(&self, mut router: Router, mut request: Request) -> Response {
        version::remove(request.uri_mut());
        strip(request.headers_mut());
        let actor = match self.actor(request.headers()) {
            Ok(actor) => actor,
            Err(refusal) if refuses_bad_tokens(request.uri().path()) => {
                return refused(refusal).into_response();
            }
            Err(_) => Actor::Anonymous,
        };
        request.extensions_mut().insert(actor);
        router.call(request).await.unwrap_or_else(|impossible| match impossible {})
    }

    fn actor(&self, headers: &HeaderMap) -> Result<Actor, Refusal> {
        match token::find(headers)? {
            None => Ok(Actor::Anonymous),
            Some(token) => Ok(self.access.verify(token, self.clock.now())?.access.actor()),
        }
    }
}

fn strip(headers: &mut HeaderMap) {
    let is_internal =
        |name: &HeaderName| INTERNAL_HEADERS.iter().any(|prefix| name.as_str().starts_with(prefix));
    if headers.keys().any(is_internal) {
        let forged: Vec<_> = headers.keys().filter(|name| is_internal(name)).cloned().collect();
        for name in forged {
            headers.remove(name);
        }
    }
}

/// Whether a bad token ends the request here. The path is the one that will be routed, and the router compares it as exactly as
/// this does: whatever is spelled to look like another path is another path to both.
fn refuses_bad_tokens(path: &str) -> bool {
    path.starts_with("/api/") && !path.starts_with("/api/auth/")
}

fn refused(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::Expired => {
            Problem::of(TOKEN_EXPIRED, "The access token has expired. Please refresh it or sign in again.")
        }
        Refusal::Invalid => {
            Problem::of(TOKEN_INVALID, "The access token is not valid. Please sign in again.")
        }
    }
}
