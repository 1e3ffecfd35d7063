//! Test fixture: a gateway with services behind it, and a client.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::Request, response::Response};
use http::HeaderMap;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use urr_gateway::{
    Front, Gateway, Gateways, Guards, Origins, Upstream,
    address::TrustedProxies,
    limit::{Limiter, RateLimits},
    revoked::Revoked,
    rooms::Rooms,
    slots::Slots,
    tier2_tokens::Tier2Tokens,
};
use urr_http::{
    AccessLog, Caller, Client, ClientAddress, ClientLimits, Edge, EdgeParts, Json, Limits, Peer, RoleRoutes,
    RouteName, Routes, Server, router,
};
use urr_kernel::{Clock, Ids, Role, UserId};
use urr_passes::{
    Secret,
    access::{self, Access, LIFETIME, Signer, Verifier},
    entry, hop, queue_ticket,
    vwr_pass::{self, Passes},
};
use urr_telemetry::Health;
use uuid::Uuid;

use crate::sample;

pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Options of a test.
pub(crate) struct Options {
    pub(crate) clock: Clock,
    pub(crate) rates: RateLimits,
    pub(crate) limits: Limits,
    pub(crate) limiter: Option<Limiter>,
    pub(crate) revoked: Option<Arc<Revoked>>,
    pub(crate) rooms: Option<Arc<Rooms>>,
    pub(crate) proxies: TrustedProxies,
    pub(crate) origins: Vec<&'static str>,
    /// Remote roles, with the addresses of their replicas.
    pub(crate) remote: Vec<(&'static RoleRoutes, Vec<SocketAddr>)>,
    /// Request and response types of their routes.
    pub(crate) described: fn(&RoleRoutes) -> Vec<RouteName>,
    /// Time limit of remote roles.
    pub(crate) time_limit: Option<Duration>,
    /// Guard of buying.
    pub(crate) slots: Option<Arc<Slots>>,
    /// Roles that do not run anywhere.
    pub(crate) missing: Vec<&'static RoleRoutes>,
    /// Local roles that replace the echo.
    pub(crate) local: Vec<(&'static RoleRoutes, Routes)>,
    /// Health of the process; draining ends streams.
    pub(crate) health: Health,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: urr_testkit::fixed_clock(),
            rates: RateLimits::default(),
            limits: Limits::default(),
            limiter: None,
            revoked: None,
            rooms: None,
            proxies: TrustedProxies::default(),
            origins: Vec::new(),
            remote: Vec::new(),
            described: sample::names,
            time_limit: None,
            slots: None,
            missing: Vec::new(),
            local: Vec::new(),
            health: Health::new(),
        }
    }
}

pub(crate) struct World {
    pub(crate) app: Router,
    pub(crate) clock: Clock,
    pub(crate) gateways: Arc<Gateways>,
    secret: Secret,
    limits: Limits,
}

/// Returns what reached the handler.
async fn echo(
    caller: Caller,
    ClientAddress(client): ClientAddress,
    headers: HeaderMap,
    request: Request,
) -> Json<Value> {
    let mut names: Vec<_> = headers.keys().map(ToString::to_string).collect();
    names.sort();
    let path = request.uri().path().to_owned();
    let method = request.method().to_string();
    let body =
        request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    Json(json!({
        "user": caller.0.user(),
        "admin": caller.0.is_admin(),
        "client": client.to_string(),
        "headers": names,
        "method": method,
        "path": path,
        "body": String::from_utf8_lossy(&body),
    }))
}

