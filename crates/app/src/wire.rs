//! The composition root: every part of the process, from the bottom up. Nothing below it sees the configuration.

use std::sync::Arc;

use axum::{Router, extract::Request};
use urr_bus::{Consumer, Source};
use urr_contracts::{auth, auth::Auth, catalog, catalog::Catalog, queue, tickets, vwr};
use urr_db::{Db, EngineKind};
use urr_gateway::{Front, revoked::RevocationSource, rooms::RoomSource};
use urr_http::{AccessLog, Edge, EdgeParts, Limits, Peer, Respond, WithOps};
use urr_jobs::{Lease, LeaseConfig, Reconciler, Tasks};
use urr_kernel::{Clock, Ids};
use urr_kv::Kv;
use urr_passes::{Key, access, challenge};
use urr_site::Dress;
use urr_telemetry::{Health, Metrics};
use urr_tickets::gate::{GATE_TTL, SeatGate};

use crate::{
    aws,
    config::{Choice as _, Config},
    failure::Failure,
    gateway::{self, AskAuth, AskVwr},
    lifecycle,
    remote::{self, RemoteRole},
    roles::Role,
    serve,
    stores::{self, Databases},
    waiting,
    watch::{Watch, Watched},
};

/// The domains that run here, and what they were built from.
pub(crate) struct Domains {
    /// Accounts, if they are here.
    pub auth: Option<Arc<urr_auth::Service>>,
    /// The catalog, if it runs here.
    pub catalog: Option<Arc<urr_catalog::Service>>,
    /// The waiting room in front of one event, if it is here.
    pub queue: Option<Arc<urr_queue::Service>>,
    /// Tickets, if they run here.
    pub tickets: Option<Arc<urr_tickets::Service>>,
    /// The pages, if they are here.
    pub site: Option<Arc<urr_site::Parts>>,
    /// Tier 1 of the waiting room, if it is here.
    pub vwr: Option<Arc<urr_vwr::Service>>,
    /// What the guards before them remember.
    pub memory: gateway::Memory,
    kv: Option<Kv>,
    pub(crate) remote: Vec<RemoteRole>,
}

impl Domains {
    /// Builds them in the order in which they call each other, last called first.
    pub(crate) fn build(
        config: &Config,
        databases: &Databases,
        clock: &Clock,
        ids: &Ids,
        tasks: &Tasks,
    ) -> Result<Self, Failure> {
        let kv = stores::redis(config, clock)?;
        let remote = RemoteRole::all(config, clock)?;
        let memory = gateway::Memory::new(config, kv.as_ref(), clock);
        let catalog = config.roles.has(Role::Catalog).then(|| {
            urr_catalog::build(urr_catalog::Parts {
                db: databases.of(Role::Catalog),
                clock: clock.clone(),
                ids: ids.clone(),
            })
        });

        let tickets = config.roles.has(Role::Tickets).then(|| {
            urr_tickets::build(urr_tickets::Parts {
                db: databases.of(Role::Tickets),
                gate: match &kv {
                    Some(kv) => SeatGate::redis(kv.clone(), GATE_TTL),
                    None => SeatGate::memory(clock.clone(), GATE_TTL),
                },
                catalog: here_or_there(catalog.as_ref(), &remote),
                clock: clock.clone(),
                ids: ids.clone(),
                settings: config.sale.clone(),
                tasks: tasks.clone(),
            })
        });

        let queue = waiting::second_tier(
            config,
            databases,
            kv.as_ref(),
            catalog.as_ref(),
            &remote,
            tasks,
            (clock, ids),
        )?;
        let auth = accounts(config, databases, &memory, clock, ids)?;
        let site =
            accounts_anywhere(auth.as_ref(), &remote).filter(|_| config.roles.has(Role::Site)).map(|auth| {
                urr_site::build(urr_site::Parts {
                    auth,
                    catalog: here_or_there(catalog.as_ref(), &remote),
                    clock: clock.clone(),
                    ids: ids.clone(),
                })
            });
        let vwr = waiting::first_tier(config, databases, kv.as_ref(), tasks, (clock, ids))?;
        Ok(Self { auth, catalog, queue, tickets, site, vwr, memory, kv, remote })
    }

    /// Who listens to them.
    pub(crate) fn consumers(&self) -> Vec<Arc<dyn Consumer>> {
        let catalog = self.catalog.iter().flat_map(urr_catalog::consumers);
        catalog.chain(self.queue.iter().flat_map(urr_queue::consumers)).collect()
    }

    /// What each domain keeps in order by itself, with the database that the work changes.
    fn reconcilers(&self, databases: &Databases) -> Vec<(Db, Arc<dyn Reconciler>)> {
        let auth = self.auth.iter().flat_map(urr_auth::reconcilers);
        let auth = auth.map(|reconciler| (databases.of(Role::Auth), reconciler));
        let queue = self.queue.iter().flat_map(urr_queue::reconcilers);
        let queue = queue.map(|reconciler| (databases.of(Role::Queue), reconciler));
        let tickets = self.tickets.iter().flat_map(urr_tickets::reconcilers);
        let tickets = tickets.map(|reconciler| (databases.of(Role::Tickets), reconciler));
        auth.chain(queue).chain(tickets).collect()
    }

