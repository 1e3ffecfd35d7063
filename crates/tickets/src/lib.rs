//! Seats, holds and reservations.
//!
//! [`build`] constructs the service; [`routes`] returns its public HTTP routes; [`reconcilers`]
//! returns its background jobs. Start reading at `holds/mod.rs`, which has the whole path of a
//! hold.

mod api;
pub mod gate;
mod holds;
mod map;
mod sales;
mod service;
mod settings;

use std::sync::Arc;

use urr_db::{Domain, Sql, migrations};
use urr_http::{RoleRoutes, RouteName, Routes};
use urr_jobs::Reconciler;

pub use service::{Parts, Service};
pub use settings::Settings;

/// Failure of a method of the service.
type Failure = urr_kernel::Failure<urr_contracts::tickets::Error>;

/// Database name and migrations of this domain.
pub static DOMAIN: Domain = Domain { name: "tickets", migrations: migrations!["0001_holds"] };

/// Every statement the domain can run; a test prepares them on both engines.
pub fn statements() -> Vec<&'static Sql> {
    [holds::claims::store::STATEMENTS, holds::store::STATEMENTS, map::store::STATEMENTS].concat()
}

/// Builds the service.
pub fn build(parts: Parts) -> Arc<Service> {
    Arc::new(Service::new(parts))
}

/// Role name, and the message users see while tickets is unreachable.
pub static ROLE: RoleRoutes = RoleRoutes::new(
    "tickets",
    "Seats and reservations are unavailable right now. Please try again in a moment.",
);

/// The public routes.
pub fn routes(service: &Arc<Service>) -> Routes {
    api_routes().with_state(api::Api(Arc::clone(service)))
}

/// Request and response types of the public routes, for processes that do not serve them.
pub fn described() -> Vec<RouteName> {
    api_routes().names().to_vec()
}

fn api_routes() -> Routes<api::Api> {
    holds::routes::routes().merge(map::routes::routes())
}

/// Background jobs of this domain.
pub fn reconcilers(service: &Arc<Service>) -> Vec<Arc<dyn Reconciler>> {
    vec![Arc::new(holds::sweep::Sweep(Arc::clone(service)))]
}
