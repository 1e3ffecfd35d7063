//! One declaration per role: its tables, routes, calls, remote settings and constructor. Wiring,
//! configuration and commands iterate over [`ALL`].

pub(crate) mod auth;
pub(crate) mod catalog;
pub(crate) mod gateway;
pub(crate) mod notices;
pub(crate) mod queue;
pub(crate) mod site;
pub(crate) mod tickets;
pub(crate) mod vwr;

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::Arc,
};

use axum::Router;
use urr_bus::Consumer;
use urr_db::{Db, Domain};
use urr_http::{RoleRoutes, RouteName, Routes};
use urr_jobs::{Reconciler, Tasks};
use urr_kernel::{Clock, Ids};
use urr_kv::Kv;
use urr_rpc::Peer;
use urr_telemetry::Check;

use crate::{
    config::Config, failure::Failure, gateway::GuardState, remote::RemoteRole, roles::Role,
    stores::Databases, watch::Watched,
};

/// Everything the app knows about a role.
pub(crate) struct Declaration {
    /// Its name in configuration, on the command line and in logs.
    pub name: &'static str,
    /// Its tables, if it has any.
    pub tables: Option<&'static Domain>,
    /// Its public routes, if it has any. They are known even if the role does not run here.
    pub routes: Option<fn() -> PublicRoutes>,
    /// Roles that it calls: each must run here or be remote. The calls form a DAG.
    pub calls: &'static [Role],
    /// How other processes call it; `None` if they do not.
    pub remote: Option<RemoteUse>,
    /// Roles whose messages it consumes. The in-process bus delivers within one process only.
    pub listens_to: &'static [Role],
    /// Whether `roles = all` includes it.
    pub in_all: bool,
    /// Builds it. `None` if keys are missing, in commands that do not serve.
    pub build: fn(&mut Build<'_>) -> Result<Option<Part>, Failure>,
}

impl Declaration {
    /// A role without tables, routes or calls, on which declarations are based.
    pub(crate) const fn new(
        name: &'static str,
        build: fn(&mut Build<'_>) -> Result<Option<Part>, Failure>,
    ) -> Self {
        Self {
            name,
            tables: None,
            routes: None,
            calls: &[],
            remote: None,
            listens_to: &[],
            in_all: true,
            build,
        }
    }
}

/// The routes of a role, and how the gateway treats them.
pub(crate) type PublicRoutes = (&'static RoleRoutes, Vec<RouteName>);

/// The roles, by name.
pub(crate) static ALL: &[Role] = &[
    Role::of(&auth::ROLE),
    Role::of(&catalog::ROLE),
    Role::of(&gateway::ROLE),
    Role::of(&notices::ROLE),
    Role::of(&queue::ROLE),
    Role::of(&site::ROLE),
    Role::of(&tickets::ROLE),
    Role::of(&vwr::ROLE),
];

/// How other processes call a role.
pub(crate) struct RemoteUse {
    /// What `remote.<role>` does, for docs/config.md.
    pub doc: &'static str,
    /// Whether the guards of a process with this configuration call it, if they ever do. They call
    /// several times a second: a late response is worth less than the next one, and the process
    /// stays ready without it.
    pub by_guards: Option<fn(&Config) -> bool>,
}

/// A role that runs in this process.
#[derive(Default)]
pub(crate) struct Part {
    /// Its public routes.
    pub routes: Option<Routes>,
    /// The routes for other processes.
    pub internal: Router,
    /// The consumers of messages.
    pub consumers: Vec<Arc<dyn Consumer>>,
    /// Periodic work of one process at a time, under a lease.
    pub reconcilers: Vec<Arc<dyn Reconciler>>,
    /// Periodic work of every process.
    pub everywhere: Vec<Arc<dyn Reconciler>>,
    /// While one of these fails the process is not ready.
    pub checks: Vec<(&'static str, Arc<dyn Check>)>,
    /// Optional dependencies; metrics and logs report an outage.
    pub watched: Vec<Watched>,
    /// Runs when the process begins to serve.
    pub on_start: Option<fn(&Services, &Tasks)>,
}

/// Services of this process by type: `Arc<urr_auth::Service>`, and `Arc<dyn Auth>` for its callers.
#[derive(Default)]
pub(crate) struct Services(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Services {
    /// The service of this type, if it runs here.
    pub(crate) fn get<S: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<S>> {
        self.0.get(&TypeId::of::<Arc<S>>())?.downcast_ref::<Arc<S>>().cloned()
    }

    /// Adds a service.
    pub(crate) fn add<S: ?Sized + Send + Sync + 'static>(&mut self, service: Arc<S>) {
        self.0.insert(TypeId::of::<Arc<S>>(), Box::new(service));
    }

    /// The service of a role, in this process or in another one. Callers cannot tell.
    pub(crate) fn peer<P: Peer + ?Sized>(&self, remote: &[RemoteRole]) -> Option<Arc<P>> {
        let remote_role = || remote.iter().find(|remote| remote.role.name == P::ROLE);
        self.get::<P>().or_else(|| Some(P::remote(remote_role()?.service())))
    }
}

/// What roles are built from.
pub(crate) struct Build<'a> {
    pub config: &'a Config,
    pub databases: &'a Databases,
    pub clock: &'a Clock,
    pub ids: &'a Ids,
    pub tasks: &'a Tasks,
    pub kv: Option<&'a Kv>,
    /// State of the guards.
    pub guard_state: &'a GuardState,
    pub remote: &'a [RemoteRole],
    /// The services of roles that were built before.
    pub services: Services,
}

impl Build<'_> {
    /// The database of a role that runs here.
    pub(crate) fn db(&self, role: &'static Declaration) -> Db {
        self.databases.of(role)
    }

    /// A service that the role being built calls.
    pub(crate) fn peer<P: Peer + ?Sized>(&self) -> Arc<P> {
        self.services.peer(self.remote).expect("the configuration names every role that is called")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_calls_only_domains_that_can_be_remote() {
        for role in ALL {
            for called in role.calls {
                assert_ne!(called, role);
                assert!(called.tables.is_some() && called.remote.is_some(), "{role:?} calls {called:?}");
            }
        }
    }

    #[test]
    fn names_of_roles_are_in_order_and_distinct() {
        assert!(ALL.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn tables_and_routes_have_the_name_of_their_role() {
        for role in ALL {
            assert!(role.tables.is_none_or(|tables| tables.name == role.name), "{role:?}");
            assert!(role.routes.is_none_or(|routes| routes().0.role == role.name), "{role:?}");
        }
    }
}