    /// What other processes may ask.
    fn internal_routes(&self, clock: &Clock, ids: &Ids) -> Router {
        let mut routes = Router::new();
        if let Some(service) = &self.auth {
            routes = routes.merge(auth::internal_routes(service.clone(), clock.clone(), ids.clone()));
        }
        if let Some(service) = &self.catalog {
            routes = routes.merge(catalog::internal_routes(service.clone(), clock.clone(), ids.clone()));
        }
        if let Some(service) = &self.queue {
            routes = routes.merge(queue::internal_routes(service.clone(), clock.clone(), ids.clone()));
        }
        if let Some(service) = &self.tickets {
            routes = routes.merge(tickets::internal_routes(service.clone(), clock.clone(), ids.clone()));
        }
        if let Some(service) = &self.vwr {
            routes = routes.merge(vwr::internal_routes(service.clone(), clock.clone(), ids.clone()));
        }
        routes
    }

    /// The waiting room, here or there, if there is one.
    pub(crate) fn waiting_room(&self) -> Option<Arc<dyn queue::Queue>> {
        let here = self.queue.clone().map(|service| service as Arc<dyn queue::Queue>);
        let there = || self.remote.iter().find(|remote| remote.role == Role::Queue);
        here.or_else(|| Some(Arc::new(there()?.service())))
    }

    /// Whoever knows which sessions ended, if the guards are to know.
    pub(crate) fn sessions(&self, ground: &Ground) -> Option<Arc<dyn RevocationSource>> {
        let auth = accounts_anywhere(self.auth.as_ref(), &self.remote)?;
        Some(Arc::new(AskAuth { auth, clock: ground.clock.clone(), ids: ground.ids.clone() }))
    }

    /// Whoever knows which waiting rooms are open, if the guards are to know.
    pub(crate) fn rooms(&self, ground: &Ground) -> Option<Arc<dyn RoomSource>> {
        let here = self.vwr.clone().map(|service| service as Arc<dyn vwr::Vwr>);
        let there = || self.remote.iter().find(|remote| remote.role == Role::Vwr);
        let vwr = here.or_else(|| Some(Arc::new(there()?.service())))?;
        Some(Arc::new(AskVwr { vwr, clock: ground.clock.clone(), ids: ground.ids.clone() }))
    }
}

/// Accounts, if they are here. Without keys there are none: a command that serves nobody has no use for them.
fn accounts(
    config: &Config,
    databases: &Databases,
    memory: &gateway::Memory,
    clock: &Clock,
    ids: &Ids,
) -> Result<Option<Arc<urr_auth::Service>>, Failure> {
    let access_keys = access_keys(config);
    let Some(pii) = config.auth.pii().filter(|_| config.roles.has(Role::Auth)) else {
        return Ok(None);
    };
    if access_keys.is_empty() {
        return Ok(None);
    }
    let site_url = config.public_url.as_ref().map(|url| url.expose().to_owned());
    Ok(Some(urr_auth::build(urr_auth::Parts {
        db: databases.of(Role::Auth),
        clock: clock.clone(),
        ids: ids.clone(),
        access_keys,
        challenge_keys: config.secrets().map(|secret| challenge::key(&secret.0)).collect(),
        secrets: secrets(config),
        pii,
        social: stores::social(config, clock)?,
        mailer: stores::mailer(config)?,
        identity: stores::identity(config, clock)?,
        on_revoked: memory.on_revoked(),
        login_limit: memory.login_limit(),
        settings: urr_auth::Settings {
            site_url: site_url.unwrap_or_else(|| serve::url(config.listen)),
            ..config.auth.clone()
        },
    })))
}

/// What the keys of all tokens are made of, the one that signs first.
pub(crate) fn secrets(config: &Config) -> Vec<urr_passes::Secret> {
    config.secrets().map(|secret| secret.0.clone()).collect()
}

/// The keys of access tokens, the one that signs first.
pub(crate) fn access_keys(config: &Config) -> Vec<Key> {
    secrets(config).iter().map(access::key).collect()
}

/// The outboxes of the domains that run here.
pub(crate) fn sources(databases: &Databases) -> Vec<Source> {
    databases.iter().map(|(role, db)| Source { domain: role.name(), db: db.clone() }).collect()
}

/// The catalog, wherever it is. Callers cannot tell.
pub(crate) fn here_or_there(
    here: Option<&Arc<urr_catalog::Service>>,
    remote: &[RemoteRole],
) -> Arc<dyn Catalog> {
    if let Some(service) = here {
        return service.clone();
    }
    let there = remote.iter().find(|remote| remote.role == Role::Catalog);
    Arc::new(there.expect("the configuration names every role that is called").service())
}

