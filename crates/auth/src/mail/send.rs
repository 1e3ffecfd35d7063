//! Sends waiting mails.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use urr_db::{Tx, transaction};
use urr_jobs::{Backoff, BoxError, Nudge, Outcome, Reconciler};

use super::{
    Kind, Mail, MailError,
    store::{self, Due, State},
    texts,
};
use crate::{accounts, links, service::Service, trouble::Trouble};

/// Mails one run sends, side by side. A mailer gives up after 20 s, so a run ends well within its minute.
const BATCH: u32 = 20;

/// Of those, mails to set a new password go before all others: somebody waits for one, and a flood of registrations must not be able
/// to delay it. Half of a run, so that a flood of these leaves room for others, too.
const URGENT: u32 = BATCH / 2;

/// How long a mailer may take for one mail. Its own limits are shorter; this one is for a mailer that forgot.
const TIME_LIMIT: Duration = Duration::from_secs(25);

/// Waits between attempts: 1, 2, 4 … minutes, at most an hour.
const BACKOFF: Backoff = Backoff { first: Duration::from_mins(1), max: Duration::from_hours(1) };

/// After that many attempts, about five hours, the mail is given up: its link is of no use to anybody any more.
const MAX_ATTEMPTS: u32 = 10;

/// The longest account of what went wrong that is kept.
const MAX_TROUBLE_CHARS: usize = 300;

/// The reconciler behind mails.
pub(crate) struct Send(pub(crate) Arc<Service>);

#[async_trait]
impl Reconciler for Send {
    fn name(&self) -> &'static str {
        "auth.mail"
    }

    fn period(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn nudge(&self) -> Option<Nudge> {
        Some(self.0.mail_nudge.clone())
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        let done = self.0.send_mails().await?;
        Ok(Outcome::batch(done, u64::from(BATCH)))
    }
}

impl Service {
    /// Sends a batch of mails. Answers with how many were due.
    pub(crate) async fn send_mails(&self) -> Result<u64, Trouble> {
        let now = self.clock.now();
        let due = self.db.read("auth.mails_due", async |tx: &mut Tx<'_>| {
            let urgent = store::due_of_kind(tx, Kind::ResetPassword, now, URGENT).await?;
            Ok::<_, Trouble>(in_turn(urgent, store::due(tx, now, BATCH).await?))
        });
        let due = due.await?;
        for sent in join_all(due.iter().map(|mail| self.send_mail(mail))).await {
            sent?;
        }
        Ok(due.len() as u64)
    }

    async fn send_mail(&self, due: &Due) -> Result<(), Trouble> {
        let Some(mail) = self.write_mail(due).await? else { return Ok(()) };
        let sent = tokio::time::timeout(TIME_LIMIT, self.mailer.send(mail)).await;
        let sent = sent.unwrap_or_else(|late| Err(MailError::Temporary(late.into())));
        let attempt = due.attempts + 1;
        let (state, trouble) = match &sent {
            Ok(()) => (State::Sent, None),
            Err(error) => {
                let trouble = urr_telemetry::chain(error);
                tracing::warn!(mail = %due.id, kind = due.kind.as_str(), attempt, error = trouble, "a mail was not sent");
                if attempt < MAX_ATTEMPTS && matches!(error, MailError::Temporary(_)) {
                    count(due.kind, "deferred");
                    return Ok(());
                }
                (State::Failed, Some(trouble.chars().take(MAX_TROUBLE_CHARS).collect::<String>()))
            }
        };
        count(due.kind, state.as_str());
        self.finish_mail(due, state, trouble.as_deref()).await
    }

    /// Takes the mail and writes its text. Nothing if somebody else has it, or nobody is left to read it.
    async fn write_mail(&self, due: &Due) -> Result<Option<Mail>, Trouble> {
        let now = self.clock.now();
        let next_at = now.after(BACKOFF.delay(due.attempts + 1, self.clock.ticks()));
        transaction!(self.db, "auth.write_mail", async |tx: &mut Tx<'_>| {
            if !store::claim(tx, due, next_at).await? {
                return Ok(None);
            }
            let found = accounts::store::get(&self.vault, tx, due.account).await?;
            let wanted = found.filter(|stored| {
                stored.is_open() && !(due.kind == Kind::VerifyEmail && stored.account.email_verified)
            });
            let Some(stored) = wanted else {
                store::finish(tx, due.id, State::Failed, now, Some("nobody needs it any more")).await?;
                return Ok(None);
            };
            let carried = match due.kind.purpose() {
                Some(purpose) => Some(links::make(self, tx, due.account, purpose).await?),
                None => None,
            };
            let account = &stored.account;
            let (subject, text) = texts::write(due.kind, account, &self.settings.site_url, carried.as_ref());
            Ok::<_, Trouble>(Some(Mail { id: due.id, to: account.email.clone(), subject, text, at: now }))
        })
    }

    async fn finish_mail(&self, due: &Due, state: State, trouble: Option<&str>) -> Result<(), Trouble> {
        let now = self.clock.now();
        transaction!(self.db, "auth.finish_mail", async |tx: &mut Tx<'_>| {
            Ok(store::finish(tx, due.id, state, now, trouble).await?)
        })
    }
}

/// One batch: urgent mails first, then whatever has waited longest.
fn in_turn(urgent: Vec<Due>, longest: Vec<Due>) -> Vec<Due> {
    let mut due = urgent;
    for mail in longest {
        if due.len() < BATCH as usize && due.iter().all(|other| other.id != mail.id) {
            due.push(mail);
        }
    }
    due
}

fn count(kind: Kind, outcome: &'static str) {
    metrics::counter!("urr_auth_mails_total", "kind" => kind.as_str(), "outcome" => outcome).increment(1);
}
