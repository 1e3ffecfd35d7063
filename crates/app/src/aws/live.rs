//! Clients of DynamoDB and SQS, created from the configuration.

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

/// Finds errors that parsing the settings cannot find, without calling AWS.
pub(crate) fn check(config: &Config) -> Result<(), Failure> {
    let clock = Clock::system();
    dynamo(config, &clock)?;
    queue(config, &clock).map(drop)
}

/// The sender of admission notices, if a queue is configured.
pub(crate) fn notices(
    config: &Config,
    clock: &Clock,
    tasks: &Tasks,
) -> Result<Option<Arc<dyn Notices>>, Failure> {
    Ok(queue(config, clock)?.map(|queue| Arc::new(Outgoing::start(queue, tasks)) as Arc<dyn Notices>))
}

/// Starts to read admission notices, if this process has the role `notices`.
pub(crate) fn read_notices(config: &Config, clock: &Clock, tasks: &Tasks) -> Result<(), Failure> {
    if config.roles.has(&domains::notices::ROLE)
        && let Some(queue) = queue(config, clock)?
    {
        let reader = notices::read(queue, tasks.clone(), clock.clone(), notices::log);
        tasks.spawn_essential("notices.read", reader);
    }
    Ok(())
}

/// The Tier 1 counters in DynamoDB, if configured.
pub(crate) fn counters(
    config: &Config,
    db: &Db,
    clock: &Clock,
    ids: &Ids,
) -> Result<Option<Counters>, Failure> {
    let Some((dynamo, prefix)) = dynamo(config, clock)? else { return Ok(None) };
    Ok(Some(Counters::dynamo_db(dynamo, prefix, Some(db.clone()), clock.clone(), ids.clone())))
}

/// Creates the table of Tier 1 counters, if this process has the role `vwr`.
pub(crate) async fn migrate(config: &Config) -> Result<(), Failure> {
    let Some((dynamo, prefix)) = dynamo(config, &Clock::system())? else { return Ok(()) };
    if !config.roles.has(&domains::vwr::ROLE) {
        return Ok(());
    }
    let table = urr_vwr::table(prefix);
    let made = urr_vwr::create_table(&dynamo, prefix).await;
    let made = made.map_err(|error| Failure::because(format!("the table {table}"), &error))?;
    say!("vwr: table {table} {}", if made { "created" } else { "exists" });
    Ok(())
}

/// The checks of `urr doctor`: a name, and a remark or an error.
pub(crate) async fn examine(config: &Config, clock: &Clock) -> Vec<(String, Result<String, String>)> {
    let mut found = Vec::new();
    match dynamo(config, clock) {
        Ok(None) => {}
        Ok(Some((dynamo, prefix))) => {
            let table = urr_vwr::table(prefix);
            let state = dynamo.table(&table).await.map_err(|error| urr_telemetry::chain(&error));
            let state = state.and_then(|state| match state {
                TableState::Ready => Ok("exists".to_owned()),
                TableState::Busy => Err("it is being created or changed; try again in a minute".to_owned()),
                TableState::Missing => Err("it does not exist; run `urr migrate`".to_owned()),
            });
            found.push((format!("DynamoDB table {table}"), state));
        }
        Err(Failure(lines)) => found.push(("DynamoDB".to_owned(), Err(lines.join("; ")))),
    }
    match queue(config, clock) {
        Ok(None) => {}
        Ok(Some(queue)) => {
            let depth = queue.depth().await.map_err(|error| urr_telemetry::chain(&error));
            let depth = depth.map(|depth| format!("exists, with about {depth} notices"));
            found.push(("SQS queue of notices".to_owned(), depth));
        }
        Err(Failure(lines)) => found.push(("SQS".to_owned(), Err(lines.join("; ")))),
    }
    found
}

/// The SQS queue for admission notices, if configured.
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
