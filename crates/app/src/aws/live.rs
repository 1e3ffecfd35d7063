//! What is kept and told on AWS, made from the configuration.

use std::sync::Arc;

use urr_aws::{AwsConfig, Dynamo, Queue, TableState};
use urr_db::Db;
use urr_jobs::Tasks;
use urr_kernel::{Clock, Ids};
use urr_queue::Notices;
use urr_vwr::Counters;

use super::notices::{self, Outgoing};
use crate::{
    config::{Config, HttpUrl},
    domains,
    failure::Failure,
    say::say,
};

/// Finds what the settings alone cannot show, without asking AWS.
pub(crate) fn check(config: &Config) -> Result<(), Failure> {
    let clock = Clock::system();
    dynamo(config, &clock)?;
    queue(config, &clock).map(drop)
}

/// What tells of admissions, if anybody is to be told.
pub(crate) fn notices(
    config: &Config,
    clock: &Clock,
    tasks: &Tasks,
) -> Result<Option<Arc<dyn Notices>>, Failure> {
    Ok(queue(config, clock)?.map(|queue| Arc::new(Outgoing::start(queue, tasks)) as Arc<dyn Notices>))
}

/// Starts to read what was told of admissions, if that is this process's to do.
pub(crate) fn read_notices(config: &Config, clock: &Clock, tasks: &Tasks) -> Result<(), Failure> {
    if config.roles.has(&domains::notices::ROLE)
        && let Some(queue) = queue(config, clock)?
    {
        let reader = notices::read(queue, tasks.clone(), clock.clone(), notices::log);
        tasks.spawn_essential("notices.read", reader);
    }
    Ok(())
}

/// What counts the places of Tier 1, if that is DynamoDB.
pub(crate) fn counters(
    config: &Config,
    db: &Db,
    clock: &Clock,
    ids: &Ids,
) -> Result<Option<Counters>, Failure> {
    let Some((dynamo, prefix)) = dynamo(config, clock)? else { return Ok(None) };
    Ok(Some(Counters::dynamo_db(dynamo, prefix, Some(db.clone()), clock.clone(), ids.clone())))
}

/// Makes the table, if it is ours to make.
pub(crate) async fn migrate(config: &Config) -> Result<(), Failure> {
    let Some((dynamo, prefix)) = dynamo(config, &Clock::system())? else { return Ok(()) };
    if !config.roles.has(&domains::vwr::ROLE) {
        return Ok(());
    }
    let table = urr_vwr::table(prefix);
    let made = urr_vwr::create_table(&dynamo, prefix).await;
    let made = made.map_err(|error| Failure::because(format!("the table {table}"), &error))?;
    say!("vwr: table {table} {}", if made { "is made" } else { "is there" });
    Ok(())
}

/// What `urr doctor` says about it: a name, and a remark or what is wrong.
pub(crate) async fn examine(config: &Config, clock: &Clock) -> Vec<(String, Result<String, String>)> {
    let mut found = Vec::new();
    match dynamo(config, clock) {
        Ok(None) => {}
        Ok(Some((dynamo, prefix))) => {
            let table = urr_vwr::table(prefix);
            let state = dynamo.table(&table).await.map_err(|error| urr_telemetry::chain(&error));
            let state = state.and_then(|state| match state {
                TableState::Ready => Ok("it is there".to_owned()),
                TableState::Busy => Err("it is being made or changed".to_owned()),
                TableState::Missing => Err("it is not there; run `urr migrate`".to_owned()),
            });
            found.push((format!("DynamoDB table {table}"), state));
        }
        Err(Failure(lines)) => found.push(("DynamoDB".to_owned(), Err(lines.join("; ")))),
    }
    match queue(config, clock) {
        Ok(None) => {}
        Ok(Some(queue)) => {
            let depth = queue.depth().await.map_err(|error| urr_telemetry::chain(&error));
            let depth = depth.map(|depth| format!("it is there, with about {depth} notices"));
            found.push(("SQS queue of notices".to_owned(), depth));
        }
        Err(Failure(lines)) => found.push(("SQS".to_owned(), Err(lines.join("; ")))),
    }
    found
}

/// The queue that is told of admissions, if there is one.
fn queue(config: &Config, clock: &Clock) -> Result<Option<Queue>, Failure> {
    let Some(url) = &config.queue.notices_url else { return Ok(None) };
    let aws = reach(config, config.aws.sqs_endpoint.as_ref());
    let queue = Queue::connect(aws, url.expose(), clock.clone());
    queue.map(Some).map_err(|error| Failure::because("aws.sqs_endpoint", &error))
}

/// The connection to DynamoDB and the prefix of the table, if positions are counted there.
fn dynamo<'c>(config: &'c Config, clock: &Clock) -> Result<Option<(Dynamo, &'c str)>, Failure> {
    if !config.vwr.uses_dynamodb() {
        return Ok(None);
    }
    let dynamo = Dynamo::connect(reach(config, config.aws.dynamodb_endpoint.as_ref()), clock.clone());
    let dynamo = dynamo.map_err(|error| Failure::because("aws.dynamodb_endpoint", &error))?;
    Ok(Some((dynamo, &config.vwr.table_prefix)))
}

fn reach(config: &Config, endpoint: Option<&HttpUrl>) -> AwsConfig {
    AwsConfig {
        region: config.aws.region.clone().unwrap_or_default(),
        endpoint: endpoint.map(|url| url.expose().to_owned()),
        deadline: config.aws.deadline,
    }
}
