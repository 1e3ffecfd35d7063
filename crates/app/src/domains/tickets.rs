//! The role `tickets`: holds, reservations and tickets.

use urr_contracts::tickets::{self, Tickets};
use urr_tickets::{
    Service,
    gate::{GATE_TTL, SeatGate},
};

use super::{Build, Declaration, Part};
use crate::{failure::Failure, roles::Role};

pub(crate) static ROLE: Declaration = Declaration {
    tables: Some(&urr_tickets::DOMAIN),
    routes: Some(|| (&urr_tickets::ROLE, urr_tickets::described())),
    calls: &[Role::of(&super::catalog::ROLE)],
    ..Declaration::new("tickets", build)
};

#[expect(clippy::unnecessary_wraps, reason = "every role is built by a function of this type")]
fn build(build: &mut Build<'_>) -> Result<Option<Part>, Failure> {
    let Build { config, clock, ids, tasks, kv, .. } = *build;
    let service = urr_tickets::build(urr_tickets::Parts {
        db: build.db(&ROLE),
        gate: match kv {
            Some(kv) => SeatGate::redis(kv.clone(), GATE_TTL),
            None => SeatGate::memory(clock.clone(), GATE_TTL),
        },
        catalog: build.peer(),
        clock: clock.clone(),
        ids: ids.clone(),
        settings: config.sale.clone(),
        tasks: tasks.clone(),
    });
    let part = Part {
        routes: Some(urr_tickets::routes(&service)),
        internal: tickets::internal_routes(service.clone(), clock.clone(), ids.clone()),
        reconcilers: urr_tickets::reconcilers(&service),
        ..Part::default()
    };
    build.services.add::<Service>(service.clone());
    build.services.add::<dyn Tickets>(service);
    Ok(Some(part))
}
