//! Every public route of the product, and what each of them asks of its caller.
//!
//! Whoever adds a route classifies it here. A request whose path is not in the table is not routed, and a service whose routes are
//! not in the table does not start: see [`unclassified`].

mod routes;

use std::{collections::HashMap, sync::LazyLock, time::Duration};

use http::Method;
use percent_encoding::percent_decode_str;
use urr_http::RouteName;
use urr_kernel::EventId;

use crate::limit::{Blind, Class};

/// The part of the product that answers a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Accounts and sessions.
    Auth,
    /// Events, artists, halls.
    Catalog,
    /// Seats, reservations, memberships, transfers.
    Tickets,
    /// Payments.
    Payments,
    /// The waiting room in front of one event.
    Queue,
    /// The waiting room in front of everything.
    Vwr,
    /// Posts, comments, news.
    Community,
    /// Statistics.
    Stats,
    /// The pages.
    Site,
    /// This crate, and what operators ask.
    Gateway,
}

impl Service {
    /// Every service.
    pub const ALL: [Self; 10] = [
        Self::Auth,
        Self::Catalog,
        Self::Tickets,
        Self::Payments,
        Self::Queue,
        Self::Vwr,
        Self::Community,
        Self::Stats,
        Self::Site,
        Self::Gateway,
    ];

    /// The name in configuration, metrics and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Catalog => "catalog",
            Self::Tickets => "tickets",
            Self::Payments => "payments",
            Self::Queue => "queue",
            Self::Vwr => "vwr",
            Self::Community => "community",
            Self::Stats => "stats",
            Self::Site => "site",
            Self::Gateway => "gateway",
        }
    }

    /// What people are told when it is away.
    pub(crate) const fn is_away(self) -> &'static str {
        match self {
            Self::Auth => "Signing in is not possible right now. Please try again in a moment.",
            Self::Catalog => "Events cannot be shown right now. Please try again in a moment.",
            Self::Tickets => {
                "Seats and reservations are not available right now. Please try again in a moment."
            }
            Self::Payments => "Payments are not possible right now. Nothing was charged by this request.",
            Self::Queue | Self::Vwr => "The waiting room does not answer right now. You keep your place.",
            Self::Community => "Posts and news cannot be shown right now. Please try again in a moment.",
            Self::Stats => "Statistics are not available right now. Please try again in a moment.",
            Self::Site | Self::Gateway => {
                "This page cannot be shown right now. Please try again in a moment."
            }
        }
    }

    /// Whether it asks more of a token than whose it is: which session it belongs to, and until when it is good.
    pub(crate) const fn knows_sessions(self) -> bool {
        matches!(self, Self::Auth | Self::Site)
    }

    /// How long it may take to begin its answer: a payment waits for a bank, somebody in a queue asks again soon.
    pub const fn time_limit(self) -> Duration {
        match self {
            Self::Payments => Duration::from_mins(1),
            Self::Queue => Duration::from_secs(10),
            _ => Duration::from_secs(30),
        }
    }
}

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody.
    Public,
    /// Whoever is signed in.
    User,
    /// Operators.
    Admin,
}

/// What a route asks of somebody whose event has a line in front of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Nothing.
    No,
    /// A pass for the event in its path.
    Path,
    /// The same; whoever has none is sent to the page where one waits.
    Page,
    /// A pass for the event in the body of the request.
    Body,
}

/// Which methods a route answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Methods {
    /// Its own. GET also stands for HEAD.
    Own,
    /// Every one, as it answers GET. A proxy asks such a route about somebody's request to another site, with the method of that request.
    /// It changes nothing, so a preflight is nothing else here, nor is what a page of another site sends.
    Any,
}

/// One route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method. GET also stands for HEAD.
    pub method: &'static str,
    /// The path, with parameters in braces, as the service registers it.
    pub path: &'static str,
    /// Who answers it.
    pub service: Service,
    /// Who may ask.
    pub access: Access,
    /// What it is counted as; `None`: it is not.
    pub limit: Option<Class>,
    /// Whether guessing here is worth something: then it is refused while requests cannot be counted.
    pub critical: bool,
    /// Whether a pass of the waiting room is asked for.
    pub line: Line,
    /// Whether it needs a slot of the waiting room.
    pub needs_slot: bool,
    /// Whether its answer does not end by itself.
    pub streams: bool,
    /// Which methods it answers.
    pub methods: Methods,
}

impl Route {
    const fn new(method: &'static str, path: &'static str, service: Service, access: Access) -> Self {
        let critical = matches!(access, Access::Admin);
        let (limit, line) = (Some(Class::General), Line::No);
        let (needs_slot, streams, methods) = (false, false, Methods::Own);
        Self { method, path, service, access, limit, critical, line, needs_slot, streams, methods }
    }

