//! The sender: claims due mails, composes and sends them, and records the result.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use serde_json::Value;
use urr_db::{Error, Tx, transaction};
use urr_jobs::{Backoff, BoxError, Nudge, Outcome, Reconciler};
use uuid::Uuid;

use crate::{
    Mail, MailError, Mails, Text, admin,
    store::{self, End},
};

/// Mails per run, sent concurrently. A transport times out after 20 s, so a run ends within a
/// minute.
const BATCH: u32 = 20;

/// Urgent mails that go first. At most half of a run, so that other mails are sent too.
const URGENT: u32 = BATCH / 2;

/// How long one attempt may take, composing included. The shortest wait between two attempts is 30
/// s (half of the first, see [`Backoff`]), so an attempt ends before the mail can be claimed again.
const TIME_LIMIT: Duration = Duration::from_secs(25);

/// Waits between attempts: 1, 2, 4 … minutes, at most an hour.
const BACKOFF: Backoff = Backoff { first: Duration::from_mins(1), max: Duration::from_hours(1) };

/// A mail fails after this many attempts, about five hours.
const MAX_ATTEMPTS: u32 = 10;

/// The longest stored error text.
const MAX_ERROR_CHARS: usize = 300;

/// A mail that the sender has claimed.
#[derive(Clone, Debug)]
pub struct Queued {
    /// The same for every attempt.
    pub id: Uuid,
    /// Which of the domain's templates.
    pub kind: String,
    /// The id of the recipient.
    pub recipient: Uuid,
    /// The values of the template, as queued.
    pub data: Value,
    /// Attempts made before this one.
    pub attempts: u32,
}

/// The result of composing a mail.
pub enum Draft {
    /// Send this.
    Send {
        /// The recipient's address.
        to: String,
        /// Subject and text.
        text: Text,
    },
    /// Do not send it, for this reason: the account was closed, for example.
    Drop(&'static str),
}

/// The domain's part of sending: looks up the address and renders the template. It runs once per
/// attempt and outside of any transaction; it may open one, or call another domain.
#[async_trait]
pub trait Compose: Send + Sync + 'static {
    /// Composes the mail. An error counts as a failed attempt.
    async fn compose(&self, mail: &Queued) -> Result<Draft, BoxError>;
}

/// Sends the mails of one domain. If several senders share a database, one of them claims each
/// mail.
pub struct Sender {
    mails: Mails,
    composer: Arc<dyn Compose>,
}

/// The result of one attempt.
enum Attempt {
    Sent,
    Dropped(&'static str),
    /// With the reason, which does not contain the address.
    Deferred(String),
    Failed(String),
}

#[async_trait]
impl Reconciler for Sender {
    fn name(&self) -> &'static str {
        "mail.send"
    }

