//! The front door itself: what happens to a request between the edge and the service that answers it.

use std::{collections::HashSet, net::IpAddr, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::Value;
use urr_http::{AtPath, Caller, ClientAddress, Entrance, Problem, Respond, RouteName, Routes};
use urr_kernel::{Actor, Clock};
use urr_passes::{
    Refusal,
    access::{Verified, Verifier},
    hop,
};
use urr_telemetry::Health;

use crate::{
    address::TrustedProxies,
    codes,
    inbound::{self, Rarely},
    limit::{Blind, Class, Limiter, Verdict, Who},
    openapi::{self, Document},
    origin::{self, Origins},
    preflight,
    proxy::Upstream,
    revoked::{Revoked, STALE},
    rooms::Rooms,
    slots::Slots,
    streams::Watch,
    table::{self, Access, Found, Methods, PathNumber, Route, Service},
    token, version,
};

/// More than a service elsewhere may take, so that the edge does not give up before the gateway has said why.
const EDGE_PATIENCE: Duration = Duration::from_secs(2);

/// What the guards need.
#[derive(Clone, Debug)]
pub struct Guards {
    /// Reads access tokens.
    pub access: Verifier,
    /// Tells whether they have expired.
    pub clock: Clock,
    /// Knows requests that another gateway of ours has passed on.
    pub hops: hop::Verifier,
    /// Counts requests. `None`: nobody is counted.
    pub limiter: Option<Arc<Limiter>>,
    /// Sessions that ended. `None` where nobody can end one.
    pub revoked: Option<Arc<Revoked>>,
    /// Events in front of which people wait. `None` where nobody can say.
    pub rooms: Option<Arc<Rooms>>,
    /// Who is believed about where a request comes from.
    pub proxies: TrustedProxies,
    /// Other origins whose pages may change things here.
    pub origins: Origins,
    /// Knows who may buy. `None`: whoever is signed in.
    pub slots: Option<Arc<Slots>>,
    /// Once it drains, answers that would not end do.
    pub health: Health,
}

/// The front door of a process, with the services behind it.
#[derive(Debug)]
pub struct Gateway {
    guards: Guards,
    places: Vec<Place>,
    /// What answers here at each path of the table. A request is given to the path whose guards it has passed, and each of these
    /// answers at no other: a guard and the route it guards cannot be two.
    here: Vec<AtPath>,
    /// The routes that are served here, for the API document.
    names: Vec<RouteName>,
    /// What is known of routes that are served elsewhere.
    described: Vec<RouteName>,
    /// When somebody was last told that clocks differ.
    warned: Rarely,
}

/// Where a service is.
#[derive(Debug)]
enum Place {
    Nowhere,
    Here,
    There(Box<Upstream>),
}

impl Gateway {
    /// A door with nothing behind it.
    pub fn new(guards: Guards) -> Self {
        let places = Service::ALL.iter().map(|_| Place::Nowhere).collect();
        Self {
            guards,
            places,
            here: vec![AtPath::default(); PathNumber::count()],
            names: Vec::new(),
            described: Vec::new(),
            warned: Rarely::default(),
        }
    }

    /// Puts a service behind the door that runs in this process.
    ///
    /// # Panics
    /// When it has a route that is not in the [`table`]: nobody has said who may use it.
    pub fn local(mut self, service: Service, routes: Routes) -> Self {
        let unclassified = table::unclassified(service, routes.names());
        assert!(
            unclassified.is_empty(),
            "routes of {} that are not in crates/gateway/src/table/routes.rs: {unclassified:?}",
            service.name(),
        );
        self.names.extend_from_slice(routes.names());
        for (path, answers) in routes.by_path() {
            let number = PathNumber::of(path).expect("every route of it is in the table");
            self.here[number.index()].merge(answers);
        }
        self.places[service as usize] = Place::Here;
        self
    }

    /// Puts a service behind the door that runs elsewhere. `described` is what its routes take and answer, for the API document:
    /// the same binary runs there. Of a service that nobody describes, the document lists what the [`table`] knows.
    ///
    /// # Panics
    /// When a route is described that is not in the [`table`].
    pub fn remote(mut self, upstream: Upstream, described: &[RouteName]) -> Self {
        let service = upstream.service();
        let unclassified = table::unclassified(service, described);
        assert!(
            unclassified.is_empty(),
            "routes of {} that are not in the table: {unclassified:?}",
            service.name()
        );
        // The way there can fail, too.
        let passed_on = |name: &RouteName| RouteName {
            about: name.about.clone().refuses([StatusCode::BAD_GATEWAY, StatusCode::LOOP_DETECTED]),
            ..name.clone()
        };
        self.described.extend(described.iter().map(passed_on));
        self.places[service as usize] = Place::There(Box::new(upstream));
        self
    }

    /// The door as it is put behind an edge. It also answers the API document of everything behind it.
    pub fn finish(self) -> impl Respond {
        let own = openapi::routes(|own| self.document(own.names()));
        self.local(Service::Gateway, own)
    }

    /// What the table and the services say about every route that leads somewhere.
    fn document(&self, own: &[RouteName]) -> Value {
        let mut document = Document::new();
        let probes = urr_http::ops_names();
        let named = own.iter().chain(&probes).chain(&self.names).chain(&self.described);
        let described: HashSet<_> = named.map(|name| document.add_named(name)).collect();
        let is_unknown = |route: &&Route| {
            matches!(self.places[route.service as usize], Place::There(_))
                && !described.contains(&route.service)
        };
        table::all().filter(is_unknown).for_each(|route| document.add_remote(route));
        document.finish()
    }

    async fn answer(&self, route: &'static Route, path: PathNumber, mut request: Request) -> Response {
        match &self.places[route.service as usize] {
            Place::Here => {
                urr_http::allow_time(request.extensions(), route.service.time_limit());
                if route.needs_slot {
                    // In a box, so that requests that buy nothing are not moved with room for the question.
                    let actor = request.extensions().get().copied().unwrap_or(Actor::Anonymous);
                    match Box::pin(self.guards.entrance(request.headers(), actor)).await {
                        Ok(entrance) => drop(request.extensions_mut().insert(entrance)),
                        Err(problem) => return problem.into_response(),
                    }
                }
                // Of a path that is in the table alone, nothing answers, and it is not found.
                self.here[path.index()].respond(request).await
            }
            Place::There(upstream) => {
                urr_http::allow_time(request.extensions(), upstream.time_limit() + EDGE_PATIENCE);
                // In a box, so that requests that stay here are not moved with room for a journey.
                Box::pin(upstream.pass(request)).await
            }
            Place::Nowhere => Problem::of(codes::NO_SUCH_SERVICE, "This installation does not offer that.")
                .field("service", route.service.name())
                .into_response(),
        }
    }
}

impl Respond for Gateway {
    async fn respond(&self, mut request: Request) -> Response {
        version::remove(request.uri_mut());
        let path = table::find_path(request.uri().path());
        let found = path.map_or(Found::Nothing, |path| path.find(request.method()));
        let route = if let Found::Route(route) = found { Some(route) } else { None };
        let is_about_others = route.is_some_and(|route| route.methods == Methods::Any);
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
        let client = hop.unwrap_or_else(|| self.guards.proxies.client(peer, request.headers()));
        if client != peer {
            request.extensions_mut().insert(ClientAddress(client));
        }

        if let Some(route) = route {
            urr_http::name_route(request.extensions(), route.path);
        }
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        // What a gateway of ours has passed on, it has asked: it alone has to know which sites may.
        let asked = |origins| origin::check(method, uri, headers, origins);
        if hop.is_none()
            && !is_about_others
            && let Err(problem) = asked(&self.guards.origins)
        {
            return problem.into_response();
        }
        let identity = self.guards.identity(headers);
        // What a gateway of ours has passed on, it has counted.
        let counted = if hop.is_some() { None } else { Some(client) };
        let verified = match self.guards.admit(route, identity, counted).await {
            Ok(verified) => verified,
            Err(problem) => return problem.into_response(),
        };
        request.extensions_mut().insert(actor(verified.as_ref()));
        let turn = match (route, &self.guards.rooms) {
            (Some(route), Some(rooms)) => match rooms.wait_in_line(route, &mut request) {
                // The gateway in front of us renews the pass.
                Ok(turn) => turn.filter(|_| hop.is_none()),
                Err(refused) => return refused,
            },
            _ => None,
        };
        match (found, path) {
            (Found::Route(route), Some(path)) => {
                // In a box, so that requests whose answers end are not moved with room for it.
                let watch = route.streams.then(|| Box::new(Watch::new(&self.guards, verified.clone())));
                if let Some(verified) = verified.filter(|_| route.service.knows_sessions()) {
                    request.extensions_mut().insert(verified);
                }
                let answer = self.answer(route, path, request).await;
                let answer = if let Some(turn) = turn { turn.renewed(answer) } else { answer };
                if let Some(watch) = watch { watch.over(answer) } else { answer }
            }
            (Found::OtherMethods(routes), _) => other_methods(routes),
            // The edge turns the bare status into the body every error has.
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }
}

impl Guards {
    /// The token of whoever asks, if the request may go on. `None`: nobody has signed in. `client`: whom to count it for, if it was
    /// not. Nothing is said about a route before the request was counted.
    async fn admit(
        &self,
        route: Option<&'static Route>,
        identity: Result<Option<Verified>, Refused>,
        client: Option<IpAddr>,
    ) -> Result<Option<Verified>, Problem> {
        let (verified, refused) = match identity {
            Ok(verified) => (verified, None),
            Err(refused) => (None, Some(refused)),
        };
        let actor = actor(verified.as_ref());
        let (class, blind) =
            route.map_or((Some(Class::General), Blind::CountHere), |route| (route.limit, route.blind()));
        if let (Some(class), Some(client)) = (class, client) {
            let user = actor.user().filter(|_| !route.is_some_and(Route::counts_addresses));
            let who = user.map_or_else(|| Who::address(client), Who::User);
            self.count(class, who, blind).await?;
        }
        let Some(route) = route else { return Ok(verified) };
        match refused {
            Some(Refused { why, said }) if route.refuses_bad_tokens(said) => return Err(why.problem()),
            _ => {}
        }
        self.check_freshness(route)?;
        match route.access {
            Access::Public => {}
            Access::User => drop(Caller(actor).user()?),
            Access::Admin => drop(Caller(actor).admin()?),
        }
        Ok(verified)
    }

    fn identity(&self, headers: &HeaderMap) -> Result<Option<Verified>, Refused> {
        self.verified(headers).map_err(|why| Refused { why, said: token::is_said(headers) })
    }

    fn verified(&self, headers: &HeaderMap) -> Result<Option<Verified>, Why> {
        let Some(token) = token::find(headers).map_err(Why::Token)? else { return Ok(None) };
        let verified = self.access.verify(token, self.clock.now()).map_err(Why::Token)?;
        match &self.revoked {
            Some(revoked) if revoked.contains(verified.access.session) => Err(Why::Revoked),
            // Part of a list says nothing about a session that is not on it.
            Some(revoked) if !revoked.is_loaded() => Err(Why::Unknown),
            _ => Ok(Some(verified)),
        }
    }

    /// For which event the caller may buy. Asked where the service is: a gateway before it only passes the token on.
    async fn entrance(&self, headers: &HeaderMap, actor: Actor) -> Result<Entrance, Problem> {
        match &self.slots {
            Some(slots) => slots.entrance(headers, actor).await,
            None => Ok(Entrance::Open),
        }
    }

    async fn count(&self, class: Class, who: Who, blind: Blind) -> Result<(), Problem> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        match limiter.check(class, who, blind).await {
            Verdict::Pass => Ok(()),
            Verdict::Wait(wait) => {
                Err(Problem::of(codes::LIMIT_EXCEEDED, "Too many requests. Please wait a moment.")
                    .retry_after(wait)
                    .field("limit", class.name()))
            }
            Verdict::Unknown => {
                let sentence = "This is not possible for a moment. Please try again shortly.";
                Err(Problem::of(codes::LIMIT_UNAVAILABLE, sentence).retry_after(STALE))
            }
        }
    }

    /// Where an ended session could do the most harm, not knowing which ones ended means refusing all.
    fn check_freshness(&self, route: &Route) -> Result<(), Problem> {
        match &self.revoked {
            Some(revoked) if route.needs_fresh_sessions() && !revoked.is_fresh() => Err(sessions_unknown()),
            _ => Ok(()),
        }
    }
}

/// On whose behalf a request with this token runs.
fn actor(verified: Option<&Verified>) -> Actor {
    verified.map_or(Actor::Anonymous, |verified| verified.access.actor())
}

/// A token that is not accepted. `said`: the client sent it by itself, in `Authorization`; else a browser sent its cookie.
#[derive(Clone, Copy, Debug)]
struct Refused {
    why: Why,
    said: bool,
}

#[derive(Clone, Copy, Debug)]
enum Why {
    Token(Refusal),
    Revoked,
    /// Nobody has said yet which sessions ended.
    Unknown,
}

impl Why {
    fn problem(self) -> Problem {
        let (code, sentence) = match self {
            Self::Token(Refusal::Expired) => {
                (codes::TOKEN_EXPIRED, "The access token has expired. Please refresh it or sign in again.")
            }
            Self::Token(Refusal::Invalid) => {
                (codes::TOKEN_INVALID, "The access token is not valid. Please sign in again.")
            }
            Self::Revoked => (codes::TOKEN_REVOKED, "This session has ended. Please sign in again."),
            Self::Unknown => return sessions_unknown(),
        };
        Problem::of(code, sentence)
    }
}

fn sessions_unknown() -> Problem {
    Problem::of(codes::UNAVAILABLE, Service::Auth.is_away())
        .retry_after(STALE)
        .field("service", Service::Auth.name())
}

fn other_methods(routes: &[&'static Route]) -> Response {
    let mut methods: Vec<_> = routes.iter().map(|route| route.method).collect();
    if methods.contains(&"GET") {
        methods.push(Method::HEAD.as_str());
    }
    let allow = HeaderValue::from_str(&methods.join(",")).expect("methods are printable");
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, allow)], Body::empty()).into_response()
}
