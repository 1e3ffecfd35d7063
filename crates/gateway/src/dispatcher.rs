//! The gateway itself: the path of a request from the edge to the role that serves it.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::Value;
use urr_http::{
    AtPath, ClientAddress, EntryGuard, Line, PassCheck, Problem, Respond, RoleRoutes, RouteName, Routes,
};
use urr_kernel::Actor;

use crate::{
    codes,
    guards::{Guards, actor},
    inbound::{self, LogThrottle},
    openapi::{self, Document},
    origin, preflight,
    proxy::Upstream,
    streams::Watch,
    table::{Found, PathNumber, Route, Table},
    version,
};

/// Added to the limits of remote services, so that the edge does not time out before the gateway
/// has reported the cause.
const EDGE_PATIENCE: Duration = Duration::from_secs(2);

/// Collects the roles behind a public listener.
#[derive(Debug)]
pub struct Gateway {
    guards: Guards,
    behind: Vec<Behind>,
}

/// A role behind the gateway.
#[derive(Debug)]
struct Behind {
    role: &'static RoleRoutes,
    names: Vec<RouteName>,
    location: Location,
}

/// Where a role runs.
#[derive(Debug)]
enum Location {
    Absent,
    Local(Routes),
    Remote(Box<Upstream>),
}

/// The routes of the gateway itself: the API document, its page, and the probes.
static OWN: RoleRoutes =
    RoleRoutes::new("gateway", "This page is unavailable right now. Please try again in a moment.");

impl Gateway {
    /// Creates a gateway with no roles behind it.
    pub fn new(guards: Guards) -> Self {
        Self { guards, behind: Vec::new() }
    }

    /// Adds a role that runs in this process.
    pub fn local(mut self, role: &'static RoleRoutes, routes: Routes) -> Self {
        let names = routes.names().to_vec();
        self.behind.push(Behind { role, names, location: Location::Local(routes) });
        self
    }

    /// Adds a role that runs in another process. `names` are its routes, known because the same
    /// binary runs there.
    pub fn remote(mut self, upstream: Upstream, names: &[RouteName]) -> Self {
        // Forwarding can fail as well.
        let forwarded = |name: &RouteName| RouteName {
            about: name.about.clone().refuses([StatusCode::BAD_GATEWAY, StatusCode::LOOP_DETECTED]),
            ..name.clone()
        };
        let (role, names) = (upstream.role(), names.iter().map(forwarded).collect());
        self.behind.push(Behind { role, names, location: Location::Remote(Box::new(upstream)) });
        self
    }

    /// Adds a role that this installation does not run. Its routes answer
    /// `gateway.no_such_service`.
    pub fn absent(mut self, role: &'static RoleRoutes, names: Vec<RouteName>) -> Self {
        self.behind.push(Behind { role, names, location: Location::Absent });
        self
    }

    /// Every route behind the gateway, with its role.
    pub fn routes(&self) -> impl Iterator<Item = Route> {
        self.behind.iter().flat_map(|behind| behind.names.iter().map(|name| Route::new(behind.role, name)))
    }

    /// Builds the gateway. It also serves the API document of all roles behind it.
    ///
    /// # Panics
    /// When two roles declare the same route.
    pub fn finish(self) -> impl Respond {
        let own = openapi::routes(|own| self.document(own.names()));
        let mut dispatcher = Dispatcher {
            guards: self.guards,
            table: Table::default(),
            at: Vec::new(),
            warned: LogThrottle::default(),
        };
        // Probes are served before the gateway. They are listed here so that other methods get a
        // 405.
        dispatcher.add(&OWN, &urr_http::ops_names(), || Answers::Local(AtPath::default()));
        dispatcher.add_local(&OWN, own);
        for Behind { role, names, location } in self.behind {
            match location {
                Location::Local(routes) => dispatcher.add_local(role, routes),
                Location::Remote(upstream) => {
                    let upstream: Arc<Upstream> = upstream.into();
                    dispatcher.add(role, &names, || Answers::Remote(Arc::clone(&upstream)));
                }
                Location::Absent => dispatcher.add(role, &names, || Answers::Absent),
            }
        }
        dispatcher
    }

    fn document(&self, own: &[RouteName]) -> Value {
        let mut document = Document::new();
        own.iter().chain(&urr_http::ops_names()).for_each(|name| document.add(&OWN, name));
        for Behind { role, names, location } in &self.behind {
            if !matches!(location, Location::Absent) {
                for name in names {
                    document.add(role, name);
                }
            }
        }
        document.finish()
    }
}

/// The gateway at run time.
#[derive(Debug)]
struct Dispatcher {
    guards: Guards,
    table: Table,
    /// The handler of each path of the table. A request goes to the path whose guards it has
    /// passed, and each handler serves only that path, so guard and route cannot differ.
    at: Vec<Answers>,
    /// When a warning about differing clocks was last logged.
    warned: LogThrottle,
}

#[derive(Debug)]
enum Answers {
    Local(AtPath),
    Remote(Arc<Upstream>),
    Absent,
}

impl Dispatcher {
    fn add(&mut self, role: &'static RoleRoutes, names: &[RouteName], answers: impl Fn() -> Answers) {
        for name in names {
            let path = self.table.add(Route::new(role, name));
            if path.index() == self.at.len() {
                self.at.push(answers());
            }
        }
    }

