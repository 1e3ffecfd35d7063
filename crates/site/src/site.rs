//! The services that pages use, and the routes of the pages.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, header};
use urr_contracts::{auth::Auth, catalog::Catalog};
use urr_http::{About, PAGE, Path, RoleRoutes, RouteName, Routes, StatusCode};
use urr_kernel::{Clock, Ids};
use urr_rpc::handler_state;

use crate::{account, assets, control, shop, sign_in};

/// What pages are built from.
pub struct Parts {
    /// Accounts, local or remote.
    pub auth: Arc<dyn Auth>,
    /// Events, local or remote.
    pub catalog: Arc<dyn Catalog>,
    /// The time.
    pub clock: Clock,
    /// Ids of requests without one.
    pub ids: Ids,
}

handler_state! {
    /// State of the route handlers.
    pub(crate) struct Site(Parts);
}

/// Creates the state of the pages.
pub fn build(parts: Parts) -> Arc<Parts> {
    Arc::new(parts)
}

/// How the gateway handles the pages.
pub static ROLE: RoleRoutes = RoleRoutes {
    reads_token: true,
    ..RoleRoutes::new("site", "This page is unavailable right now. Please try again in a moment.")
};

/// The routes of the pages and their assets.
pub fn routes(parts: &Arc<Parts>) -> Routes {
    page_routes().with_state(Site(Arc::clone(parts)))
}

/// The routes of the pages, for processes that do not serve them.
pub fn described() -> Vec<RouteName> {
    page_routes().names().to_vec()
}

fn page_routes() -> Routes<Site> {
    files().merge(sign_in::routes()).merge(account::routes()).merge(shop::routes()).merge(control::routes())
}

fn files() -> Routes<Site> {
    Routes::new()
        .get("/static/{*path}", PAGE.unlimited(), async |Path(name): Path<String>, headers: HeaderMap| {
            assets::serve(&name, &headers)
        })
        .about(About::new("What pages load").bare(StatusCode::OK).bare(StatusCode::NOT_MODIFIED))
        .get("/favicon.ico", PAGE.unlimited(), async || moved(assets::address("icon.svg")))
        .about(About::new("The picture of the site").bare(StatusCode::FOUND))
        .get("/robots.txt", PAGE.unlimited(), async || ROBOTS)
        .about(About::new("What search engines may look at").bare(StatusCode::OK))
}

fn moved(address: &'static str) -> Response {
    (StatusCode::FOUND, [(header::LOCATION, HeaderValue::from_static(address))]).into_response()
}

/// Search engines may index events but no personal pages.
const ROBOTS: &str = "User-agent: *
Disallow: /api/
Disallow: /account
Disallow: /admin
Disallow: /login
Disallow: /register
Disallow: /queue/
Disallow: /reset-password
Disallow: /verify-email
Disallow: /forgot-password
Disallow: /*/seats$
";
