//! Confirmation that a change is made by the account's owner and not by someone at an unlocked
//! screen: the password, or a recent session for an account without one.

use std::time::Duration;

use urr_contracts::auth::{Error, Origin, OwnerProof};
use urr_db::Tx;
use urr_kernel::UserId;
use uuid::Uuid;

use super::{
    login::{Claim, Proof},
    store,
};
use crate::{
    Failure,
    accounts::{self, own, rules::invalid, store::Stored},
    service::Service,
};

/// How recent the session must be.
pub(crate) const JUST_NOW: Duration = Duration::from_mins(10);

/// A confirmed owner.
pub(crate) enum Owner {
    /// By password.
    Password(Proof),
    /// By session, which is checked on use.
    Session(UserId, Uuid),
}

/// Confirms that the caller owns the account. A wrong password counts as a failed attempt.
pub(crate) async fn prove(
    service: &Service,
    user: UserId,
    proof: &OwnerProof,
    origin: &Origin,
) -> Result<Owner, Failure> {
    let password = proof.password.as_ref().filter(|password| !password.expose().is_empty());
    let permit = password.map(|_| service.pool.enter()).transpose()?;
    let stored = service.db.read("auth.prove_owner", async |tx: &mut Tx<'_>| {
        accounts::store::get(&service.vault, tx, user).await
    });
    let stored = own(stored.await?)?;
    if stored.password_hash.is_none() {
        return Ok(Owner::Session(user, proof.session.ok_or(Error::SignInAgain)?));
    }
    let (Some(permit), Some(password)) = (permit, password) else {
        return Err(invalid("password", "Please enter your password").into());
    };
    let claim = Claim { email: &stored.account.email, stored: Some(&stored), origin };
    Ok(Owner::Password(claim.prove_again(service, permit, password.expose()).await?))
}

impl Owner {
    /// Locks the account. Fails if the confirmation is no longer valid.
    pub(crate) async fn accept(&self, service: &Service, tx: &mut Tx<'_>) -> Result<Stored, Failure> {
        let (user, session) = match self {
            Self::Password(proof) => return proof.accept(service, tx).await,
            Self::Session(user, session) => (*user, *session),
        };
        let stored = own(accounts::store::lock(&service.vault, tx, user).await?)?;
        let since = service.clock.now().before(JUST_NOW);
        // If a password was set meanwhile, the password is required.
        let good = stored.password_hash.is_none() && store::is_new(tx, session, user, since).await?;
        if good { Ok(stored) } else { Err(Error::SignInAgain.into()) }
    }

    /// After the commit: reverts the network's count in memory.
    pub(crate) fn settle(&self, service: &Service) {
        if let Self::Password(proof) = self {
            proof.settle(service);
        }
    }
}
