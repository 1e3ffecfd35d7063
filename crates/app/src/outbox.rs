//! `urr outbox`: lists waiting messages and dead letters, and publishes dead letters again.
//!
//! A message becomes a dead letter in one of two places: its publisher, if the broker refuses it,
//! or a consumer group that cannot apply it. It is stored in the database of that publisher or
//! consumer.

use std::sync::Arc;

use urr_bus::{
    Consumer, Source,
    admin::{self, Again},
};
use urr_jobs::Tasks;
use urr_kernel::{Clock, Ids, MessageId};

use crate::{
    cli::OutboxCommand,
    config::Config,
    failure::Failure,
    roles::Role,
    say::say,
    stores::Databases,
    wire::{self, Domains},
};

/// Runs the command on the databases of the domains that run here.
pub(crate) async fn outbox(config: &Config, command: OutboxCommand) -> Result<(), Failure> {
    let clock = Clock::system();
    let databases = Databases::open_migrated(config).await?;
    let domains = Domains::build(config, &databases, &clock, &Ids::random(clock.clone()), &Tasks::new())?;
    let bus = Bus { sources: wire::sources(&databases), consumers: domains.consumers(), clock };
    match command {
        OutboxCommand::Status => bus.status().await,
        OutboxCommand::Dead { domain, limit } => bus.of(domain).dead(limit).await,
        OutboxCommand::Republish { domain, id } => bus.of(domain).republish(id).await,
    }
}

struct Bus {
    sources: Vec<Source>,
    consumers: Vec<Arc<dyn Consumer>>,
    clock: Clock,
}

impl Bus {
    /// Restricts it to one domain.
    fn of(mut self, domain: Option<Role>) -> Self {
        if let Some(role) = domain {
            self.sources.retain(|source| source.domain == role.name);
            self.consumers.retain(|consumer| consumer.db().domain().name == role.name);
        }
        self
    }

    async fn status(&self) -> Result<(), Failure> {
        for (domain, backlog) in admin::backlog(&self.sources).await.map_err(failed)? {
            let since = backlog.oldest.map(|at| format!(", the oldest since {at}")).unwrap_or_default();
            say!("{domain}: {} waiting{since}; {} could not be published", backlog.waiting, backlog.dead);
        }
        for consumer in &self.consumers {
            let letters = admin::count_dead_letters(&**consumer).await.map_err(failed)?;
            say!("{}: {letters} could not be applied", consumer.group());
        }
        Ok(())
    }

    async fn dead(&self, limit: u32) -> Result<(), Failure> {
        let mut found = 0;
        for source in &self.sources {
            for dead in admin::unpublished(source, 0, limit).await.map_err(failed)? {
                let message = &dead.message;
                say!(
                    "{} {} {} not published since {}: {}",
                    message.id,
                    message.topic,
                    message.kind,
                    dead.since,
                    dead.error
                );
                found += 1;
            }
        }
        for consumer in &self.consumers {
            for letter in admin::dead_letters(&**consumer, None, limit).await.map_err(failed)? {
                let message = &letter.message;
                let (group, at) = (&letter.group, letter.dead_at);
                say!(
                    "{} {} {} not applied by {group} since {at}: {}",
                    message.id,
                    message.topic,
                    message.kind,
                    letter.error
                );
                found += 1;
            }
        }
        if found == 0 {
            say!("no dead letters");
        }
        Ok(())
    }

    async fn republish(&self, id: Option<MessageId>) -> Result<(), Failure> {
        let (mut sent, mut failures) = (0, Vec::new());
        let mut note = |whose: &str, again: Again| {
            let Again { sent: some, failed, is_cut } = again;
            sent += some;
            if some > 0 || !failed.is_empty() {
                say!("{whose}: {some} published again, {} failed again", failed.len());
            }
            let chained = |(id, error): (MessageId, admin::RepublishError)| {
                format!("{id}: {}", urr_telemetry::chain(&error))
            };
            failures.extend(failed.into_iter().map(chained));
            if is_cut {
                failures.push(format!("{whose}: there are more; run this again"));
            }
        };
        for source in &self.sources {
            note(source.domain, admin::publish_all_again(source, id, &self.clock).await.map_err(failed)?);
        }
        for consumer in &self.consumers {
            note(consumer.group(), admin::republish_all(consumer, id, &self.clock).await.map_err(failed)?);
        }
        say!("{sent} published again");
        if let (Some(id), 0, true) = (id, sent, failures.is_empty()) {
            failures.push(format!("{id} is not among the dead letters; `urr outbox dead` lists them"));
        }
        if failures.is_empty() { Ok(()) } else { Err(Failure(failures)) }
    }
}

fn failed(error: impl std::error::Error + 'static) -> Failure {
    Failure::because("the outbox cannot be read", &error)
}
