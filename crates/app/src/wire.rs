//! The composition root: creates every part of the process from the configuration.

use std::sync::Arc;

use axum::{Router, extract::Request};
use urr_bus::{Consumer, Source};
use urr_db::{Db, EngineKind};
use urr_gateway::{Front, revoked::RevocationSource, rooms::RoomSource};
use urr_http::{AccessLog, Edge, EdgeParts, Limits, Peer as HttpPeer, Respond, Routes, WithOps};
use urr_jobs::{Lease, LeaseConfig, Reconciler, Tasks};
use urr_kernel::{Clock, Ids};
use urr_kv::Kv;
use urr_passes::{Key, access};
use urr_rpc::Peer;
use urr_site::ErrorPages;
use urr_telemetry::{Health, Metrics};

use crate::{
    aws,
    config::Config,
    domains::{Build, Part, Services, site},
    failure::Failure,
    gateway::{self, AskAuth, AskVwr},
    lifecycle,
    remote::{self, RemoteRole},
    roles::{Role, Roles},
    stores::{self, Databases},
    watch::{Watch, Watched},
};

/// The roles of this process and what they share.
pub(crate) struct Domains {
    /// The parts of each role.
    pub parts: Vec<(Role, Part)>,
    /// Their services.
    pub services: Services,
    /// State of the guards.
    pub guard_state: gateway::GuardState,
    /// Roles in other processes.
    pub remote: Vec<RemoteRole>,
    kv: Option<Kv>,
}

impl Domains {
    /// Builds the configured roles, each after those it calls.
    pub(crate) fn build(
        config: &Config,
        databases: &Databases,
        clock: &Clock,
        ids: &Ids,
        tasks: &Tasks,
    ) -> Result<Self, Failure> {
        let kv = stores::redis(config, clock)?;
        let remote = RemoteRole::all(config, clock)?;
        let guard_state = gateway::GuardState::new(config, kv.as_ref(), clock);
        let services = Services::default();
        let (kv_here, remote_here) = (kv.as_ref(), &remote[..]);
        let mut build = Build {
            config,
            databases,
            clock,
            ids,
            tasks,
            kv: kv_here,
            guard_state: &guard_state,
            remote: remote_here,
            services,
        };
        let mut parts = Vec::new();
        for role in calls_first(&config.roles) {
            parts.extend((role.build)(&mut build)?.map(|part| (role, part)));
        }
        let services = build.services;
        Ok(Self { parts, services, guard_state, remote, kv })
    }

    /// The reconcilers that run in one process at a time, each with the database it changes.
    fn reconcilers(&self, databases: &Databases) -> Vec<(Db, Arc<dyn Reconciler>)> {
        let of = |(role, part): &(Role, Part)| {
            let db = databases.of(*role);
            part.reconcilers.iter().map(|reconciler| (db.clone(), Arc::clone(reconciler))).collect::<Vec<_>>()
        };
        self.parts.iter().filter(|(role, _)| role.tables.is_some()).flat_map(of).collect()
    }

    /// The consumers of messages.
    pub(crate) fn consumers(&self) -> Vec<Arc<dyn Consumer>> {
        self.parts.iter().flat_map(|(_, part)| part.consumers.iter().cloned()).collect()
    }

    /// The public routes of a role, if it runs here.
    pub(crate) fn routes(&self, role: Role) -> Option<Routes> {
        self.parts.iter().find(|(known, _)| *known == role)?.1.routes.clone()
    }

    /// The routes for other processes.
    fn internal_routes(&self) -> Router {
        self.parts.iter().fold(Router::new(), |routes, (_, part)| routes.merge(part.internal.clone()))
    }

    /// A service in this process or another; `None` if this process does not call it.
    pub(crate) fn peer<P: Peer + ?Sized>(&self) -> Option<Arc<P>> {
        self.services.peer(&self.remote)
    }

    /// The source of revoked sessions, if the guards check them.
    pub(crate) fn sessions(&self, runtime: &Runtime) -> Option<Arc<dyn RevocationSource>> {
        let auth = self.peer()?;
        Some(Arc::new(AskAuth { auth, clock: runtime.clock.clone(), ids: runtime.ids.clone() }))
    }

    /// The source of open waiting rooms, if the guards check them.
    pub(crate) fn rooms(&self, runtime: &Runtime) -> Option<Arc<dyn RoomSource>> {
        let vwr = self.peer()?;
        Some(Arc::new(AskVwr { vwr, clock: runtime.clock.clone(), ids: runtime.ids.clone() }))
    }
}

/// Sorts roles so that each comes after those it calls. The calls form a DAG, so every pass finds
/// some.
fn calls_first(roles: &Roles) -> Vec<Role> {
    let mut left: Vec<Role> = roles.iter().collect();
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |role: &Role| role.calls.iter().any(|called| left.contains(called));
        let (waiting, ready): (Vec<Role>, Vec<Role>) = left.iter().partition(|role| waits(role));
        assert!(!ready.is_empty(), "roles call each other in a cycle: {waiting:?}");
        ordered.extend(ready);
        left = waiting;
    }
    ordered
}

/// The secrets from which token keys are derived. The first one signs.
pub(crate) fn secrets(config: &Config) -> Vec<urr_passes::Secret> {
    config.secrets().map(|secret| secret.0.clone()).collect()
}

/// The keys of access tokens. The first one signs.
pub(crate) fn access_keys(config: &Config) -> Vec<Key> {
    secrets(config).iter().map(access::key).collect()
}

