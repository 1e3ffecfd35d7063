//! Proof that it is the owner who changes something about an account, and not whoever found their screen: the password, or for
//! an account without one a session that has just begun.

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
    accounts::{self, own, rules::invalid, store::Stored},
    service::Service,
    trouble::Trouble,
};

/// How long after signing in a session proves its owner.
pub(crate) const JUST_NOW: Duration = Duration::from_mins(10);

/// The caller proved that the account is theirs.
pub(crate) enum Owner {
    /// With the password.
    Password(Proof),
    /// With a session, which has to be looked at.
    Session(UserId, Uuid),
}

/// Has the caller prove that the account is theirs. A wrong password counts.
pub(crate) async fn prove(
    service: &Service,
    user: UserId,
    proof: &OwnerProof,
    origin: &Origin,
) -> Result<Owner, Trouble> {
    let password = proof.password.as_ref().filter(|password| !password.expose().is_empty());
    let place = password.map(|_| service.pool.enter()).transpose()?;
    let stored = service.db.read("auth.prove_owner", async |tx: &mut Tx<'_>| {
        accounts::store::get(&service.vault, tx, user).await
    });
    let stored = own(stored.await?)?;
    if stored.password_hash.is_none() {
        return Ok(Owner::Session(user, proof.session.ok_or(Error::SignInAgain)?));
    }
    let (Some(place), Some(password)) = (place, password) else {
        return Err(invalid("password", "Please enter your password").into());
    };
    let claim = Claim { email: &stored.account.email, stored: Some(&stored), origin };
    Ok(Owner::Password(claim.prove_again(service, place, password.expose()).await?))
}

impl Owner {
    /// Locks the account, if the proof is still good.
    pub(crate) async fn accept(&self, service: &Service, tx: &mut Tx<'_>) -> Result<Stored, Trouble> {
        let (user, session) = match self {
            Self::Password(proof) => return proof.accept(service, tx).await,
            Self::Session(user, session) => (*user, *session),
        };
        let stored = own(accounts::store::lock(&service.vault, tx, user).await?)?;
        let since = service.clock.now().before(JUST_NOW);
        // A password that was set meanwhile is the better proof.
        let good = stored.password_hash.is_none() && store::is_new(tx, session, user, since).await?;
        if good { Ok(stored) } else { Err(Error::SignInAgain.into()) }
    }

    /// After the commit: the attempt was none of a guesser.
    pub(crate) fn settle(&self, service: &Service) {
        if let Self::Password(proof) = self {
            proof.settle(service);
        }
    }
}
