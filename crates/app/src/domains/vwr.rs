//! The role `vwr`: the site waiting room (Tier 1).

use std::sync::Arc;

use async_trait::async_trait;
use urr_contracts::vwr::{self, Vwr};
use urr_jobs::Tasks;
use urr_telemetry::Check;
use urr_vwr::{Counters, Service};

use super::{Build, Declaration, Part, RemoteUse, Services};
use crate::{aws, failure::Failure, watch::Watched, wire};

pub(crate) static ROLE: Declaration = Declaration {
    tables: Some(&urr_vwr::DOMAIN),
    routes: Some(|| (&urr_vwr::ROLE, urr_vwr::described())),
    remote: Some(RemoteUse {
        doc: "Internal listener of `vwr` if it does not run here: polled several times a second for open waiting \
              rooms. Left out, no visitor is sent to the site waiting room.",
        by_guards: Some(|config| config.remote.of(&ROLE).is_some()),
    }),
    ..Declaration::new("vwr", build)
};

/// Returns `None` without keys, because Tier 1 tickets are signed.
fn build(build: &mut Build<'_>) -> Result<Option<Part>, Failure> {
    let Build { config, clock, ids, tasks, kv, .. } = *build;
    let secrets = wire::secrets(config);
    if secrets.is_empty() {
        return Ok(None);
    }
    let db = build.db(&ROLE);
    let counters = match (aws::counters(config, &db, clock, ids)?, kv) {
        (Some(counters), _) => counters,
        (None, Some(kv)) => Counters::redis(kv.clone(), db.clone(), clock.clone()),
        (None, None) => Counters::memory(db.clone(), clock.clone()),
    };
    let service = urr_vwr::build(urr_vwr::Parts {
        counters,
        db: Some(db),
        clock: clock.clone(),
        ids: ids.clone(),
        secrets,
        tasks: tasks.clone(),
        secure_cookies: config.secure_cookies(),
    });
    let without = "visitors in the site waiting room keep waiting";
    let part = Part {
        routes: Some(urr_vwr::routes(&service)),
        internal: vwr::internal_routes(service.clone(), clock.clone(), ids.clone()),
        everywhere: urr_vwr::background(&service),
        watched: vec![Watched::new("waiting rooms", without, Arc::new(Rooms(service.clone())))],
        on_start: Some(settle_on_stop),
        ..Part::default()
    };
    build.services.add::<Service>(service.clone());
    build.services.add::<dyn Vwr>(service);
    Ok(Some(part))
}

/// Returns positions that were reserved ahead once the last request is answered.
fn settle_on_stop(services: &Services, tasks: &Tasks) {
    let Some(vwr) = services.get::<Service>() else { return };
    let stop = tasks.token();
    tasks.spawn("vwr.settle", async move {
        stop.cancelled().await;
        if let Err(cause) = vwr.settle().await {
            tracing::warn!(cause, "vwr: could not return reserved positions; their numbers will be skipped");
        }
    });
}

struct Rooms(Arc<Service>);

#[async_trait]
impl Check for Rooms {
    async fn check(&self) -> Result<(), String> {
        if self.0.is_fresh() { Ok(()) } else { Err("the rooms have not been read for seconds".to_owned()) }
    }
}
