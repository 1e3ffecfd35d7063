//! The route table: every public route behind a gateway, and what each asks of its caller.
//!
//! The table is built from the routes that the roles declare (`urr_http::Routes`), for roles of this process and for roles
//! that run elsewhere. A request whose path is not in the table is not routed.

use std::collections::HashMap;

use http::Method;
use percent_encoding::percent_decode_str;
use urr_http::{Access, Class, Policy, RoleRoutes, RouteName};
use urr_kernel::EventId;

use crate::limit::Blind;

/// One route.
#[derive(Clone, Debug)]
pub struct Route {
    /// The method. GET also stands for HEAD.
    pub method: Method,
    /// Whether it answers every method as it answers GET. A proxy asks such a route about a request to another site, with the
    /// method of that request. It changes nothing, so preflight and origin checks do not apply.
    pub any_method: bool,
    /// The path, with parameters in braces.
    pub path: &'static str,
    /// The role that answers it.
    pub role: &'static RoleRoutes,
    /// What it asks of its caller.
    pub policy: Policy,
}

impl Route {
    pub(crate) fn new(role: &'static RoleRoutes, name: &RouteName) -> Self {
        let RouteName { method, any_method, path, policy, .. } = name;
        Self { method: method.clone(), any_method: *any_method, path, role, policy: *policy }
    }

    /// The event that `{id}` stands for in a path, read as the handler reads it: decoded, then by the same parser. An id has many
    /// spellings, and all of them are the same event.
    pub(crate) fn event(&self, path: &str) -> Option<EventId> {
        let place = self.path.split('/').position(|segment| segment == "{id}")?;
        let id = percent_decode_str(path.split('/').nth(place)?).decode_utf8().ok()?;
        id.parse().ok()
    }

    /// Whether it is counted by address even if somebody is signed in: where accounts are made and passwords tried, having one
    /// account must not be a way around the limit.
    pub fn counts_addresses(&self) -> bool {
        self.policy.access == Access::Public && self.policy.limit == Some(Class::Auth)
    }

    /// What to do while requests cannot be counted.
    pub fn blind(&self) -> Blind {
        if self.policy.critical { Blind::Refuse } else { Blind::CountHere }
    }

    /// Whether a request must be refused while it is not known which sessions ended.
    pub fn needs_fresh_sessions(&self) -> bool {
        self.policy.access == Access::Admin || (self.role.issues_tokens && self.policy.critical)
    }

    /// Whether a bad token ends the request. Elsewhere its bearer is nobody: on pages, which show themselves to anybody, and where
    /// a new token is to be had. What anybody may ask is refused only to a client that said the token by itself and can do better:
    /// a browser goes on sending the cookie of a session that was ended elsewhere.
    pub fn refuses_bad_tokens(&self, said: bool) -> bool {
        match self.policy.access {
            Access::User | Access::Admin => true,
            Access::Public => said && !self.role.issues_tokens && self.path.starts_with("/api/"),
        }
    }
}

/// What the table says about a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'t> {
    /// This route.
    Route(&'t Route),
    /// The path exists, but not with this method.
    OtherMethods(&'t [Route]),
    /// There is no such path.
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

/// A path of the table, by its number.
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
    /// When the route is there already, its path belongs to another role, or cannot be told from another one.
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

    /// The path a request asks for. The path is compared as it is spelled, by the matching that the routers behind do: a path
    /// that is spelled to look like another one is another path to both.
    pub(crate) fn find_path(&self, path: &str) -> Option<PathNumber> {
        if !is_plain(path) {
            return None;
        }
        let number = self.fixed.get(path).or_else(|| Some(self.paths.at(path).ok()?.value))?;
        Some(PathNumber(*number))
    }

    /// The number of a path as it is declared.
    pub(crate) fn number(&self, declared: &str) -> Option<PathNumber> {
        self.routes.iter().position(|routes| routes[0].path == declared).map(PathNumber)
    }

    /// The route that a request for this path takes.
    pub(crate) fn find(&self, path: PathNumber, method: &Method) -> Found<'_> {
        let routes = &self.routes[path.0];
        let asked = if method == Method::HEAD { &Method::GET } else { method };
        match routes.iter().find(|route| route.any_method || route.method == *asked) {
            Some(route) => Found::Route(route),
            None => Found::OtherMethods(routes),
        }
    }
}

/// Whether every reader of a path reads the same one. Some programs resolve `..`, take an encoded slash for a slash, or a backslash
/// for one; whoever stands behind us may be such a program, and none of our paths needs any of that.
fn is_plain(path: &str) -> bool {
    // By bytes, which is a few times quicker than by characters, and most paths have none of these.
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