/// The outboxes of the domains that run here.
pub(crate) fn sources(databases: &Databases) -> Vec<Source> {
    databases.iter().map(|(role, db)| Source { domain: role.name, db: db.clone() }).collect()
}

/// Clock, ids, health and metrics of a process.
#[derive(Clone)]
pub(crate) struct Runtime {
    /// The clock.
    pub clock: Clock,
    /// Source of new ids.
    pub ids: Ids,
    /// Readiness and liveness.
    pub health: Health,
    /// The metrics registry.
    pub metrics: Metrics,
}

/// The public listener, from the outside in: cross-origin rules, error pages, the edge, operator
/// endpoints, the API.
pub(crate) fn public<R: Respond>(config: &Config, api: R, runtime: &Runtime) -> impl Respond + use<R> {
    let operators = config.door.operators();
    let is_operator = move |request: &Request| {
        let peer = request.extensions().get::<HttpPeer>();
        peer.is_some_and(|HttpPeer(peer)| operators.include(peer.ip(), request.headers()))
    };
    let api = WithOps::new(api, runtime.health.clone(), runtime.metrics.clone(), is_operator);
    let edge = Edge::around(api, edge_parts(config, runtime));
    let pages = config.roles.has(&site::ROLE) || config.passes_on().any(|role| role == Role::of(&site::ROLE));
    let with_pages = if pages { ErrorPages::enabled(edge) } else { ErrorPages::disabled(edge) };
    Front::before(with_pages, config.door.origins.clone())
}

/// The internal listener, from the outside in: the edge, the token check, the services. `None` if
/// it is not configured.
pub(crate) fn internal(
    config: &Config,
    domains: &Domains,
    runtime: &Runtime,
) -> Option<impl Respond + use<>> {
    config.internal.listen?;
    let token = config.internal.token.as_ref().expect("a process with an internal listener has a token");
    let services = domains.internal_routes().merge(remote::roles_route(&config.roles));
    let services = services.merge(urr_http::ops_routes(runtime.health.clone(), runtime.metrics.clone()));
    let guarded = urr_rpc::internal_guard(urr_http::named(services), token.expose());
    Some(Edge::around(urr_http::live_route(guarded), edge_parts(config, runtime)))
}

fn edge_parts(config: &Config, runtime: &Runtime) -> EdgeParts {
    EdgeParts {
        limits: limits(config),
        ids: runtime.ids.clone(),
        clock: runtime.clock.clone(),
        access_log: AccessLog { sample: config.log.access_sample },
        health: runtime.health.clone(),
        hsts: config.http.hsts,
    }
}

/// The limits of both listeners.
pub(crate) fn limits(config: &Config) -> Limits {
    Limits { drain_time: lifecycle::drain_after(config.http.notice), ..config.http }
}

/// Starts the background work: the bus, the reconcilers, the watch over optional dependencies.
pub(crate) fn start_background(
    config: &Config,
    domains: &Domains,
    databases: &Databases,
    runtime: &Runtime,
    tasks: &Tasks,
) -> Result<(), Failure> {
    let bus = stores::bus(config)?;
    bus.start(&sources(databases), &domains.consumers(), tasks, &runtime.clock)
        .map_err(|error| Failure::new(error.to_string()))?;

    for (db, reconciler) in domains.reconcilers(databases) {
        let lease = lease(db, &*reconciler, &runtime.ids);
        urr_jobs::run(tasks, reconciler, lease, runtime.clock.clone());
    }

    for (_, part) in &domains.parts {
        for reconciler in &part.everywhere {
            urr_jobs::run(tasks, Arc::clone(reconciler), None, runtime.clock.clone());
        }
        if let Some(start) = part.on_start {
            start(&domains.services, tasks);
        }
    }

    aws::read_notices(config, &runtime.clock, tasks)?;
    let mut watched: Vec<_> =
        domains.parts.iter().flat_map(|(_, part)| part.watched.iter().cloned()).collect();
    if let (Some(revoked), Some(source)) = (&domains.guard_state.revoked, domains.sessions(runtime)) {
        tasks.spawn("gateway.revoked", Arc::clone(revoked).watch(source, tasks.token()));
        let without = "sign-in and admin requests get 503";
        watched.push(Watched::new("sessions", without, revoked.fresh()));
    }
    if let (Some(rooms), Some(source)) = (&domains.guard_state.rooms, domains.rooms(runtime)) {
        tasks.spawn("gateway.rooms", Arc::clone(rooms).watch(source, tasks.token()));
    }
    watched.extend(domains.kv.iter().flat_map(Watched::redis));
    if let Some(check) = bus.health() {
        watched.push(Watched::new("kafka", "messages wait in the outbox", check));
    }
    if !watched.is_empty() {
        urr_jobs::run(tasks, Arc::new(Watch(watched)), None, runtime.clock.clone());
    }
    Ok(())
}

/// The lease of a reconciler on PostgreSQL, which several processes share. A SQLite file has one
/// process.
fn lease(db: Db, reconciler: &dyn Reconciler, ids: &Ids) -> Option<Lease> {
    let name = reconciler.name();
    let config = LeaseConfig { db, name, owner: ids.next(), ttl: LeaseConfig::TTL };
    (config.db.engine() == EngineKind::Postgres).then(|| Lease::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::of_env;

    #[test]
    fn the_default_sample_of_the_access_log_is_that_of_the_edge() {
        assert_eq!(of_env(&[]).unwrap().log.access_sample, AccessLog::default().sample);
    }
}
