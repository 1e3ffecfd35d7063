//! Identity verification through a provider; one account per person.
//!
//! The provider is called between two transactions, never within one. From the browser only the id
//! of a verification is accepted, which must have been started by this account.

pub(crate) mod portone;
pub(crate) mod provider;
pub(crate) mod routes;
pub(crate) mod rules;
pub(crate) mod sandbox;
pub(crate) mod store;

use std::{sync::Arc, time::Duration};

use urr_contracts::auth::{
    Account, CompleteIdentity, Error, IdentityOf, IdentitySource, IdentityStarted, KnownIdentity,
};
use urr_db::{Tx, transaction};
use urr_kernel::UserId;
use urr_rpc::Ctx;
use uuid::Uuid;

use crate::{
    Failure,
    accounts::{self, own},
    service::Service,
};
use provider::{Finding, IdentityProvider, Person, ProviderError, Window};

/// How long a verification can be completed: the user may have to find a phone and install an app.
const LIFETIME: Duration = Duration::from_mins(30);

/// Open verifications per account: several tabs, and a window closed by mistake.
const MAX_OPEN: u32 = 5;

/// Starts a verification for the caller.
pub(crate) async fn start(service: &Service, ctx: &Ctx) -> Result<IdentityStarted, Failure> {
    let (user, now) = (ctx.user()?, service.clock.now());
    let Window { source, store_id, channel_key } = provider(service)?.window();
    let (verification, expires_at) = (service.ids.next(), now.after(LIFETIME));
    transaction!(service.db, "auth.start_identity", async |tx: &mut Tx<'_>| {
        own(accounts::store::lock(&service.vault, tx, user).await?)?;
        Ok::<_, Failure>(store::begin(tx, verification, user, (now, expires_at), MAX_OPEN).await?)
    })?;
    Ok(IdentityStarted { verification, source, store_id, channel_key, expires_at })
}

fn provider(service: &Service) -> Result<&Arc<dyn IdentityProvider>, Error> {
    service.identity.as_ref().ok_or(Error::IdentityOff)
}

/// Loads the result from the provider and stores it.
pub(crate) async fn complete(
    service: &Service,
    ctx: &Ctx,
    request: CompleteIdentity,
) -> Result<Account, Failure> {
    let (user, verification) = (ctx.user()?, request.verification);
    let provider = provider(service)?;
    let found = service.db.read("auth.complete_identity.find", async |tx: &mut Tx<'_>| {
        if !store::is_open(tx, verification, user, service.clock.now()).await? {
            return Err(Failure::Refused(Error::IdentityInvalid));
        }
        accounts::store::get(&service.vault, tx, user).await
    });
    let account = own(found.await?)?.account;
    let finding = provider.look_up(verification, &account).await;
    let person = match finding.map_err(|error| unavailable(ctx, &error))? {
        Finding::Verified(person) => person,
        Finding::Pending => return Err(Error::IdentityPending.into()),
        Finding::Failed => return Err(Error::IdentityFailed.into()),
    };
    let source = provider.window().source;
    let account = transaction!(service.db, "auth.complete_identity", async |tx: &mut Tx<'_>| {
        keep(service, tx, (user, verification), (&person, source)).await
    })?;
    metrics::counter!("urr_auth_identities_total").increment(1);
    Ok(account)
}

fn unavailable(ctx: &Ctx, error: &ProviderError) -> Failure {
    let error = urr_telemetry::chain(error);
    tracing::error!(request_id = %ctx.request_id, error, "identity provider failed: the verification was refused with 503 and can be retried");
    metrics::counter!("urr_auth_identity_provider_failures_total").increment(1);
    Error::IdentityUnavailable.into()
}

/// Stores the identity. The account is locked; a unique index ensures that no other account has the
/// same person.
async fn keep(
    service: &Service,
    tx: &mut Tx<'_>,
    (user, verification): (UserId, Uuid),
    (person, source): (&Person, IdentitySource),
) -> Result<Account, Failure> {
    let (now, keys) = (service.clock.now(), (&service.vault, &service.ids));
    let mut account = own(accounts::store::lock(&service.vault, tx, user).await?)?.account;
    if !store::spend(tx, verification, user, now).await? {
        return Err(Error::IdentityInvalid.into());
    }
    let index = store::ci_index(&service.vault, &person.ci);
    match store::get(&service.vault, tx, user).await? {
        Some(kept) if kept.ci_index != index => return Err(Error::IdentityMismatch.into()),
        Some(_) => store::renew(keys, tx, user, (person, source), now).await?,
        None if store::insert(keys, tx, user, (person, source), now).await? => {}
        None => {
            let closed = store::closed_at(tx, &index).await?;
            let free_from = closed.map(|at| at.after(service.settings.erase_after));
            return Err(Error::IdentityTaken { free_from }.into());
        }
    }
    account.identity_verified_at = Some(now);
    Ok(account)
}

/// Returns a user's identity, as far as other roles need it.
pub(crate) async fn identity(
    service: &Service,
    ctx: &Ctx,
    request: IdentityOf,
) -> Result<KnownIdentity, Failure> {
    ctx.require_admin()?;
    let kept = service
        .db
        .read("auth.identity", async |tx: &mut Tx<'_>| store::get(&service.vault, tx, request.user).await);
    Ok(KnownIdentity { identity: kept.await?.map(|kept| kept.shown()) })
}