/// Accounts, wherever they are, if this process is to ask them.
fn accounts_anywhere(here: Option<&Arc<urr_auth::Service>>, remote: &[RemoteRole]) -> Option<Arc<dyn Auth>> {
    let here = here.cloned().map(|service| service as Arc<dyn Auth>);
    let there = || remote.iter().find(|remote| remote.role == Role::Auth);
    here.or_else(|| Some(Arc::new(there()?.service())))
}

/// What a process needs besides its configuration and its databases.
#[derive(Clone)]
pub(crate) struct Ground {
    /// The time.
    pub clock: Clock,
    /// New ids.
    pub ids: Ids,
    /// Whether the process can do its work.
    pub health: Health,
    /// Its numbers.
    pub metrics: Metrics,
}

/// The public side: what browsers need around the edge around the API, and what operators ask.
pub(crate) fn public<R: Respond>(config: &Config, api: R, ground: &Ground) -> impl Respond + use<R> {
    let operators = config.door.operators();
    let is_operator = move |request: &Request| {
        let peer = request.extensions().get::<Peer>();
        peer.is_some_and(|Peer(peer)| operators.include(peer.ip(), request.headers()))
    };
    let api = WithOps::new(api, ground.health.clone(), ground.metrics.clone(), is_operator);
    let edge = Edge::around(api, edge_parts(config, ground));
    let pages = config.roles.has(Role::Site) || config.passes_on().any(|role| role == Role::Site);
    let dressed = if pages { Dress::errors_of(edge) } else { Dress::nothing_of(edge) };
    Front::before(dressed, config.door.origins.clone())
}

/// The internal listener: the edge around the token around the services. `None` if nobody is to come in.
pub(crate) fn internal(config: &Config, domains: &Domains, ground: &Ground) -> Option<impl Respond + use<>> {
    config.internal.listen?;
    let token = config.internal.token.as_ref().expect("a process with an internal listener has a token");
    let services =
        domains.internal_routes(&ground.clock, &ground.ids).merge(remote::roles_route(&config.roles));
    let services = services.merge(urr_http::ops_routes(ground.health.clone(), ground.metrics.clone()));
    let guarded = urr_rpc::internal_guard(urr_http::named(services), token.expose());
    Some(Edge::around(urr_http::live_route(guarded), edge_parts(config, ground)))
}

fn edge_parts(config: &Config, ground: &Ground) -> EdgeParts {
    EdgeParts {
        limits: limits(config),
        ids: ground.ids.clone(),
        clock: ground.clock.clone(),
        access_log: AccessLog { sample: config.log.access_sample },
        health: ground.health.clone(),
        hsts: config.http.hsts,
    }
}

/// The limits of both listeners.
pub(crate) fn limits(config: &Config) -> Limits {
    Limits { drain_time: lifecycle::drain_after(config.http.notice), ..config.http }
}

/// Starts everything that works without being asked: the bus, the reconcilers, the watch over parts we can do without.
pub(crate) fn start_background(
    config: &Config,
    domains: &Domains,
    databases: &Databases,
    ground: &Ground,
    tasks: &Tasks,
) -> Result<(), Failure> {
    let bus = stores::bus(config)?;
    bus.start(&sources(databases), &domains.consumers(), tasks, &ground.clock)
        .map_err(|error| Failure::new(error.to_string()))?;

    for (db, reconciler) in domains.reconcilers(databases) {
        let lease = lease(db, &*reconciler, &ground.ids);
        urr_jobs::run(tasks, reconciler, lease, ground.clock.clone());
    }

    if let Some(queue) = &domains.queue {
        // Not by lease: each room sees to it that nobody is let in twice, and the next process must not wait for a dead one.
        urr_jobs::run(tasks, urr_queue::admission(queue), None, ground.clock.clone());
        urr_jobs::run(tasks, urr_queue::sampling(queue), None, ground.clock.clone());
    }

    aws::read_notices(config, &ground.clock, tasks)?;
    let mut watched = Vec::new();
    watched.extend(domains.vwr.as_ref().map(|vwr| waiting::start(vwr, ground, tasks)));
    if let (Some(revoked), Some(source)) = (&domains.memory.revoked, domains.sessions(ground)) {
        tasks.spawn("gateway.revoked", Arc::clone(revoked).watch(source, tasks.token()));
        let without = "nobody signs in and nobody operates";
        watched.push(Watched::new("sessions", without, revoked.fresh()));
    }
    if let (Some(rooms), Some(source)) = (&domains.memory.rooms, domains.rooms(ground)) {
        tasks.spawn("gateway.rooms", Arc::clone(rooms).watch(source, tasks.token()));
    }
    watched.extend(domains.kv.iter().flat_map(Watched::redis));
    if let Some(check) = bus.health() {
        watched.push(Watched::new("kafka", "events wait in the outbox", check));
    }
    if !watched.is_empty() {
        urr_jobs::run(tasks, Arc::new(Watch(watched)), None, ground.clock.clone());
    }
    Ok(())
}

/// Several processes share a server, and one of them does the work; a file has one process anyway.
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
    fn requests_are_logged_as_often_as_the_edge_was_measured_with() {
        assert_eq!(of_env(&[]).unwrap().log.access_sample, AccessLog::default().sample);
    }
}
