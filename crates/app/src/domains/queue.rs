//! The role `queue`: the event waiting room (Tier 2).

use std::sync::Arc;

use async_trait::async_trait;
use urr_contracts::queue::{self, Queue};
use urr_queue::Service;
use urr_telemetry::Check;

use super::{Build, Declaration, Part, RemoteUse};
use crate::{aws, failure::Failure, roles::Role, wire};

pub(crate) static ROLE: Declaration = Declaration {
    tables: Some(&urr_queue::DOMAIN),
    routes: Some(|| (&urr_queue::ROLE, urr_queue::described())),
    calls: &[Role::of(&super::catalog::ROLE)],
    listens_to: &[Role::of(&super::tickets::ROLE)],
    remote: Some(RemoteUse {
        doc: "Internal listener of `queue` if it does not run here: called at most once per second and buyer to \
              check the slot. Only for processes with the role `tickets`.",
        by_guards: Some(|config| config.guards_seats() && config.roles.has(&super::tickets::ROLE)),
    }),
    ..Declaration::new("queue", build)
};

/// Returns `None` without keys, because queue tickets are signed.
fn build(build: &mut Build<'_>) -> Result<Option<Part>, Failure> {
    let Build { config, clock, ids, tasks, kv, .. } = *build;
    let secrets = wire::secrets(config);
    if secrets.is_empty() {
        return Ok(None);
    }
    let service = urr_queue::build(urr_queue::Parts {
        db: build.db(&ROLE),
        kv: kv.cloned(),
        catalog: build.peer(),
        clock: clock.clone(),
        ids: ids.clone(),
        secrets,
        settings: config.queue.clone(),
        secure_cookies: config.secure_cookies(),
        notices: aws::notices(config, clock, tasks)?,
    });
    let part = Part {
        routes: Some(urr_queue::routes(&service)),
        internal: queue::internal_routes(service.clone(), clock.clone(), ids.clone()),
        consumers: urr_queue::consumers(&service),
        reconcilers: urr_queue::reconcilers(&service),
        // Not under a lease: each room decides atomically, and the next process must not wait for a
        // dead one.
        everywhere: vec![urr_queue::admission(&service), urr_queue::sampling(&service)],
        checks: vec![
            ("places in line", Arc::new(ReadBack(service.clone()))),
            ("queue journal", Arc::new(Written(service.clone()))),
        ],
        ..Part::default()
    };
    build.services.add::<Service>(service.clone());
    build.services.add::<dyn Queue>(service);
    Ok(Some(part))
}

/// Passes once the rooms have been read from the journal.
struct ReadBack(Arc<Service>);

#[async_trait]
impl Check for ReadBack {
    async fn check(&self) -> Result<(), String> {
        if self.0.is_open() {
            Ok(())
        } else {
            Err("the queues are still being read from the journal".to_owned())
        }
    }
}

/// Passes while the journal can be written.
struct Written(Arc<Service>);

#[async_trait]
impl Check for Written {
    async fn check(&self) -> Result<(), String> {
        let outage = self.0.journal_outage();
        outage.map_or(Ok(()), |outage| {
            Err(format!("writes have failed for {} s: it cannot be written", outage.as_secs()))
        })
    }
}
