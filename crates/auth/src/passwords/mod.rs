//! Passwords: hashing in a bounded pool, changing, and resetting with a mailed link.

mod common;
mod hash;
mod pool;
pub(crate) mod routes;
pub(crate) mod rules;

use std::time::Duration;

use urr_contracts::auth::{
    ChangePassword, Done, Error, ForgotPassword, LoginAttempt, LoginMethod, ResetPassword, SignedIn,
};
use urr_db::{Tx, transaction};
use urr_rpc::Ctx;

use crate::{
    Failure,
    accounts::{self, own, verification},
    links::{self, Purpose},
    lockout, mail,
    service::Service,
    sessions::{self, Opened, login::Claim, store::EndReason},
};

pub use hash::HashCost;
pub(crate) use hash::{MAX_BCRYPT_COST, Verdict, check_import};
pub use pool::Hashing;
pub(crate) use pool::{HashPermit, NoHash, Pool};

/// Minimum interval between mails: enough for a waiting user, and too rare for harassment.
const ASK_EVERY: Duration = Duration::from_mins(1);

/// Sets a new password, ends every session and opens a new one for the caller, without asking for
/// the second factor again.
pub(crate) async fn change(
    service: &Service,
    ctx: &Ctx,
    request: &ChangePassword,
) -> Result<SignedIn, Failure> {
    let user = ctx.user()?;
    let (to_compare, to_make) = (service.pool.enter()?, service.pool.enter()?);
    let origin = sessions::rules::clean(&request.origin);
    let stored = service.db.read("auth.change_password.find", async |tx: &mut Tx<'_>| {
        accounts::store::get(&service.vault, tx, user).await
    });
    let stored = own(stored.await?)?;
    rules::check(request.new.expose(), &stored.account.email, &stored.account.name)?;
    let claim = Claim { email: &stored.account.email, stored: Some(&stored), origin: &origin };
    let proof = claim.prove_again(service, to_compare, request.current.expose()).await?;
    let hash = to_make.make(request.new.expose()).await?;
    let (opened, mut ended) = transaction!(service.db, "auth.change_password", async |tx: &mut Tx<'_>| {
        let account = proof.accept(service, tx).await?.account;
        let ended = replace(service, tx, account.id, &hash).await?;
        let opened = sessions::open_proven(service, tx, &account, LoginMethod::Password, &origin).await?;
        Ok::<_, Failure>((opened, ended))
    })?;
    proof.settle(service);
    let Opened { signed_in, ended: evicted } = opened;
    ended.extend(evicted);
    service.announce(&ended);
    service.mails.nudge();
    Ok(signed_in)
}

/// Replaces the password: ends every session, invalidates every reset link, and mails the owner.
async fn replace(
    service: &Service,
    tx: &mut Tx<'_>,
    account: urr_kernel::UserId,
    hash: &str,
) -> Result<Vec<urr_contracts::auth::Revocation>, Failure> {
    accounts::store::set_password(tx, account, hash, service.clock.now()).await?;
    links::void(service, tx, account, Purpose::ResetPassword).await?;
    mail::queue(service, tx, account, mail::Kind::PasswordChanged).await?;
    sessions::end_all(service, tx, account, EndReason::PasswordChanged).await
}

/// Mails a reset link to the owner of an address. For an unknown address the response and the work
/// are the same.
pub(crate) async fn forgot(service: &Service, request: &ForgotPassword) -> Result<Done, Failure> {
    let (email, now) = (accounts::rules::email(&request.email)?, service.clock.now());
    let key = service.vault.index("forgot", &email);
    transaction!(service.db, "auth.forgot_password", async |tx: &mut Tx<'_>| {
        let due = lockout::store::once(tx, &key, now, now.after(ASK_EVERY)).await?;
        let found = accounts::store::by_email(&service.vault, tx, &email).await?;
        let account = found.filter(|_| due).map_or(accounts::NOBODY, |stored| stored.account.id);
        mail::queue(service, tx, account, mail::Kind::ResetPassword).await
    })?;
    service.mails.nudge();
    Ok(Done {})
}

/// Sets a new password with the token of a mailed link, which also verifies the address.
pub(crate) async fn reset(service: &Service, request: &ResetPassword) -> Result<Done, Failure> {
    let permit = service.pool.enter()?;
    let (origin, purpose) = (sessions::rules::clean(&request.origin), Purpose::ResetPassword);
    let stored = service.db.read("auth.reset_password.find", async |tx: &mut Tx<'_>| {
        let user = links::owner(service, tx, &request.token, purpose).await?;
        accounts::store::get(&service.vault, tx, user).await
    });
    let account = stored.await?.filter(accounts::store::Stored::is_open).ok_or(Error::LinkInvalid)?.account;
    // A rejected password does not use up the link.
    rules::check(request.new.expose(), &account.email, &account.name)?;
    let hash = permit.make(request.new.expose()).await?;
    let ended = transaction!(service.db, "auth.reset_password", async |tx: &mut Tx<'_>| {
        let locked = accounts::store::lock(&service.vault, tx, account.id).await?;
        let locked = locked.filter(accounts::store::Stored::is_open).ok_or(Error::LinkInvalid)?;
        links::spend(service, tx, &request.token, purpose).await?;
        let now = service.clock.now();
        if !locked.account.email_verified {
            verification::drop_claims(service, tx, account.id).await?;
        }
        accounts::store::verified(tx, locked.account.id, now).await?;
        lockout::store::clear(tx, &lockout::key_of_strangers(service, &account.email)).await?;
        // Records this network as known, so that the owner can sign in from it while others guess
        // from elsewhere.
        let attempt = LoginAttempt {
            id: service.ids.next(),
            at: now,
            origin: origin.clone(),
            method: LoginMethod::Reset,
            failure: None,
        };
        sessions::store::note(tx, account.id, &attempt).await?;
        replace(service, tx, account.id, &hash).await
    })?;
    service.announce(&ended);
    service.mails.nudge();
    Ok(Done {})
}

#[cfg(test)]
mod tests;
