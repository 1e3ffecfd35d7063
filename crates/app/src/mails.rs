//! `urr mails`: lists waiting and failed mails and retries failed ones. It never prints addresses
//! or texts.

use urr_db::Db;
use urr_kernel::Clock;
use urr_mail::admin;
use uuid::Uuid;

use crate::{cli::MailsCommand, config::Config, failure::Failure, roles::Role, say::say, stores::Databases};

/// Runs the command on the databases of the domains that run here.
pub(crate) async fn mails(config: &Config, command: MailsCommand) -> Result<(), Failure> {
    let databases = Databases::open_migrated(config).await?;
    let of = |domain: Option<Role>| {
        let wanted = move |(role, _): &(Role, &Db)| domain.is_none_or(|domain| *role == domain);
        databases.iter().filter(wanted).map(|(role, db)| (role.name, db))
    };
    match command {
        MailsCommand::Status => status(of(None)).await,
        MailsCommand::List { failed, domain, limit } => list(of(domain), failed, limit).await,
        MailsCommand::Retry { id, domain } => retry(of(domain), id).await,
    }
}

async fn status(domains: impl Iterator<Item = (&'static str, &Db)>) -> Result<(), Failure> {
    for (domain, db) in domains {
        let backlog = admin::backlog(db).await.map_err(unreadable)?;
        let since = backlog.oldest.map(|at| format!(", the oldest since {at}")).unwrap_or_default();
        say!("{domain}: {} waiting{since}; {} failed", backlog.waiting, backlog.failed);
    }
    Ok(())
}

async fn list(
    domains: impl Iterator<Item = (&'static str, &Db)>,
    failed: bool,
    limit: u32,
) -> Result<(), Failure> {
    let mut found = 0;
    for (domain, db) in domains {
        for mail in admin::list(db, failed, limit).await.map_err(unreadable)? {
            let admin::Listed { id, kind, state, attempts, created_at, next_at, last_error } = mail;
            let next = if failed { String::new() } else { format!(", next attempt {next_at}") };
            let error = last_error.map(|error| format!(": {error}")).unwrap_or_default();
            say!("{id} {domain} {kind} {state}, attempts {attempts}, queued {created_at}{next}{error}");
            found += 1;
        }
    }
    if found == 0 {
        say!("no {} mails", if failed { "failed" } else { "waiting" });
    }
    Ok(())
}

async fn retry(domains: impl Iterator<Item = (&'static str, &Db)>, id: Option<Uuid>) -> Result<(), Failure> {
    let (now, mut queued) = (Clock::system().now(), 0);
    for (domain, db) in domains {
        let again = admin::retry(db, id, now).await.map_err(unreadable)?;
        if again > 0 {
            say!("{domain}: {again} queued again");
        }
        if again >= u64::from(admin::RETRY_BATCH) {
            say!("{domain}: there may be more; run this again");
        }
        queued += again;
    }
    match id {
        Some(id) if queued == 0 => Err(Failure::new(format!(
            "{id} is not among the failed mails; `urr mails list --failed` lists them"
        ))),
        _ => {
            say!("{queued} queued again");
            Ok(())
        }
    }
}

fn unreadable(error: impl std::error::Error + 'static) -> Failure {
    Failure::because("the mails cannot be read", &error)
}
