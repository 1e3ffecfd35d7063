//! The checks behind `/health/ready`.

use std::sync::Arc;

use async_trait::async_trait;
use urr_db::Db;
use urr_telemetry::{Check, Health};

use crate::{remote::RemoteRole, stores::Databases, wire::Domains};

/// Registers the checks that must pass before the process is ready.
pub(crate) fn register(domains: &Domains, databases: &Databases, health: &Health) {
    for (role, db) in databases.iter() {
        // Leaked once per role and process.
        health.register(format!("{} database", role.name).leak(), Arc::new(Answers(db.clone())));
    }
    if let Some(revoked) = &domains.guard_state.revoked {
        health.register("ended sessions", revoked.loaded());
    }
    for (name, check) in domains.parts.iter().flat_map(|(_, part)| &part.checks) {
        health.register(name, Arc::clone(check));
    }
    if let Some(rooms) = &domains.guard_state.rooms {
        health.register("open waiting rooms", rooms.loaded());
    }
    // Guards continue with cached data while a role they call is unreachable.
    let needed =
        |remote: &&RemoteRole| remote.role.remote.as_ref().is_none_or(|used| used.by_guards.is_none());
    for remote in domains.remote.iter().filter(needed) {
        health.register(remote.role.name, Arc::new(remote.clone()));
    }
}

struct Answers(Db);

#[async_trait]
impl Check for Answers {
    async fn check(&self) -> Result<(), String> {
        self.0.ping().await.map_err(|error| urr_telemetry::chain(&error))
    }
}
