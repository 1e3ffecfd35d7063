//! Closing accounts, erasing what was personal about them, and accounts that nobody uses.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use urr_contracts::auth::{DeleteAccount, Done, Error};
use urr_db::{Tx, statements, transaction};
use urr_jobs::{BoxError, Outcome, Reconciler};
use urr_kernel::{Role, UserId};
use urr_rpc::Ctx;
use uuid::Uuid;

use super::store;
use crate::{
    identity, second_factor,
    service::{Service, signed_in},
    sessions::{self, owner, store::EndReason},
    social,
    trouble::Trouble,
};

/// Accounts one run erases, each in a transaction of its own, or lets fall dormant, all in one.
const BATCH: u32 = 100;

/// Mails of an account whose copies are removed with it: a month of one every five minutes.
const MAX_MAILS: u32 = 10_000;

statements! {
    /// Accounts that were closed long enough ago.
    TO_ERASE = "
        select id from accounts where status = 'deleted' and erased_at is null and deleted_at <= $1
         order by deleted_at limit $2";

    /// Nothing personal is left.
    ERASE = "
        update accounts set email_index = null, email = null, name = null, phone = null, password_hash = null,
                            marketing = false, identity_verified_at = null, second_factor_at = null,
                            erased_at = $2, updated_at = $2
         where id = $1 and status = 'deleted' and erased_at is null";

    /// What hung on the account.
    ERASE_TOKENS = "
        delete from refresh_tokens where session_id in (select id from sessions where account_id = $1)";
    /// Where it was used.
    ERASE_SESSIONS = "delete from sessions where account_id = $1";
    /// Who tried to use it.
    ERASE_HISTORY = "delete from login_history where account_id = $1";
    /// What was sent to it.
    ERASE_LINKS = "delete from links where account_id = $1";
    /// What was to be sent to it.
    ERASE_MAILS = "delete from mails where account_id = $1";
    /// Which those were.
    MAILS = "select id from mails where account_id = $1 order by id limit $2";
    /// What its owner agreed to.
    ERASE_TERMS = "delete from terms_agreements where account_id = $1";

    /// Accounts that nobody signed in to for a long time.
    REST = "
        update accounts set status = 'dormant', updated_at = $2
         where id in (select id from accounts where status = 'active' and last_login_at <= $1
                       order by last_login_at limit $3)";
}

/// Closes the caller's account. Its sessions end at once.
pub(crate) async fn delete_account(
    service: &Service,
    ctx: &Ctx,
    request: &DeleteAccount,
) -> Result<Done, Trouble> {
    let user = signed_in(ctx)?;
    let origin = sessions::rules::clean(&request.origin);
    let owner = owner::prove(service, user, &request.proof, &origin).await?;
    let ended = transaction!(service.db, "auth.delete_account", async |tx: &mut Tx<'_>| {
        let admins = store::lock_admins(tx).await?;
        let account = owner.accept(service, tx).await?.account;
        if account.role == Role::Admin && admins == [account.id] {
            return Err(Trouble::Refused(Error::LastAdmin));
        }
        store::close(tx, user, service.clock.now()).await?;
        social::store::remove_all(tx, user).await?;
        sessions::end_all(service, tx, user, EndReason::AccountClosed).await
    })?;
    owner.settle(service);
    service.announce(&ended);
    Ok(Done {})
}

/// The reconciler behind erasing and resting.
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
        let (erased, dormant) = (self.0.erase_closed().await?, self.0.let_rest().await?);
        if erased + dormant > 0 {
            tracing::info!(erased, dormant, "closed accounts were erased, unused ones fell dormant");
        }
        Ok(Outcome::batch(erased.max(dormant), u64::from(BATCH)))
    }
}

impl Service {
    /// Erases accounts that were closed long enough ago. Answers with how many there were.
    pub(crate) async fn erase_closed(&self) -> Result<u64, Trouble> {
        let before = self.clock.now().before(self.settings.erase_after);
        let due = self.db.read("auth.to_erase", async |tx: &mut Tx<'_>| {
            tx.all(&TO_ERASE, &[&before, &BATCH], |row| row.get::<UserId>(0)).await
        });
        let due: Vec<UserId> = due.await.map_err(|error: urr_db::Error| error)?;
        for id in &due {
            self.erase(*id).await?;
        }
        Ok(due.len() as u64)
    }

    async fn erase(&self, id: UserId) -> Result<(), Trouble> {
        let now = self.clock.now();
        self.forget_mails(id).await?;
        transaction!(self.db, "auth.erase", async |tx: &mut Tx<'_>| {
            let parts = [
                &ERASE_TOKENS,
                &ERASE_SESSIONS,
                &ERASE_HISTORY,
                &ERASE_LINKS,
                &ERASE_MAILS,
                &ERASE_TERMS,
                &identity::store::ERASE_CHECKS,
                &identity::store::ERASE,
                &second_factor::store::REMOVE,
                &second_factor::store::REMOVE_CODES,
            ];
            for part in parts {
                tx.execute(part, &[&id]).await?;
            }
            tx.execute(&ERASE, &[&id, &now]).await?;
            Ok(())
        })
    }

    /// Removes mails that are kept here. Before the account forgets which they were: after a crash in between it is done again.
    async fn forget_mails(&self, id: UserId) -> Result<(), Trouble> {
        let mails = self.db.read("auth.mails_of", async |tx: &mut Tx<'_>| {
            tx.all(&MAILS, &[&id, &MAX_MAILS], |row| row.get::<Uuid>(0)).await
        });
        let mails: Vec<Uuid> = mails.await.map_err(|error: urr_db::Error| error)?;
        Ok(self.mailer.forget(&mails).await?)
    }

    /// Lets accounts fall dormant that nobody signed in to. Answers with how many did.
    pub(crate) async fn let_rest(&self) -> Result<u64, Trouble> {
        let now = self.clock.now();
        let before = now.before(self.settings.dormant_after);
        transaction!(self.db, "auth.let_rest", async |tx: &mut Tx<'_>| {
            Ok(tx.execute(&REST, &[&before, &now, &BATCH]).await?)
        })
    }
}
