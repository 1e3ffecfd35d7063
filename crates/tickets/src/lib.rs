//! Seats, holds and reservations.
//!
//! [`build`] makes the service from its parts; [`routes`] serves it to browsers; [`reconcilers`] keep it honest in the
//! background. The story of one hold is in `holds/mod.rs`.

pub mod gate;
mod holds;
mod map;
#[cfg(test)]
mod race;
mod sales;
mod service;
mod settings;
#[cfg(test)]
mod suite;
mod trouble;

use std::sync::Arc;

use urr_db::{Domain, Sql, migrations};
use urr_http::{RoleRoutes, RouteName, Routes};
use urr_jobs::Reconciler;

pub use service::{Parts, Service};
pub use settings::Settings;

/// The domain's tables.
pub static DOMAIN: Domain = Domain { name: "tickets", migrations: migrations!["0001_holds"] };

/// Every statement the domain can run; a test prepares them on both engines.
pub fn statements() -> Vec<&'static Sql> {
    [holds::claims::store::STATEMENTS, holds::store::STATEMENTS, map::store::STATEMENTS].concat()
}

/// Makes the service.
pub fn build(parts: Parts) -> Arc<Service> {
    Arc::new(Service::new(parts, holds::claims::Way::Conditional))
}

/// How the gateway treats the public routes.
pub static ROLE: RoleRoutes = RoleRoutes::new(
    "tickets",
    "Seats and reservations are unavailable right now. Please try again in a moment.",
);

/// The public routes.
pub fn routes(service: &Arc<Service>) -> Routes {
    api_routes().with_state(holds::routes::Api(Arc::clone(service)))
}

/// What the public routes take and answer, for processes that do not serve them.
pub fn described() -> Vec<RouteName> {
    api_routes().names().to_vec()
}

fn api_routes() -> Routes<holds::routes::Api> {
    holds::routes::routes().merge(map::routes::routes())
}

/// Work that goes on without anybody asking.
pub fn reconcilers(service: &Arc<Service>) -> Vec<Arc<dyn Reconciler>> {
    vec![Arc::new(holds::sweep::Sweep(Arc::clone(service)))]
}