/// The echo handler on every route of a sample role.
pub(crate) fn echoes(role: &'static RoleRoutes) -> Routes {
    let names = sample::names(role).into_iter();
    names.fold(Routes::new(), |routes, RouteName { method, any_method, path, policy, .. }| {
        match method.as_str() {
            _ if any_method => routes.any(path, policy, echo),
            "GET" => routes.get(path, policy, echo),
            "POST" => routes.post(path, policy, echo),
            "PUT" => routes.put(path, policy, echo),
            "PATCH" => routes.patch(path, policy, echo),
            "DELETE" => routes.delete(path, policy, echo),
            method => panic!("unsupported method {method}"),
        }
    })
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Self {
        let clock = options.clock;
        let secret = Secret::new("correct horse battery staple, twice").unwrap();
        let origins = Origins::new(options.origins).unwrap();
        let gateways = Arc::new(Gateways::default());
        let guards = Guards {
            access: Verifier::new([access::key(&secret)]),
            clock: clock.clone(),
            hops: hop::Verifier::new([hop::key(&secret)]),
            gateways: Arc::clone(&gateways),
            limiter: Some(Arc::new(
                options.limiter.unwrap_or_else(|| Limiter::memory(options.rates, clock.clone())),
            )),
            revoked: options.revoked,
            rooms: options.rooms,
            proxies: options.proxies,
            origins: origins.clone(),
            slots: options.slots,
            health: options.health.clone(),
        };
        let mut gateway = Gateway::new(guards);
        let client = Client::new(ClientLimits::default(), clock.clone());
        let mut elsewhere = options.missing;
        for role in &elsewhere {
            gateway = gateway.absent(role, sample::names(role));
        }
        for (service, replicas) in options.remote {
            let urls: Vec<_> = replicas.iter().map(|address| format!("http://{address}")).collect();
            let (urls, signer) = (urls.iter().map(String::as_str), hop::Signer::new(hop::key(&secret)));
            let upstream = Upstream::new(service, urls, &client, clock.clone(), signer).unwrap();
            let time_limit = options.time_limit.unwrap_or(service.time_limit);
            gateway = gateway.remote(upstream.within(time_limit), &(options.described)(service));
            elsewhere.push(service);
        }
        for (service, routes) in options.local {
            gateway = gateway.local(service, routes);
            elsewhere.push(service);
        }
        for service in sample::ROLES.into_iter().filter(|role| !elsewhere.contains(role)) {
            gateway = gateway.local(service, echoes(service));
        }
        let edge_parts = EdgeParts {
            limits: options.limits,
            ids: Ids::seeded(clock.clone(), 7),
            clock: clock.clone(),
            access_log: AccessLog { sample: 0 },
            health: options.health,
            hsts: false,
        };
        let app = router(Front::before(Edge::around(gateway.finish(), edge_parts), origins));
        Self { app, clock, gateways, secret, limits: options.limits }
    }

    pub(crate) fn token(&self, role: Role) -> String {
        self.token_of(user(), role, session())
    }

    pub(crate) fn token_of(&self, user: UserId, role: Role, session: Uuid) -> String {
        let access = Access { user, role, email: None, session };
        Signer::new(access::key(&self.secret), LIFETIME).sign(&access, Uuid::from_u128(3), self.clock.now())
    }

    /// Verifier and signer of Tier 1 passes.
    pub(crate) fn passes() -> Passes {
        Passes::new([vwr_pass::key(&Secret::new("correct horse battery staple, twice").unwrap())])
    }

    /// Verifier of Tier 2 tokens.
    pub(crate) fn tier2_tokens() -> Tier2Tokens {
        Tier2Tokens::new(Self::entries(), Self::tickets())
    }

    /// Verifier and signer of entry tokens.
    pub(crate) fn entries() -> entry::Entries {
        entry::Entries::new([entry::key(&Secret::new("correct horse battery staple, twice").unwrap())])
    }

    /// Verifier and signer of queue tickets.
    pub(crate) fn tickets() -> queue_ticket::Tickets {
        let secret = Secret::new("correct horse battery staple, twice").unwrap();
        queue_ticket::Tickets::new([queue_ticket::key(&secret)])
    }

    /// The hop header of another gateway of this installation, for a client.
    pub(crate) fn mark(&self, client: &str) -> String {
        hop::Signer::new(hop::key(&self.secret)).sign(client.parse().unwrap(), self.clock.now())
    }

    pub(crate) fn bearer(&self, role: Role) -> String {
        format!("Bearer {}", self.token(role))
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
        self.ask("GET", path, headers).await
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
        let (status, _, body) = self.send(request(method, path, headers)).await;
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    pub(crate) async fn send(&self, request: Request) -> (u16, HeaderMap, Vec<u8>) {
        let response: Response = self.app.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (parts.status.as_u16(), parts.headers, body.to_vec())
    }

    /// Serves it on its own port, until the guard is dropped.
    pub(crate) async fn serve(&self) -> Served {
        Served::start(self.app.clone(), self.limits).await
    }
}

pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Request {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert(Peer("198.51.100.1:4711".parse().unwrap()));
    request
}

pub(crate) fn user() -> UserId {
    UserId::from_uuid(Uuid::from_u128(1))
}

pub(crate) fn session() -> Uuid {
    Uuid::from_u128(2)
}

/// A router served on a port.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    _task: JoinSet<()>,
}

impl Served {
    pub(crate) async fn start(router: Router, limits: Limits) -> Self {
        let server = Server::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (server.local_addr().unwrap(), CancellationToken::new());
        let mut task = JoinSet::new();
        let stopped = stop.clone();
        task.spawn(async move { server.serve(router, limits, stopped).await.unwrap() });
        Self { address, stop, _task: task }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
