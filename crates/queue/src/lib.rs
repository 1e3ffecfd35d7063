#![doc = include_str!("../README.md")]

mod admission_rate;
mod api;
mod control;
mod events;
pub mod journal;
mod line;
mod notices;
mod positions;
mod presence;
mod room;
mod room_model;
mod service;
mod settings;
mod token_position;
mod used_positions;
mod work;

use std::{sync::Arc, time::Duration};

use urr_bus::Consumer;
use urr_db::{Domain, Sql, migrations};
use urr_http::{RoleRoutes, RouteName, Routes};
use urr_jobs::Reconciler;

pub use notices::{Admitted, Notices};
pub use room::{Answer, CannotOpen, Closed, GRACE, Order, Room};
pub use room_model::{Slot, Totals, UserState};
pub use service::{Parts, Service};
pub use settings::{Limits, Settings};
pub use token_position::{Flaw, Flaws, TokenPosition};

/// Failure of a method of the service.
type Failure = urr_kernel::Failure<urr_contracts::queue::Error>;

/// The domain's tables.
pub static DOMAIN: Domain = Domain { name: "queue", migrations: migrations!["0001_rooms"] };

/// Every statement the domain can run; a test prepares them on both engines.
pub fn statements() -> Vec<&'static Sql> {
    [
        control::store::STATEMENTS,
        journal::slot_copy::STATEMENTS,
        journal::active_slots::STATEMENTS,
        journal::setting::STATEMENTS,
        journal::store::STATEMENTS,
        positions::store::STATEMENTS,
        &room::memory::statements(),
        work::purchases::STATEMENTS,
    ]
    .concat()
}

/// Builds the service. Its rooms are closed until [`Service::open`].
pub fn build(parts: Parts) -> Arc<Service> {
    Arc::new(Service::new(parts))
}

/// Settings of the public routes in the gateway. Users poll again soon, so a late response is worth
/// little.
pub static ROLE: RoleRoutes = RoleRoutes {
    time_limit: Duration::from_secs(10),
    ..RoleRoutes::new("queue", "The waiting room does not answer right now. You keep your place in line.")
};

/// The public routes.
pub fn routes(service: &Arc<Service>) -> Routes {
    api_routes().with_state(api::Api(Arc::clone(service)))
}

/// Descriptions of the public routes, for processes that do not serve them.
pub fn described() -> Vec<RouteName> {
    api_routes().names().to_vec()
}

fn api_routes() -> Routes<api::Api> {
    positions::routes::routes().merge(control::routes::routes())
}

/// Consumers of other domains' messages.
pub fn consumers(service: &Arc<Service>) -> Vec<Arc<dyn Consumer>> {
    vec![Arc::new(work::purchases::Purchases { db: service.db.clone() })]
}

/// The admission worker. Every process runs one; the rooms make sure that a slot is given once.
pub fn admission(service: &Arc<Service>) -> Arc<dyn Reconciler> {
    Arc::new(work::admission::Admission(Arc::clone(service)))
}

/// Samples rooms for the live view. Every process runs one, for its own watchers.
pub fn sampling(service: &Arc<Service>) -> Arc<dyn Reconciler> {
    Arc::new(work::sampling::Sampling(Arc::clone(service)))
}

/// Reconcilers that run in one process at a time.
pub fn reconcilers(service: &Arc<Service>) -> Vec<Arc<dyn Reconciler>> {
    vec![Arc::new(work::tidy::Tidy(Arc::clone(service)))]
}
