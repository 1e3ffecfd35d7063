//! `urr queue`: proof that a waiting room was fair.

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

/// What the command ends with: an unfair room must not be taken for one that cannot be read.
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

/// Does what was asked about waiting rooms.
pub(crate) async fn queue(config: &Config, command: QueueCommand) -> Result<Verdict, Failure> {
    let QueueCommand::Verify { event } = command;
    if !config.roles.has(&domains::queue::ROLE) {
        return Err(Failure::new("the waiting rooms are not here: run this with the role queue"));
    }
    let databases = Databases::open(config)?;
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
            "silence   {gone} of {waiting} were sent away within a second at {at}: were they silent, or could nobody hear them?"
        );
    }
    if report.clock_back > 0 {
        say!(
            "clock     it was put back {} times: times in the journal are not in order, the line is",
            report.clock_back
        );
    }
    if report.unproven > 0 {
        say!(
            "unproven  {} places are known from tickets alone: Redis lost the steps that gave them",
            report.unproven
        );
    }
    if report.is_fair() {
        say!(
            "fair      nobody overtook, nobody was let in above the threshold, nobody had two places, used one twice or got one that was not theirs"
        );
        return Ok(Verdict::Fair);
    }
    complain!("urr: event {event}: {} steps should not have happened", report.faults);
    for finding in &report.findings {
        let (life, step) = (finding.generation, finding.seq);
        complain!("urr: life {life}, step {step}, {}: {}", finding.at, finding.fault);
    }
    Ok(Verdict::Unfair)
}

/// Steps that are still in Redis are moved to the database first, so that the journal is whole.
async fn settle(config: &Config, db: &Db, event: EventId) -> Result<(), Failure> {
    let clock = Clock::system();
    let Some(kv) = stores::redis(config, &clock)? else { return Ok(()) };
    let ids = Ids::random(clock.clone());
    let room = Room::redis(kv, db.clone(), clock, ids, config.queue.limits, config.queue.grace);
    room.settle(event).await.map_err(|error| Failure::because("redis", &error))
}
