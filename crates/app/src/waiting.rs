//! The two tiers of the waiting room: how they are made from the configuration, and what Tier 1 does without being asked.

use std::{fs, path::Path, sync::Arc};

use async_trait::async_trait;
use urr_jobs::Tasks;
use urr_kernel::{Clock, Ids};
use urr_kv::Kv;
use urr_telemetry::Check;
use urr_vwr::Counters;

use crate::{
    aws,
    config::Config,
    failure::Failure,
    remote::RemoteRole,
    roles::Role,
    say::say,
    stores::Databases,
    watch::Watched,
    wire::{Ground, here_or_there, secrets},
};

/// Tier 1 of the waiting room, if it is here and there are keys to sign its tickets with.
pub(crate) fn first_tier(
    config: &Config,
    databases: &Databases,
    kv: Option<&Kv>,
    tasks: &Tasks,
    (clock, ids): (&Clock, &Ids),
) -> Result<Option<Arc<urr_vwr::Service>>, Failure> {
    let secrets = secrets(config);
    if !config.roles.has(Role::Vwr) || secrets.is_empty() {
        return Ok(None);
    }
    let db = databases.of(Role::Vwr);
    let counters = match (aws::counters(config, &db, clock, ids)?, kv) {
        (Some(counters), _) => counters,
        (None, Some(kv)) => Counters::redis(kv.clone(), db.clone(), clock.clone()),
        (None, None) => Counters::memory(db.clone(), clock.clone()),
    };
    Ok(Some(urr_vwr::build(urr_vwr::Parts {
        counters,
        db: Some(db),
        clock: clock.clone(),
        ids: ids.clone(),
        secrets,
        tasks: tasks.clone(),
        secure_cookies: config.secure_cookies(),
    })))
}

/// Tier 2, in front of one event, if it is here. Without keys there is none, as there are no accounts.
pub(crate) fn second_tier(
    config: &Config,
    databases: &Databases,
    kv: Option<&Kv>,
    catalog: Option<&Arc<urr_catalog::Service>>,
    remote: &[RemoteRole],
    tasks: &Tasks,
    (clock, ids): (&Clock, &Ids),
) -> Result<Option<Arc<urr_queue::Service>>, Failure> {
    let secrets = secrets(config);
    if !config.roles.has(Role::Queue) || secrets.is_empty() {
        return Ok(None);
    }
    let notices = aws::notices(config, clock, tasks)?;
    Ok(Some(urr_queue::build(urr_queue::Parts {
        db: databases.of(Role::Queue),
        kv: kv.cloned(),
        catalog: here_or_there(catalog, remote),
        clock: clock.clone(),
        ids: ids.clone(),
        secrets,
        settings: config.queue.clone(),
        secure_cookies: config.secure_cookies(),
        notices,
    })))
}

/// Looks at the rooms and lets people on: every process does, and they take turns by themselves. Answers with what is to be watched.
pub(crate) fn start(vwr: &Arc<urr_vwr::Service>, ground: &Ground, tasks: &Tasks) -> Watched {
    for reconciler in urr_vwr::background(vwr) {
        urr_jobs::run(tasks, reconciler, None, ground.clock.clone());
    }
    // Background work is told to stop when the last request has its answer.
    let (settled, stop) = (Arc::clone(vwr), tasks.token());
    tasks.spawn("vwr.settle", async move {
        stop.cancelled().await;
        if let Err(cause) = settled.settle().await {
            tracing::warn!(cause, "places that were set aside could not be given back and will be skipped");
        }
    });
    let without = "whoever waits in front of everything keeps waiting";
    Watched::new("waiting rooms", without, Arc::new(Rooms(Arc::clone(vwr))))
}

struct Rooms(Arc<urr_vwr::Service>);

#[async_trait]
impl Check for Rooms {
    async fn check(&self) -> Result<(), String> {
        if self.0.is_fresh() { Ok(()) } else { Err("nobody could look at them for seconds".to_owned()) }
    }
}

/// Writes the page on which one waits for another host.
pub(crate) fn export(file: Option<&Path>, api: &str) -> Result<(), Failure> {
    let Some(page) = urr_vwr::export(api) else {
        let hint = "--api is a path of the page's own site, such as /vwr-api; let the CDN pass it on";
        return Err(Failure::new(format!(
            "{hint}: browsers do not send the cookies of a place to another one"
        )));
    };
    let Some(file) = file else {
        say!("{}", page.trim_end());
        return Ok(());
    };
    let failed = |error| Failure::because(format!("{} cannot be written", file.display()), &error);
    fs::write(file, page).map_err(failed)?;
    say!("{} is written; let a CDN answer /vwr/* with it and pass {api}/* on to urr", file.display());
    Ok(())
}
