//! Listing, linking and unlinking accounts at providers. Changes require a confirmation by the
//! owner.

use urr_contracts::auth::{
    Done, Error, LinkAccount, LinkOutcome, LinkedAccount, LinkedAccounts, UnlinkAccount,
};
use urr_db::{Tx, transaction};
use urr_kernel::UserId;
use urr_rpc::Ctx;

use super::{nonce, once::Once, redirect, rules::Profile, store, subject_index};
use crate::{
    Failure,
    accounts::{self, own},
    mail,
    service::Service,
    sessions::{self, owner},
};

/// The ways in which the caller can sign in.
pub(crate) async fn linked_accounts(service: &Service, ctx: &Ctx) -> Result<LinkedAccounts, Failure> {
    let user = ctx.user()?;
    service
        .db
        .read("auth.linked_accounts", async |tx: &mut Tx<'_>| {
            let stored = own(accounts::store::get(&service.vault, tx, user).await?)?;
            let accounts = store::of_account(tx, user).await?;
            Ok(LinkedAccounts { password: stored.password_hash.is_some(), accounts })
        })
        .await
}

/// Links the provider account of a credential, or starts the redirect flow.
pub(crate) async fn link(
    service: &Service,
    ctx: &Ctx,
    request: &LinkAccount,
) -> Result<LinkOutcome, Failure> {
    let (user, port) = (ctx.user()?, service.social.port(request.provider)?);
    let origin = sessions::rules::clean(&request.origin);
    let owner = owner::prove(service, user, &request.proof, &origin).await?;
    let proof = match &request.credential {
        Some(credential) => {
            let nonce = nonce::expected(service, request.state_token.as_ref());
            let found = port.credential(credential, nonce.as_deref(), service.clock.now()).await;
            let found =
                found.map_err(|unknown| unknown.because_of(port.provider, Error::CredentialInvalid))?;
            Some((Once::credential(service, &found), found.profile))
        }
        None => None,
    };
    let linked = transaction!(service.db, "auth.link_account", async |tx: &mut Tx<'_>| {
        owner.accept(service, tx).await?;
        let Some((once, profile)) = &proof else { return Ok::<_, Failure>(None) };
        once.spend(service, tx).await?;
        insert(service, tx, user, profile).await.map(Some)
    })?;
    owner.settle(service);
    if let Some(linked) = linked {
        service.mails.nudge();
        return Ok(LinkOutcome::Linked { linked });
    }
    let redirect =
        redirect::leave(service, request.provider, request.return_to.as_deref(), Some(user)).await?;
    Ok(LinkOutcome::Redirect { redirect })
}

/// Links a provider account at the end of the redirect flow, whose start was confirmed by the
/// owner.
pub(super) async fn link_proved(
    service: &Service,
    account: UserId,
    profile: &Profile,
) -> Result<LinkedAccount, Failure> {
    let linked = transaction!(service.db, "auth.link_proved", async |tx: &mut Tx<'_>| {
        own(accounts::store::lock(&service.vault, tx, account).await?)?;
        insert(service, tx, account, profile).await
    })?;
    service.mails.nudge();
    Ok(linked)
}

/// Inserts a link; the account is locked. Linking the same account again changes nothing.
async fn insert(
    service: &Service,
    tx: &mut Tx<'_>,
    account: UserId,
    profile: &Profile,
) -> Result<LinkedAccount, Failure> {
    let (provider, now) = (profile.provider, service.clock.now());
    let subject = subject_index(service, profile);
    let linked = LinkedAccount { provider, linked_at: now, last_used_at: None };
    if store::insert(tx, service.ids.next(), account, (provider, &subject), (now, None)).await? {
        mail::queue(service, tx, account, mail::Kind::SignInChanged).await?;
        return Ok(linked);
    }
    match store::owner(tx, provider, &subject).await? {
        Some(owner) if owner == account => {
            let known = store::of_account(tx, account).await?;
            Ok(known.into_iter().find(|known| known.provider == provider).unwrap_or(linked))
        }
        Some(_) => Err(Error::LinkTaken.into()),
        None => Err(Error::AlreadyLinked.into()),
    }
}

/// Unlinks a provider account, unless it is the last way to sign in.
pub(crate) async fn unlink(service: &Service, ctx: &Ctx, request: &UnlinkAccount) -> Result<Done, Failure> {
    let (user, provider) = (ctx.user()?, request.provider);
    let origin = sessions::rules::clean(&request.origin);
    let owner = owner::prove(service, user, &request.proof, &origin).await?;
    transaction!(service.db, "auth.unlink_account", async |tx: &mut Tx<'_>| {
        let stored = owner.accept(service, tx).await?;
        if !store::remove(tx, user, provider).await? {
            return Err(Failure::Refused(Error::NotLinked));
        }
        // A disabled provider cannot be used to sign in.
        let left = store::of_account(tx, user).await?;
        let another = left.iter().any(|linked| service.social.port(linked.provider).is_ok());
        if stored.password_hash.is_none() && !another {
            return Err(Error::LastWayIn.into());
        }
        mail::queue(service, tx, user, mail::Kind::SignInChanged).await
    })?;
    owner.settle(service);
    service.mails.nudge();
    Ok(Done {})
}
