//! Deletes expired data: tokens, sessions, revocations, attempts, links, verifications and history.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use urr_db::{Sql, Tx, statements, transaction};
use urr_jobs::{BoxError, Outcome, Reconciler};
use urr_kernel::Timestamp;

use super::rules::FORGET_TRIES_AFTER;
use crate::{Failure, service::Service};

/// Rows of each kind per run, each kind in its own transaction.
const BATCH: u32 = 1_000;

const DAY: Duration = Duration::from_hours(24);

/// A revocation is kept this much longer than its access tokens: clocks differ, and processes start
/// late.
const REVOCATION_MARGIN: Duration = Duration::from_hours(1);

statements! {
    /// Tokens that can no longer be used.
    TOKENS = "
        delete from refresh_tokens where token_hash in
            (select token_hash from refresh_tokens where expires_at <= $1 order by expires_at limit $2)";

    /// Sessions a day after their end; their tokens are deleted first.
    SESSIONS = "
        delete from sessions where id in
            (select id from sessions where expires_at <= $1
                and not exists (select 1 from refresh_tokens where session_id = sessions.id)
              order by expires_at limit $2)";

    /// Revocations whose access tokens have expired.
    REVOCATIONS = "
        delete from revocations where id in (select id from revocations where at <= $1 order by at limit $2)";

    /// Expired attempt counters. Their wait is over too: the maximum wait is shorter than their
    /// lifetime.
    ATTEMPTS = "
        delete from attempts where key in
            (select key from attempts where last_at <= $1 and (locked_until is null or locked_until <= $3)
              order by last_at limit $2)";

    /// Links a day after their expiry.
    LINKS = "
        delete from links where token_hash in
            (select token_hash from links where expires_at <= $1 order by expires_at limit $2)";

    /// Identity verifications a day after their expiry.
    CHECKS = "
        delete from identity_checks where id in
            (select id from identity_checks where expires_at <= $1 order by expires_at limit $2)";

    /// Sign-in history beyond its retention period.
    HISTORY = "
        delete from login_history where id in (select id from login_history where at <= $1 order by at limit $2)";
}

/// The reconciler that deletes expired data.
pub(crate) struct Sweep(pub(crate) Arc<Service>);

#[async_trait]
impl Reconciler for Sweep {
    fn name(&self) -> &'static str {
        "auth.sweep"
    }

    fn period(&self) -> Duration {
        Duration::from_mins(1)
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        let most = self.0.sweep().await?;
        Ok(Outcome::batch(most, u64::from(BATCH)))
    }
}

impl Service {
    /// Deletes a batch of each kind. Returns the size of the largest.
    pub(crate) async fn sweep(&self) -> Result<u64, Failure> {
        let now = self.clock.now();
        let revoked_before = now.before(self.settings.access_lifetime + REVOCATION_MARGIN);
        let parts: [(&'static str, &'static Sql, Timestamp); 6] = [
            ("auth.sweep_tokens", &TOKENS, now),
            ("auth.sweep_sessions", &SESSIONS, now.before(DAY)),
            ("auth.sweep_revocations", &REVOCATIONS, revoked_before),
            ("auth.sweep_links", &LINKS, now.before(DAY)),
            ("auth.sweep_identity_checks", &CHECKS, now.before(DAY)),
            ("auth.sweep_history", &HISTORY, now.before(self.settings.history_kept)),
        ];
        let mut most = 0;
        for (name, sql, before) in parts {
            let gone = transaction!(self.db, name, async |tx: &mut Tx<'_>| {
                Ok::<_, Failure>(tx.execute(sql, &[&before, &BATCH]).await?)
            })?;
            most = most.max(gone);
        }
        let gone = transaction!(self.db, "auth.sweep_attempts", async |tx: &mut Tx<'_>| {
            let before = now.before(FORGET_TRIES_AFTER);
            Ok::<_, Failure>(tx.execute(&ATTEMPTS, &[&before, &BATCH, &now]).await?)
        })?;
        Ok(most.max(gone))
    }
}
