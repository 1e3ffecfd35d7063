//! Verification of an e-mail address with a mailed link.

use std::time::Duration;

use urr_contracts::auth::{Done, Error, Sensitive, VerifyEmail};
use urr_db::{Tx, transaction};
use urr_kernel::UserId;
use urr_rpc::Ctx;

use super::{own, store};
use crate::{
    Failure,
    links::{self, Purpose},
    lockout, mail, second_factor,
    service::Service,
    sessions::{
        self,
        login::{Claim, Proof},
    },
    social,
};

const PURPOSE: Purpose = Purpose::VerifyEmail;

/// Minimum interval between verification mails.
const ASK_EVERY: Duration = Duration::from_mins(1);

/// Mails the caller a link, unless one was just sent or the address is already verified.
pub(crate) async fn request(service: &Service, ctx: &Ctx) -> Result<Done, Failure> {
    let (user, now) = (ctx.user()?, service.clock.now());
    let key = service.vault.index("verify", &user.to_string());
    transaction!(service.db, "auth.request_verification", async |tx: &mut Tx<'_>| {
        let stored = own(store::get(&service.vault, tx, user).await?)?;
        if !stored.account.email_verified && lockout::store::once(tx, &key, now, now.after(ASK_EVERY)).await?
        {
            mail::queue(service, tx, user, mail::Kind::VerifyEmail).await?;
        }
        Ok::<_, Failure>(())
    })?;
    service.mails.nudge();
    Ok(Done {})
}

/// Verifies an address with the token of a mailed link. The link proves access to the mailbox, not
/// ownership of the account: another person may have registered with this address and be waiting
/// for the click. So a session of the account or its password is required too. An owner of the
/// mailbox who has neither sets a new password, which ends all sessions.
pub(crate) async fn verify(service: &Service, ctx: &Ctx, request: &VerifyEmail) -> Result<Done, Failure> {
    let password = request.password.as_ref().filter(|password| !password.expose().is_empty());
    let proof = match password {
        Some(password) => Some(prove(service, request, password).await?),
        None => None,
    };
    transaction!(service.db, "auth.verify_email", async |tx: &mut Tx<'_>| {
        let user = links::owner(service, tx, &request.token, PURPOSE).await?;
        let stored = match &proof {
            Some(proof) => Some(proof.accept(service, tx).await?),
            None => store::lock(&service.vault, tx, user).await?.filter(store::Stored::is_open),
        };
        let account = stored.ok_or(Error::LinkInvalid)?.account;
        let is_theirs = proof.is_some() || ctx.actor.user() == Some(user);
        if !is_theirs && !account.email_verified {
            return Err(Failure::Refused(Error::ProofRequired));
        }
        links::spend(service, tx, &request.token, PURPOSE).await?;
        Ok(store::verified(tx, user, service.clock.now()).await?)
    })?;
    if let Some(proof) = proof {
        proof.settle(service);
    }
    Ok(Done {})
}

/// Verifies the account's password. A wrong one counts as a failed attempt.
async fn prove(service: &Service, request: &VerifyEmail, password: &Sensitive) -> Result<Proof, Failure> {
    let (permit, origin) = (service.pool.enter()?, sessions::rules::clean(&request.origin));
    let stored = service.db.read("auth.verify_email.find", async |tx: &mut Tx<'_>| {
        let user = links::owner(service, tx, &request.token, PURPOSE).await?;
        store::get(&service.vault, tx, user).await
    });
    let stored = stored.await?.filter(store::Stored::is_open).ok_or(Error::LinkInvalid)?;
    let claim = Claim { email: &stored.account.email, stored: Some(&stored), origin: &origin };
    claim.prove_again(service, permit, password.expose()).await
}

/// Until an address is verified, the account may have been registered by another person. Removes
/// what that person could use to get back in or to lock the owner out: linked accounts and the
/// second factor.
pub(crate) async fn drop_claims(service: &Service, tx: &mut Tx<'_>, user: UserId) -> Result<(), Failure> {
    let unlinked = social::store::remove_all(tx, user).await? > 0;
    let had_factor = second_factor::store::is_on(tx, user).await?;
    // This also removes an unconfirmed secret.
    second_factor::store::remove(tx, user, service.clock.now()).await?;
    if unlinked {
        mail::queue(service, tx, user, mail::Kind::SignInChanged).await?;
    }
    if had_factor {
        mail::queue(service, tx, user, mail::Kind::SecondFactorChanged).await?;
    }
    Ok(())
}