    const fn counted_as(self, class: Class) -> Self {
        Self { limit: Some(class), ..self }
    }

    const fn uncounted(self) -> Self {
        Self { limit: None, ..self }
    }

    const fn with_slot(self) -> Self {
        Self { needs_slot: true, ..self }
    }

    const fn streaming(self) -> Self {
        Self { streams: true, ..self }
    }

    const fn any_method(self) -> Self {
        Self { methods: Methods::Any, ..self }
    }

    const fn critical(self) -> Self {
        Self { critical: true, ..self }
    }

    const fn after_line(self) -> Self {
        Self { line: Line::Path, ..self }
    }

    const fn page_after_line(self) -> Self {
        Self { line: Line::Page, ..self }
    }

    const fn body_after_line(self) -> Self {
        Self { line: Line::Body, ..self }
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
        self.access == Access::Public && self.limit == Some(Class::Auth)
    }

    /// What to do while requests cannot be counted.
    pub fn blind(&self) -> Blind {
        if self.critical { Blind::Refuse } else { Blind::CountHere }
    }

    /// Whether a request must be refused while it is not known which sessions ended.
    pub fn needs_fresh_sessions(&self) -> bool {
        self.access == Access::Admin || (self.service == Service::Auth && self.critical)
    }

    /// Whether a bad token ends the request. Elsewhere its bearer is nobody: on pages, which show themselves to anybody, and where
    /// a new token is to be had. What anybody may ask is refused only to a client that said the token by itself and can do better:
    /// a browser goes on sending the cookie of a session that was ended elsewhere.
    pub fn refuses_bad_tokens(&self, said: bool) -> bool {
        match self.access {
            Access::User | Access::Admin => true,
            Access::Public => said && self.service != Service::Auth && self.path.starts_with("/api/"),
        }
    }
}

/// What the table says about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// This route.
    Route(&'static Route),
    /// The path exists, but not with this method.
    OtherMethods(&'static [&'static Route]),
    /// There is no such path.
    Nothing,
}

struct Table {
    /// The places in `routes` of paths without parameters, which one look finds.
    fixed: HashMap<&'static str, usize>,
    /// The places of all, by the same matching that routers do.
    paths: matchit::Router<usize>,
    routes: Vec<&'static [&'static Route]>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table { fixed: HashMap::new(), paths: matchit::Router::new(), routes: Vec::new() };
    let mut paths: Vec<&'static str> = all().map(|route| route.path).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        let routes: Vec<_> = all().filter(|route| route.path == path).collect();
        if !path.contains('{') {
            table.fixed.insert(path, table.routes.len());
        }
        table.paths.insert(path, table.routes.len()).expect("a test inserts every path");
        // Once per process, for its whole life.
        table.routes.push(routes.leak());
    }
    table
});

/// Every route, service by service.
pub fn all() -> impl Iterator<Item = &'static Route> {
    routes::ALL.iter().copied().flatten()
}

/// The route a request takes. The path is compared as it is spelled, by the matching that the routers behind do: whatever is
/// spelled to look like another path is another path to both.
pub fn find(method: &Method, path: &str) -> Found {
    find_path(path).map_or(Found::Nothing, |place| place.find(method))
}

/// A path of the table, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathNumber(usize);

impl PathNumber {
    /// How many there are.
    pub(crate) fn count() -> usize {
        TABLE.routes.len()
    }

    /// The number of a path as it is written in the table.
    pub(crate) fn of(path: &str) -> Option<Self> {
        TABLE.routes.iter().position(|routes| routes.iter().any(|route| route.path == path)).map(Self)
    }

    pub(crate) const fn index(self) -> usize {
        self.0
    }

    /// The route that a request for this path takes.
    pub(crate) fn find(self, method: &Method) -> Found {
        let routes = TABLE.routes[self.0];
        let asked = if method == Method::HEAD { "GET" } else { method.as_str() };
        match routes.iter().find(|route| route.methods == Methods::Any || route.method == asked) {
            Some(route) => Found::Route(route),
            None => Found::OtherMethods(routes),
        }
    }
}

/// The path a request asks for.
pub(crate) fn find_path(path: &str) -> Option<PathNumber> {
    if !is_plain(path) {
        return None;
    }
    let number = TABLE.fixed.get(path).or_else(|| Some(TABLE.paths.at(path).ok()?.value))?;
    Some(PathNumber(*number))
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

/// The routes of a service that nobody classified, or that the table gives to another service.
pub fn unclassified(service: Service, names: &[RouteName]) -> Vec<&RouteName> {
    let is_listed = |name: &RouteName| {
        all().any(|route| {
            route.service == service && route.method == name.method.as_str() && route.path == name.path
        })
    };
    names.iter().filter(|name| !is_listed(name)).collect()
}

#[cfg(test)]
mod tests;
