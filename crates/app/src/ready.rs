//! What has to be well before the process is ready.

use std::sync::Arc;

use async_trait::async_trait;
use urr_db::Db;
use urr_telemetry::{Check, Health};

use crate::{config::Choice as _, remote::RemoteRole, roles::Role, stores::Databases, wire::Domains};

/// Registers every part without which the process is not ready.
pub(crate) fn register(domains: &Domains, databases: &Databases, health: &Health) {
    for (role, db) in databases.iter() {
        let name = match role {
            Role::Auth => "auth database",
            Role::Catalog => "catalog database",
            Role::Queue => "queue database",
            Role::Tickets => "tickets database",
            Role::Vwr => "vwr database",
            Role::Site | Role::Gateway | Role::Notices => continue,
        };
        health.register(name, Arc::new(Answers(db.clone())));
    }
    if let Some(revoked) = &domains.memory.revoked {
        health.register("ended sessions", revoked.loaded());
    }
    if let Some(queue) = &domains.queue {
        health.register("places in line", Arc::new(ReadBack(queue.clone())));
        health.register("queue journal", Arc::new(Written(queue.clone())));
    }
    if let Some(rooms) = &domains.memory.rooms {
        health.register("open waiting rooms", rooms.loaded());
    }
    // Without auth a process goes on, as long as it knows which sessions ended before; and without the waiting room, as long as it
    // knows which rooms are open; without the one before the seats nobody buys.
    let needed = |remote: &&RemoteRole| !matches!(remote.role, Role::Auth | Role::Queue | Role::Vwr);
    for remote in domains.remote.iter().filter(needed) {
        health.register(remote.role.name(), Arc::new(remote.clone()));
    }
}

/// Whoever waits has their place again.
struct ReadBack(Arc<urr_queue::Service>);

#[async_trait]
impl Check for ReadBack {
    async fn check(&self) -> Result<(), String> {
        if self.0.is_open() { Ok(()) } else { Err("they are being read back".to_owned()) }
    }
}

/// What happens in line is written down.
struct Written(Arc<urr_queue::Service>);

#[async_trait]
impl Check for Written {
    async fn check(&self) -> Result<(), String> {
        let outage = self.0.journal_outage();
        outage.map_or(Ok(()), |outage| Err(format!("it cannot be written since {} s", outage.as_secs())))
    }
}

struct Answers(Db);

#[async_trait]
impl Check for Answers {
    async fn check(&self) -> Result<(), String> {
        self.0.ping().await.map_err(|error| urr_telemetry::chain(&error))
    }
}
