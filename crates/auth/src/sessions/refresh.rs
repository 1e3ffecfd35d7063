//! Exchanging refresh tokens. Each is good once; presenting it again ends the session for everybody.

use urr_contracts::auth::{AccountStatus, Error, Origin, Refresh, Revocation, SignedIn};
use urr_db::{Tx, transaction};
use uuid::Uuid;

use super::{
    end, issue,
    rules::{GRACE, MAX_GRACE_USES, clean, client, token_hash},
    store::{self, EndReason},
};
use crate::{accounts, mail, service::Service, trouble::Trouble};

/// What came of presenting a token. Both are committed.
enum Exchange {
    Renewed(Box<SignedIn>),
    Reused(Revocation),
}

/// Exchanges a refresh token for a new pair.
pub(crate) async fn refresh(service: &Service, request: &Refresh) -> Result<SignedIn, Trouble> {
    if request.refresh_token.expose().is_empty() {
        return Err(Error::RefreshRequired.into());
    }
    let hash = token_hash(&request.refresh_token).ok_or(Error::RefreshInvalid)?;
    let origin = clean(&request.origin);
    let exchange = transaction!(service.db, "auth.refresh", async |tx: &mut Tx<'_>| {
        exchange(service, tx, &hash, &origin).await
    })?;
    match exchange {
        Exchange::Renewed(signed_in) => Ok(*signed_in),
        // The session has ended and that is on disk. Only now may the error leave: as an error of the transaction it would
        // undo the very thing it reports.
        Exchange::Reused(revocation) => {
            service.announce(&[revocation]);
            service.mail_nudge.nudge();
            metrics::counter!("urr_auth_refresh_reused_total").increment(1);
            tracing::warn!(user = %revocation.user, session = %revocation.session, "a refresh token was used twice");
            Err(Error::RefreshReused.into())
        }
    }
}

async fn exchange(
    service: &Service,
    tx: &mut Tx<'_>,
    hash: &Vec<u8>,
    origin: &Origin,
) -> Result<Exchange, Trouble> {
    let (now, client) = (service.clock.now(), client(origin));
    if let Some(session) = store::rotate(tx, hash, now, &client).await? {
        return renew(service, tx, session, origin).await;
    }
    let token = store::token(tx, hash).await?.ok_or(Error::RefreshInvalid)?;
    if token.expires_at <= now || token.rotated_at.is_none() {
        return Err(Error::RefreshInvalid.into());
    }
    if let Some(session) = store::grace(tx, hash, &client, (now, GRACE), MAX_GRACE_USES).await? {
        return renew(service, tx, session, origin).await;
    }
    let ended = end(service, tx, token.account, token.session, EndReason::TokenReused).await?;
    let revocation = ended.ok_or(Error::RefreshInvalid)?;
    mail::queue(service, tx, token.account, mail::Kind::SessionStolen).await?;
    #[cfg(test)]
    if service.forgets_reuse {
        return Err(Error::RefreshReused.into());
    }
    Ok(Exchange::Reused(revocation))
}

async fn renew(
    service: &Service,
    tx: &mut Tx<'_>,
    session: Uuid,
    origin: &Origin,
) -> Result<Exchange, Trouble> {
    let now = service.clock.now();
    let (account, ends) = store::touch(tx, session, origin, now).await?.ok_or(Error::RefreshInvalid)?;
    let stored = accounts::store::get(&service.vault, tx, account).await?;
    let stored = stored
        .filter(|stored| stored.account.status == AccountStatus::Active)
        .ok_or(Error::RefreshInvalid)?;
    let signed_in = issue(service, tx, stored.account, session, (now, ends)).await?;
    Ok(Exchange::Renewed(Box::new(signed_in)))
}