    fn period(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn nudge(&self) -> Option<Nudge> {
        Some(self.mails.nudge.clone())
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        let sent = self.send_due().await?;
        let counts = self
            .mails
            .db
            .read("mail.counts", async |tx: &mut Tx<'_>| store::counts(tx, admin::MAX_COUNTED).await);
        let ((waiting, failed), domain) = (counts.await?, self.domain());
        metrics::gauge!("urr_mails_waiting", "domain" => domain).set(waiting);
        metrics::gauge!("urr_mails_failed", "domain" => domain).set(failed);
        Ok(Outcome::batch(sent, u64::from(BATCH)))
    }
}

impl Sender {
    /// Sends the mails that the domain queued.
    pub fn new(mails: Mails, composer: Arc<dyn Compose>) -> Self {
        Self { mails, composer }
    }

    /// Sends a batch. Returns the number of due mails.
    pub async fn send_due(&self) -> Result<u64, Error> {
        let Mails { db, clock, .. } = &self.mails;
        let now = clock.now();
        let due =
            db.read("mail.due", async |tx: &mut Tx<'_>| store::due(tx, now, URGENT, BATCH).await).await?;
        for sent in join_all(due.iter().map(|mail| self.send(mail))).await {
            sent?;
        }
        Ok(due.len() as u64)
    }

    async fn send(&self, mail: &Queued) -> Result<(), Error> {
        let Mails { db, clock, .. } = &self.mails;
        let attempt = mail.attempts + 1;
        let next_at = clock.now().after(BACKOFF.delay(attempt, clock.ticks()));
        let claimed =
            transaction!(db, "mail.claim", async |tx: &mut Tx<'_>| { store::claim(tx, mail, next_at).await });
        if !claimed? {
            return Ok(());
        }
        let late = |_| Attempt::Deferred(format!("it took longer than {} s", TIME_LIMIT.as_secs()));
        let outcome = tokio::time::timeout(TIME_LIMIT, self.attempt(mail)).await.unwrap_or_else(late);
        let outcome = match outcome {
            Attempt::Deferred(error) if attempt >= MAX_ATTEMPTS => Attempt::Failed(error),
            outcome => outcome,
        };
        self.report(mail, attempt, &outcome);
        let now = clock.now();
        transaction!(db, "mail.end", async |tx: &mut Tx<'_>| {
            match &outcome {
                Attempt::Sent => store::end(tx, mail.id, End::Sent, now, None).await,
                Attempt::Dropped(why) => store::end(tx, mail.id, End::Dropped, now, Some(why)).await,
                Attempt::Failed(error) => store::end(tx, mail.id, End::Failed, now, Some(error)).await,
                Attempt::Deferred(error) => store::defer(tx, mail.id, error).await,
            }
        })
    }

    async fn attempt(&self, mail: &Queued) -> Attempt {
        let (to, text) = match self.composer.compose(mail).await {
            Ok(Draft::Send { to, text }) => (to, text),
            Ok(Draft::Drop(why)) => return Attempt::Dropped(why),
            Err(error) => return Attempt::Deferred(shortened(&urr_telemetry::chain(&*error))),
        };
        let Text { subject, text } = text;
        let address = to.clone();
        let ready = Mail { id: mail.id, to, subject, text, at: self.mails.clock.now() };
        match self.mails.mailer.send(ready).await {
            Ok(()) => Attempt::Sent,
            Err(error) => {
                let why = shortened(&without(&urr_telemetry::chain(&error), &address));
                match error {
                    MailError::Temporary(_) => Attempt::Deferred(why),
                    MailError::Permanent(_) => Attempt::Failed(why),
                }
            }
        }
    }

    fn report(&self, mail: &Queued, attempt: u32, outcome: &Attempt) {
        let (domain, kind, id) = (self.domain(), mail.kind.as_str(), mail.id);
        let word = match outcome {
            Attempt::Sent => End::Sent.as_str(),
            Attempt::Dropped(why) => {
                tracing::info!(domain, mail = %id, kind, why, "mail dropped: it is not needed any more");
                End::Dropped.as_str()
            }
            Attempt::Deferred(error) => {
                tracing::warn!(domain, mail = %id, kind, attempt, error, "mail not sent; it will be tried again");
                "deferred"
            }
            Attempt::Failed(error) => {
                tracing::warn!(
                    domain, mail = %id, kind, attempt, error,
                    "mail failed: its recipient does not get it unless `urr mails retry` sends it again"
                );
                End::Failed.as_str()
            }
        };
        let kind = mail.kind.clone();
        metrics::counter!("urr_mails_total", "domain" => domain, "kind" => kind, "outcome" => word)
            .increment(1);
    }

    fn domain(&self) -> &'static str {
        self.mails.db.domain().name
    }
}

fn shortened(error: &str) -> String {
    error.chars().take(MAX_ERROR_CHARS).collect()
}

/// Removes the recipient's address from an error: mail servers repeat it in their replies, and it
/// must not be in the log or the table.
fn without(error: &str, address: &str) -> String {
    let (lower, address) = (error.to_ascii_lowercase(), address.to_ascii_lowercase());
    let (mut text, mut from) = (String::new(), 0);
    for (at, found) in lower.match_indices(&address).filter(|(_, found)| !found.is_empty()) {
        text.push_str(&error[from..at]);
        text.push_str("(recipient)");
        from = at + found.len();
    }
    text + &error[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_does_not_contain_the_address() {
        let error = "550 5.1.1 <Minji@Example.com>: unknown; minji@example.com rejected";
        let expected = "550 5.1.1 <(recipient)>: unknown; (recipient) rejected";
        assert_eq!(without(error, "minji@example.com"), expected);
        assert_eq!(without("연결 거부", "minji@example.com"), "연결 거부");
        assert_eq!(without("refused", ""), "refused");
    }
}
