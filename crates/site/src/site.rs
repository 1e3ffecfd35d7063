//! What the pages are made of, and where they are.

use std::sync::Arc;

use axum::{
    extract::FromRef,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderValue, header};
use urr_contracts::{auth::Auth, catalog::Catalog};
use urr_http::{About, PAGE, Path, RoleRoutes, RouteName, Routes, StatusCode};
use urr_kernel::{Clock, Ids};

use crate::{account, assets, control, doors, shop};

/// What pages ask for what they show.
pub struct Parts {
    /// Accounts, here or elsewhere.
    pub auth: Arc<dyn Auth>,
    /// Events, here or elsewhere.
    pub catalog: Arc<dyn Catalog>,
    /// The time.
    pub clock: Clock,
    /// Names requests that nobody named.
    pub ids: Ids,
}

/// The pages.
#[derive(Clone)]
pub(crate) struct Site(pub(crate) Arc<Parts>);

impl FromRef<Site> for Clock {
    fn from_ref(site: &Site) -> Self {
        site.0.clock.clone()
    }
}

impl FromRef<Site> for Ids {
    fn from_ref(site: &Site) -> Self {
        site.0.ids.clone()
    }
}

/// Keeps what pages ask.
pub fn build(parts: Parts) -> Arc<Parts> {
    Arc::new(parts)
}

/// How the gateway treats the pages.
pub static ROLE: RoleRoutes = RoleRoutes {
    reads_token: true,
    ..RoleRoutes::new("site", "This page is unavailable right now. Please try again in a moment.")
};

/// The pages and what they load.
pub fn routes(parts: &Arc<Parts>) -> Routes {
    page_routes().with_state(Site(Arc::clone(parts)))
}

/// The routes of the pages, for processes that do not serve them.
pub fn described() -> Vec<RouteName> {
    page_routes().names().to_vec()
}

fn page_routes() -> Routes<Site> {
    files().merge(doors::routes()).merge(account::routes()).merge(shop::routes()).merge(control::routes())
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

/// Events are for everybody to find; what belongs to one person is not.
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