    fn add_local(&mut self, role: &'static RoleRoutes, routes: Routes) {
        self.add(role, routes.names(), || Answers::Local(AtPath::default()));
        for (path, answers) in routes.by_path() {
            let number = self.table.number(path).expect("the path was added above");
            match &mut self.at[number.index()] {
                Answers::Local(known) => known.merge(answers),
                Answers::Remote(_) | Answers::Absent => {
                    panic!("{path} belongs to a role that does not run here")
                }
            }
        }
    }

    async fn answer(&self, route: &Route, path: PathNumber, mut request: Request) -> Response {
        match &self.at[path.index()] {
            Answers::Local(answers) => {
                urr_http::allow_time(request.extensions(), route.role.time_limit);
                if route.policy.line == Line::Body {
                    // Boxed to keep the future of other requests small.
                    let actor = request.extensions().get().copied().unwrap_or(Actor::Anonymous);
                    match Box::pin(self.guards.slot(request.headers(), actor)).await {
                        Ok(slot) => {
                            let pass = request.extensions_mut().remove::<PassCheck>();
                            request.extensions_mut().insert(EntryGuard::new(pass, slot));
                        }
                        Err(problem) => return problem.into_response(),
                    }
                }
                answers.respond(request).await
            }
            Answers::Remote(upstream) => {
                urr_http::allow_time(request.extensions(), upstream.time_limit() + EDGE_PATIENCE);
                // Boxed to keep the future of local requests small.
                Box::pin(upstream.pass(request)).await
            }
            Answers::Absent => Problem::of(codes::NO_SUCH_SERVICE, "This installation does not offer that.")
                .field("service", route.role.role)
                .into_response(),
        }
    }
}

impl Respond for Dispatcher {
    async fn respond(&self, mut request: Request) -> Response {
        version::remove(request.uri_mut());
        let path = self.table.find_path(request.uri().path());
        let found = path.map_or(Found::Nothing, |path| self.table.find(path, request.method()));
        let route = if let Found::Route(route) = found { Some(route) } else { None };
        let is_about_others = route.is_some_and(|route| route.any_method);
        if !is_about_others && let Some(permission) = preflight::answer(&request, &self.guards.origins) {
            return permission;
        }
        let Guards { hops, clock, .. } = &self.guards;
        let hop = match inbound::hop(request.headers(), hops, clock, &self.warned) {
            Ok(hop) => hop,
            Err(problem) => return problem.into_response(),
        };
        inbound::strip(request.headers_mut());
        if !inbound::has_good_host(request.headers()) {
            return Problem::of(codes::BAD_HOST, "A request names one host.").into_response();
        }
        let peer = ClientAddress::of(request.extensions()).0;
        if hop.is_some() {
            self.guards.gateways.note(peer);
        }
        let client = hop.unwrap_or_else(|| self.guards.proxies.client(peer, request.headers()));
        if client != peer {
            request.extensions_mut().insert(ClientAddress(client));
        }

        if let Some(route) = route {
            urr_http::name_route(request.extensions(), route.path);
        }
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        // If another gateway of this installation forwarded the request, it has checked the origin:
        // only that one must know the configured origins.
        let asked = |origins| origin::check(method, uri, headers, origins);
        if hop.is_none()
            && !is_about_others
            && let Err(problem) = asked(&self.guards.origins)
        {
            return problem.into_response();
        }
        let identity = self.guards.identity(headers);
        // A gateway that forwarded the request has already counted it.
        let counted = if hop.is_some() { None } else { Some(client) };
        let verified = match self.guards.admit(route, identity, counted).await {
            Ok(verified) => verified,
            Err(problem) => return problem.into_response(),
        };
        request.extensions_mut().insert(actor(verified.as_ref()));
        let pass_use = match (route, &self.guards.rooms) {
            (Some(route), Some(rooms)) => match rooms.wait_in_line(route, &mut request) {
                // A gateway in front of this one renews the pass.
                Ok(pass_use) => pass_use.filter(|_| hop.is_none()),
                Err(refused) => return refused,
            },
            _ => None,
        };
        match (found, path) {
            (Found::Route(route), Some(path)) => {
                // Boxed to keep the future of ordinary responses small.
                let watch =
                    route.policy.streams.then(|| Box::new(Watch::new(&self.guards, verified.clone())));
                if let Some(verified) = verified.filter(|_| route.role.reads_token) {
                    request.extensions_mut().insert(verified);
                }
                let answer = self.answer(route, path, request).await;
                let answer = if let Some(pass_use) = pass_use { pass_use.renewed(answer) } else { answer };
                if let Some(watch) = watch { watch.over(answer) } else { answer }
            }
            (Found::OtherMethods(routes), _) => other_methods(routes),
            // The edge turns the bare status into the standard error body.
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }
}

fn other_methods(routes: &[Route]) -> Response {
    let mut methods: Vec<_> = routes.iter().map(|route| route.method.as_str()).collect();
    if methods.contains(&"GET") {
        methods.push(Method::HEAD.as_str());
    }
    let allow = HeaderValue::from_str(&methods.join(",")).expect("method names are valid header values");
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, allow)], Body::empty()).into_response()
}
