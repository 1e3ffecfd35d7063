//! Events, their sale windows, and the halls whose seats are sold.
//!
//! [`build`] constructs the service; [`routes`] returns its public HTTP routes; [`consumers`]
//! returns its message consumers. The catalog owns what is on sale, when, and at what price.
//! Tickets owns which seat is held by which buyer; the catalog only displays the counts it receives
//! from tickets over the bus.

mod api;
pub mod demo;
mod events;
mod halls;
mod places;
mod service;

use std::sync::Arc;

use urr_bus::Consumer;
use urr_db::{Domain, Sql, migrations};
use urr_http::{RoleRoutes, RouteName, Routes};

pub use service::{Parts, Service};

/// Failure of a method of the service.
type Failure = urr_kernel::Failure<urr_contracts::catalog::Error>;

/// Database name and migrations of this domain.
pub static DOMAIN: Domain = Domain { name: "catalog", migrations: migrations!["0001_events"] };

/// Every statement the domain can run; a test prepares them on both engines.
pub fn statements() -> Vec<&'static Sql> {
    [events::store::STATEMENTS, halls::store::STATEMENTS, places::store::STATEMENTS].concat()
}

/// Builds the service. The database must already be migrated.
pub fn build(parts: Parts) -> Arc<Service> {
    Arc::new(Service::new(parts))
}

/// Role name, and the message users see while the catalog is unreachable.
pub static ROLE: RoleRoutes =
    RoleRoutes::new("catalog", "Events are unavailable right now. Please try again in a moment.");

/// The public routes.
pub fn routes(service: &Arc<Service>) -> Routes {
    api_routes().with_state(api::Api(Arc::clone(service)))
}

/// Request and response types of the public routes, for processes that do not serve them.
pub fn described() -> Vec<RouteName> {
    api_routes().names().to_vec()
}

fn api_routes() -> Routes<api::Api> {
    events::routes::routes().merge(halls::routes::routes())
}

/// Consumers of messages from other domains.
pub fn consumers(service: &Arc<Service>) -> Vec<Arc<dyn Consumer>> {
    vec![Arc::new(places::Places::new(service.db.clone()))]
}
