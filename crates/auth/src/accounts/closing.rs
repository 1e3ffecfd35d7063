//! Closing accounts, erasing the personal data of closed ones, and marking unused ones as dormant.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use urr_contracts::auth::{DeleteAccount, Done, Error};
use urr_db::{Tx, statements, transaction};
use urr_jobs::{BoxError, Outcome, Reconciler};
use urr_kernel::{Role, Scalar, Timestamp, UserId};
use urr_rpc::Ctx;
use uuid::Uuid;

use super::store;
use crate::{
    Failure, identity, second_factor,
    service::Service,
    sessions::{self, owner, store::EndReason},
    social,
};

/// Accounts per run: erased in one transaction each, marked dormant in a single transaction.
pub(crate) const BATCH: u32 = 100;

/// A run stops after this many accounts for which the database timed out. A single timeout may be
/// caused by a large account; several mean that the database is down.
const MAX_UNANSWERED: u32 = 3;

statements! {
    /// Accounts whose retention period is over, after a given one.
    TO_ERASE = "
        select deleted_at, id from accounts
         where status = 'deleted' and erased_at is null and deleted_at <= $1 and (deleted_at, id) > ($2, $3)
         order by deleted_at, id limit $4";

    /// Removes the personal data from the account's row.
    ERASE = "
        update accounts set email_index = null, email = null, name = null, phone = null, password_hash = null,
                            marketing = false, identity_verified_at = null, second_factor_at = null,
                            erased_at = $2, updated_at = $2
         where id = $1 and status = 'deleted' and erased_at is null";

    /// Deletes the account's refresh tokens.
    ERASE_TOKENS = "
        delete from refresh_tokens where session_id in (select id from sessions where account_id = $1)";
    /// Deletes the account's sessions.
    ERASE_SESSIONS = "delete from sessions where account_id = $1";
    /// Deletes the account's sign-in history.
    ERASE_HISTORY = "delete from login_history where account_id = $1";
    /// Deletes the account's mailed links.
    ERASE_LINKS = "delete from links where account_id = $1";
    /// Deletes the account's consents.
    ERASE_TERMS = "delete from terms_agreements where account_id = $1";

    /// Marks unused accounts as dormant.
    REST = "
        update accounts set status = 'dormant', updated_at = $2
         where id in (select id from accounts where status = 'active' and last_login_at <= $1
                       order by last_login_at limit $3)";
}

/// Closes the caller's account and ends its sessions.
pub(crate) async fn delete_account(
    service: &Service,
    ctx: &Ctx,
    request: &DeleteAccount,
) -> Result<Done, Failure> {
    let user = ctx.user()?;
    let origin = sessions::rules::clean(&request.origin);
    let owner = owner::prove(service, user, &request.proof, &origin).await?;
    let ended = transaction!(service.db, "auth.delete_account", async |tx: &mut Tx<'_>| {
        let admins = store::lock_admins(tx).await?;
        let account = owner.accept(service, tx).await?.account;
        if account.role == Role::Admin && admins == [account.id] {
            return Err(Failure::Refused(Error::LastAdmin));
        }
        store::close(tx, user, service.clock.now()).await?;
        social::store::remove_all(tx, user).await?;
        sessions::end_all(service, tx, user, EndReason::AccountClosed).await
    })?;
    owner.settle(service);
    service.announce(&ended);
    Ok(Done {})
}

/// The reconciler that erases closed accounts and marks unused ones as dormant.
pub(crate) struct Tend(pub(crate) Arc<Service>);

#[async_trait]
impl Reconciler for Tend {
    fn name(&self) -> &'static str {
        "auth.tend_accounts"
    }

    fn period(&self) -> Duration {
        Duration::from_hours(1)
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        // A failure to erase must not stop accounts from becoming dormant.
        let (erased, dormant) = (self.0.erase_closed(BATCH).await, self.0.let_rest().await?);
        let (erased, limit) = (erased?, u64::from(BATCH));
        if erased.done + dormant > 0 {
            tracing::info!(
                erased = erased.done,
                dormant,
                "erased closed accounts and marked unused ones dormant"
            );
        }
        Ok(Outcome { done: erased.done + dormant, more: erased.more || dormant >= limit })
    }
}

impl Service {
    /// Erases accounts whose retention period is over. An account that cannot be erased is skipped;
    /// the next batch starts after it.
    pub(crate) async fn erase_closed(&self, limit: u32) -> Result<Outcome, Failure> {
        let (scan, before) = (&self.scans.closed, self.clock.now().before(self.settings.erase_after));
        let first = (Timestamp::from_micros(i64::MIN), UserId::from_uuid(Uuid::nil()));
        let after = scan.at().unwrap_or(first);
        let due = self.db.read("auth.to_erase", async |tx: &mut Tx<'_>| {
            let params: &[&dyn Scalar] = &[&before, &after.0, &after.1, &limit];
            tx.all(&TO_ERASE, params, |row| Ok((row.get(0)?, row.get(1)?))).await
        });
        let due: Vec<(Timestamp, UserId)> = due.await.map_err(|error: urr_db::Error| error)?;
        let (mut done, mut unanswered) = (0, 0);
        for row in &due {
            // Advance before the attempt, so that an account that exceeds the run's time limit is
            // skipped too.
            scan.pass(row);
            match self.erase(row.1).await {
                Ok(()) => done += 1,
                // The database is down, which says nothing about this account.
                Err(failure) if failure.cause().is_some_and(urr_db::Error::is_unavailable) => {
                    unanswered += 1;
                    if unanswered == MAX_UNANSWERED {
                        return Err(failure);
                    }
                }
                Err(failure) => scan.leave(row.1.as_uuid(), &failure),
            }
        }
        let more = due.len() as u64 >= u64::from(limit);
        if !more {
            scan.begin_anew();
        }
        Ok(Outcome { done, more })
    }

    async fn erase(&self, id: UserId) -> Result<(), Failure> {
        let now = self.clock.now();
        // Delete the mail copies before the rows that list them: after a crash in between, this
        // step runs again.
        self.mails.forget(id.as_uuid()).await?;
        transaction!(self.db, "auth.erase", async |tx: &mut Tx<'_>| {
            let parts = [
                &ERASE_TOKENS,
                &ERASE_SESSIONS,
                &ERASE_HISTORY,
                &ERASE_LINKS,
                &ERASE_TERMS,
                &identity::store::ERASE_CHECKS,
                &identity::store::ERASE,
                &second_factor::store::REMOVE,
                &second_factor::store::REMOVE_CODES,
            ];
            for part in parts {
                tx.execute(part, &[&id]).await?;
            }
            urr_mail::erase(tx, id.as_uuid()).await?;
            tx.execute(&ERASE, &[&id, &now]).await?;
            Ok(())
        })
    }

    /// Marks accounts without a recent sign-in as dormant. Returns how many.
    pub(crate) async fn let_rest(&self) -> Result<u64, Failure> {
        let now = self.clock.now();
        let before = now.before(self.settings.dormant_after);
        transaction!(self.db, "auth.let_rest", async |tx: &mut Tx<'_>| {
            Ok(tx.execute(&REST, &[&before, &now, &BATCH]).await?)
        })
    }
}

#[cfg(test)]
mod tests;
