//! `urr queue`: verifies that a waiting room was fair.

use std::process::ExitCode;

use urr_db::Db;
use urr_kernel::{Clock, EventId, Ids};
use urr_queue::{
    Room,
    journal::{self, verify::Silence},
};

use crate::{
    cli::QueueCommand,
    config::Config,
    domains,
    failure::Failure,
    say::{complain, say},
    stores::{self, Databases},
};

/// Whether a room was fair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fair,
    Unfair,
}

/// The exit code: 1 for an unfair room, 2 if it could not be verified.
pub(crate) fn exit(verdict: Result<Verdict, Failure>) -> ExitCode {
    match verdict {
        Ok(Verdict::Fair) => ExitCode::SUCCESS,
        Ok(Verdict::Unfair) => ExitCode::from(1),
        Err(Failure(lines)) => {
            for line in lines {
                complain!("urr: {line}");
            }
            ExitCode::from(2)
        }
    }
}

/// Runs `urr queue verify`.
pub(crate) async fn queue(config: &Config, command: QueueCommand) -> Result<Verdict, Failure> {
    let QueueCommand::Verify { event } = command;
    if !config.roles.has(&domains::queue::ROLE) {
        return Err(Failure::new("this process does not have the role queue; add it to `roles`"));
    }
    let databases = Databases::open_migrated(config).await?;
    let db = databases.of(&domains::queue::ROLE);
    settle(config, &db, event).await?;
    let report = journal::verify(&db, event).await;
    let report = report.map_err(|error| Failure::because("the queue database", &error))?;
    let report = report.ok_or_else(|| Failure::new(format!("event {event} has no journal")))?;
    say!("event     {event}");
    say!("steps     {}", report.steps);
    say!("joined    {}", report.joined);
    say!("admitted  {}", report.admitted);
    say!("gone      {}", report.gone);
    say!("operator  {}", report.operator);
    say!("at most   {} waiting, {} in", report.most_waiting, report.most_active);
    if let Some(Silence { at, waiting, gone }) = report.silence {
        say!(
            "silence   {gone} of {waiting} waiting users were removed as idle within a second at {at}: could their requests reach the server?"
        );
    }
    if report.clock_back > 0 {
        say!(
            "clock     it was set back {} times: timestamps in the journal are out of order, the queue is not",
            report.clock_back
        );
    }
    if report.unproven > 0 {
        say!(
            "unproven  {} positions are known from queue tickets only: Redis lost their journal steps",
            report.unproven
        );
    }
    if report.is_fair() {
        say!(
            "fair      no entry overtook another, the threshold was never exceeded, no user had two entries, used one twice or got another user's"
        );
        return Ok(Verdict::Fair);
    }
    complain!("urr: event {event}: {} steps should not have happened", report.faults);
    for finding in &report.findings {
        let (life, step) = (finding.generation, finding.seq);
        complain!("urr: generation {life}, step {step}, {}: {}", finding.at, finding.fault);
    }
    Ok(Verdict::Unfair)
}

/// Moves steps that are still in Redis to the database, so that the journal is complete.
async fn settle(config: &Config, db: &Db, event: EventId) -> Result<(), Failure> {
    let clock = Clock::system();
    let Some(kv) = stores::redis(config, &clock)? else { return Ok(()) };
    let ids = Ids::random(clock.clone());
    let room = Room::redis(kv, db.clone(), clock, ids, config.queue.limits, config.queue.grace);
    room.settle(event).await.map_err(|error| Failure::because("redis", &error))
}
