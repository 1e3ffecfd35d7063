//! The route table: every public route behind a gateway, and its access policy.
//!
//! The table is built from the routes that the roles declare (`urr_http::Routes`), for roles in
//! this process and in others. A request whose path is not in the table is not routed.

use std::collections::HashMap;

use http::Method;
use percent_encoding::percent_decode_str;
use urr_http::{Access, Class, Policy, RoleRoutes, RouteName};
use urr_kernel::EventId;

use crate::limit::OnStoreOutage;

/// One route.
#[derive(Clone, Debug)]
pub struct Route {
    /// The method. GET also covers HEAD.
    pub method: Method,
    /// Whether it handles every method like GET. A proxy calls such a route to authorise a request
    /// to another site, with the method of that request. It changes nothing, so preflight and
    /// origin checks do not apply.
    pub any_method: bool,
    /// The path, with parameters in braces.
    pub path: &'static str,
    /// The role that serves it.
    pub role: &'static RoleRoutes,
    /// Its access policy.
    pub policy: Policy,
}

impl Route {
    pub(crate) fn new(role: &'static RoleRoutes, name: &RouteName) -> Self {
        let RouteName { method, any_method, path, policy, .. } = name;
        Self { method: method.clone(), any_method: *any_method, path, role, policy: *policy }
    }

    /// Parses the event id that `{id}` stands for, in the same way as the handler: percent-decoded,
    /// then by the same parser. An id has many spellings, and all of them are the same event.
    pub(crate) fn event(&self, path: &str) -> Option<EventId> {
        let place = self.path.split('/').position(|segment| segment == "{id}")?;
        let id = percent_decode_str(path.split('/').nth(place)?).decode_utf8().ok()?;
        id.parse().ok()
    }

    /// Whether requests are counted by address even for signed-in users: where accounts are created
    /// and passwords tried, having an account must not bypass the limit.
    pub fn counts_addresses(&self) -> bool {
        self.policy.access == Access::Public && self.policy.limit == Some(Class::Auth)
    }

    /// Behaviour while requests cannot be counted.
    pub fn on_outage(&self) -> OnStoreOutage {
        if self.policy.critical { OnStoreOutage::Refuse } else { OnStoreOutage::CountHere }
    }

    /// Whether requests are rejected while the list of ended sessions is stale.
    pub fn needs_fresh_sessions(&self) -> bool {
        self.policy.access == Access::Admin || (self.role.issues_tokens && self.policy.critical)
    }

    /// Whether an invalid token rejects the request. Otherwise the caller is anonymous: on pages,
    /// which are public, and on routes that issue new tokens. Public API routes reject it only if
    /// the client set `Authorization` itself: a browser keeps sending the cookie of a session that
    /// ended elsewhere.
    pub fn refuses_bad_tokens(&self, said: bool) -> bool {
        match self.policy.access {
            Access::User | Access::Admin => true,
            Access::Public => said && !self.role.issues_tokens && self.path.starts_with("/api/"),
        }
    }
}

/// Result of a lookup.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'t> {
    /// The route.
    Route(&'t Route),
    /// The path exists, but not with this method.
    OtherMethods(&'t [Route]),
    /// The path does not exist.
    Nothing,
}

/// Every route behind a gateway.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Indexes into `routes` of paths without parameters, found with one lookup.
    fixed: HashMap<&'static str, usize>,
    /// Indexes of all paths, matched the way axum's routers match.
    paths: matchit::Router<usize>,
    /// The routes of each path.
    routes: Vec<Vec<Route>>,
}

/// Index of a path in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathNumber(usize);

impl PathNumber {
    pub(crate) const fn index(self) -> usize {
        self.0
    }
}

impl Table {
    /// Adds a route.
    ///
    /// # Panics
    /// When the route already exists, or its path belongs to another role or conflicts with another
    /// path.
    pub(crate) fn add(&mut self, route: Route) -> PathNumber {
        let PathNumber(place) = self.number(route.path).unwrap_or_else(|| {
            let place = self.routes.len();
            if !route.path.contains('{') {
                self.fixed.insert(route.path, place);
            }
            if let Err(conflict) = self.paths.insert(route.path, place) {
                panic!("{} of role {}: {conflict}", route.path, route.role.role);
            }
            self.routes.push(Vec::new());
            PathNumber(place)
        });
        let known = &mut self.routes[place];
        let taken = |known: &&Route| known.method == route.method || known.role != route.role;
        if let Some(known) = known.iter().find(taken) {
            panic!(
                "{} {} is declared by {} and by {}",
                route.method, route.path, known.role.role, route.role.role
            );
        }
        known.push(route);
        PathNumber(place)
    }

    /// Returns the path that matches a request. Paths are compared as spelled, with the matcher of
    /// the routers behind: a path that only looks like another one does not match it in either.
    pub(crate) fn find_path(&self, path: &str) -> Option<PathNumber> {
        if !is_plain(path) {
            return None;
        }
        let number = self.fixed.get(path).or_else(|| Some(self.paths.at(path).ok()?.value))?;
        Some(PathNumber(*number))
    }

    /// Returns the index of a declared path.
    pub(crate) fn number(&self, declared: &str) -> Option<PathNumber> {
        self.routes.iter().position(|routes| routes[0].path == declared).map(PathNumber)
    }

    /// Returns the route for this path and method.
    pub(crate) fn find(&self, path: PathNumber, method: &Method) -> Found<'_> {
        let routes = &self.routes[path.0];
        let asked = if method == Method::HEAD { &Method::GET } else { method };
        match routes.iter().find(|route| route.any_method || route.method == *asked) {
            Some(route) => Found::Route(route),
            None => Found::OtherMethods(routes),
        }
    }
}

/// Whether all servers interpret a path in the same way. Some resolve `..`, or treat an encoded
/// slash or a backslash as a slash; a server behind us may be one of them, and none of our paths
/// needs that.
fn is_plain(path: &str) -> bool {
    // Checks bytes, which is several times faster than characters; most paths contain none of
    // these.
    if !path.bytes().any(|byte| matches!(byte, b'%' | b'.' | b'\\')) {
        return true;
    }
    let lower = path.to_ascii_lowercase().replace("%2e", ".");
    let is_dots = |segment: &str| {
        let name = segment.split(';').next().unwrap_or_default();
        name == "." || name == ".."
    };
    !["%2f", "%5c", "%00", "\\"].iter().any(|trick| lower.contains(trick)) && !lower.split('/').any(is_dots)
}

#[cfg(test)]
mod tests;
