//! Events, their sale windows, and the halls whose seats are sold.
//!
//! [`build`] makes the service from its parts; [`routes`] serves it to browsers; [`consumers`] listen to other domains.
//! The catalog says what is on sale, when and for how much. Who holds which seat is the business of tickets; the catalog
//! only shows the counts that the bus tells it.

pub mod demo;
mod events;
mod halls;
mod places;
mod service;
mod trouble;

use std::sync::Arc;

use urr_bus::Consumer;
use urr_db::{Domain, Sql, migrations};
use urr_http::{RoleRoutes, RouteName, Routes};

pub use service::{Parts, Service};

/// The domain's tables.
pub static DOMAIN: Domain = Domain { name: "catalog", migrations: migrations!["0001_events"] };

/// Every statement the domain can run; a test prepares them on both engines.
pub fn statements() -> Vec<&'static Sql> {
    [events::store::STATEMENTS, halls::store::STATEMENTS, places::store::STATEMENTS].concat()
}

/// Makes the service. Its database must be migrated.
pub fn build(parts: Parts) -> Arc<Service> {
    Arc::new(Service::new(parts))
}

/// How the gateway treats the public routes.
pub static ROLE: RoleRoutes =
    RoleRoutes::new("catalog", "Events are unavailable right now. Please try again in a moment.");

/// The public routes.
pub fn routes(service: &Arc<Service>) -> Routes {
    api_routes().with_state(service::Api(Arc::clone(service)))
}

/// What the public routes take and answer, for processes that do not serve them.
pub fn described() -> Vec<RouteName> {
    api_routes().names().to_vec()
}

fn api_routes() -> Routes<service::Api> {
    events::routes::routes().merge(halls::routes::routes())
}

/// What listens to other domains.
pub fn consumers(service: &Arc<Service>) -> Vec<Arc<dyn Consumer>> {
    vec![Arc::new(places::Places::new(service.db.clone()))]
}
