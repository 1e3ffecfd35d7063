#![doc = include_str!("../README.md")]

mod admin;
mod api;
mod cookies;
mod counters;
mod edge;
mod line;
mod live;
mod page;
mod position_batcher;
mod recent_tickets;
mod room_cache;
mod routes;
mod rules;
mod service;
mod settings;
mod store;
mod turns;

use std::sync::Arc;

use urr_db::{Domain, Sql, migrations};
use urr_http::{RoleRoutes, RouteName, Routes};
use urr_jobs::Reconciler;

#[cfg(feature = "aws")]
pub use self::counters::dynamo::{create_table, table};
pub use self::{
    counters::Counters,
    page::export,
    service::{Parts, Service},
    settings::{CountersKind, Settings},
};

/// Failure of a method of the service.
type Failure = urr_kernel::Failure<urr_contracts::vwr::Error>;

/// The domain's tables.
pub static DOMAIN: Domain = Domain { name: "vwr", migrations: migrations!["0001_rooms"] };

/// Every statement the domain can run; a test prepares them on both engines.
pub fn statements() -> Vec<&'static Sql> {
    store::STATEMENTS.to_vec()
}

/// Builds the service.
pub fn build(parts: Parts) -> Arc<Service> {
    Arc::new(Service::new(parts))
}

/// Settings of the public routes in the gateway.
pub static ROLE: RoleRoutes =
    RoleRoutes::new("vwr", "The waiting room does not answer right now. You keep your place in line.");

/// The public routes.
pub fn routes(service: &Arc<Service>) -> Routes {
    api_routes().with_state(api::Api(Arc::clone(service)))
}

/// The public routes for visitors, without those for operators.
pub fn visitor_routes(service: &Arc<Service>) -> Routes {
    visitor().with_state(api::Api(Arc::clone(service)))
}

/// Descriptions of the public routes, for processes that do not serve them.
pub fn described() -> Vec<RouteName> {
    api_routes().names().to_vec()
}

fn api_routes() -> Routes<api::Api> {
    visitor().merge(admin::routes())
}

fn visitor() -> Routes<api::Api> {
    routes::routes().merge(page::routes()).merge(edge::routes())
}

/// Background work. Every process runs it; leases decide which one acts.
pub fn background(service: &Arc<Service>) -> Vec<Arc<dyn Reconciler>> {
    vec![
        Arc::new(turns::Look(Arc::clone(service))),
        Arc::new(turns::Advance::new(Arc::clone(service))),
        Arc::new(live::Sampling(Arc::clone(service))),
    ]
}
