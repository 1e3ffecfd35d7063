//! Refresh token rotation. Each token is valid once; presenting it again ends the session.
//!
//! The tokens of a session form one chain: each token's successor is derived from it
//! (`passes::succession`). A client that repeats a request within the [`GRACE`] period, because two
//! tabs woke up at once or a response was lost, gets the newest token of the chain, the same one it
//! would have got. So there is never a second chain that a thief could use unnoticed.

use urr_contracts::auth::{AccountStatus, Error, Origin, Refresh, Revocation, SignedIn};
use urr_db::{Tx, transaction};
use urr_kernel::{CommonError, Timestamp};
use urr_passes::succession::TOKEN_LEN;
use uuid::Uuid;

use super::{
    end, keep, pair,
    rules::{GRACE, MAX_GRACE_USES, clean, client, hash, token_bytes},
    store::{self, EndReason, Token},
};
use crate::{Failure, accounts, mail, service::Service};

/// The result of presenting a token. Both variants are committed.
enum Exchange {
    Renewed(Box<SignedIn>),
    Reused(Revocation),
}

/// Exchanges a refresh token for a new pair.
pub(crate) async fn refresh(service: &Service, request: &Refresh) -> Result<SignedIn, Failure> {
    if request.refresh_token.expose().is_empty() {
        return Err(Error::RefreshRequired.into());
    }
    let presented = token_bytes(&request.refresh_token).ok_or(Error::RefreshInvalid)?;
    let origin = clean(&request.origin);
    let exchange = transaction!(service.db, "auth.refresh", async |tx: &mut Tx<'_>| {
        exchange(service, tx, &presented, &origin).await
    })?;
    match exchange {
        Exchange::Renewed(signed_in) => Ok(*signed_in),
        // The revocation is committed. It must not be an error of the transaction, which would roll
        // it back.
        Exchange::Reused(revocation) => {
            service.announce(&[revocation]);
            service.mails.nudge();
            metrics::counter!("urr_auth_refresh_reused_total").increment(1);
            tracing::warn!(user = %revocation.user, session = %revocation.session, "refresh token reused: its session was ended and the owner notified by mail");
            Err(Error::RefreshReused.into())
        }
    }
}

async fn exchange(
    service: &Service,
    tx: &mut Tx<'_>,
    presented: &[u8; TOKEN_LEN],
    origin: &Origin,
) -> Result<Exchange, Failure> {
    let (now, client, kept) = (service.clock.now(), client(origin), hash(presented));
    if let Some(session) = store::rotate(tx, &kept, now, &client).await? {
        return renew(service, tx, (session, origin), Next::After(presented)).await;
    }
    let token = store::token(tx, &kept).await?.ok_or(Error::RefreshInvalid)?;
    if token.expires_at <= now || token.rotated_at.is_none() {
        return Err(Error::RefreshInvalid.into());
    }
    if let Some(session) = store::grace(tx, &kept, &client, (now, GRACE), MAX_GRACE_USES).await?
        && let Some(newest) = newest(service, tx, presented, &client).await?
    {
        return renew(service, tx, (session, origin), newest).await;
    }
    reuse(service, tx, &token).await
}

/// The refresh token to return.
enum Next<'t> {
    /// A new one, the successor of this one.
    After(&'t [u8; TOKEN_LEN]),
    /// A stored one, and its expiry.
    Kept([u8; TOKEN_LEN], Timestamp),
}

/// Returns the end of the chain after a token that this client exchanged a moment ago. `None`:
/// another client has continued it.
async fn newest(
    service: &Service,
    tx: &mut Tx<'_>,
    exchanged: &[u8; TOKEN_LEN],
    client: &Vec<u8>,
) -> Result<Option<Next<'static>>, Failure> {
    let mut last = *exchanged;
    // Bounded by the number of repeats that a client may make.
    for _ in 0..=MAX_GRACE_USES {
        // It was exchanged with a key that this process does not have. Another process can answer.
        let (next, token) = successor(service, tx, &last).await?.ok_or(CommonError::Unavailable)?;
        match token.rotated_by {
            None => return Ok(Some(Next::Kept(next, token.expires_at))),
            Some(other) if other != *client => return Ok(None),
            Some(_) => last = next,
        }
    }
    Ok(None)
}

/// The successor of an exchanged token, under any of the configured keys.
async fn successor(
    service: &Service,
    tx: &mut Tx<'_>,
    exchanged: &[u8; TOKEN_LEN],
) -> Result<Option<([u8; TOKEN_LEN], Token)>, Failure> {
    for candidate in service.succession.candidates(exchanged) {
        if let Some(token) = store::token(tx, &hash(&candidate)).await? {
            return Ok(Some((candidate, token)));
        }
    }
    Ok(None)
}

async fn renew(
    service: &Service,
    tx: &mut Tx<'_>,
    (session, origin): (Uuid, &Origin),
    next: Next<'_>,
) -> Result<Exchange, Failure> {
    let now = service.clock.now();
    let (account, ends) = store::touch(tx, session, origin, now).await?.ok_or(Error::RefreshInvalid)?;
    let stored = accounts::store::get(&service.vault, tx, account).await?;
    let stored = stored
        .filter(|stored| stored.account.status == AccountStatus::Active)
        .ok_or(Error::RefreshInvalid)?;
    let (token, expires_at) = match next {
        Next::After(presented) => {
            let next = service.succession.next(presented);
            (next, keep(tx, &next, session, (now, ends)).await?)
        }
        Next::Kept(token, expires_at) => (token, expires_at),
    };
    Ok(Exchange::Renewed(Box::new(pair(service, stored.account, session, (token, expires_at)))))
}

/// Handles a token that was exchanged before. The owner and a thief cannot be told apart, so the
/// session ends.
async fn reuse(service: &Service, tx: &mut Tx<'_>, token: &Token) -> Result<Exchange, Failure> {
    let ended = end(service, tx, token.account, token.session, EndReason::TokenReused).await?;
    let revocation = ended.ok_or(Error::RefreshInvalid)?;
    mail::queue(service, tx, token.account, mail::Kind::SessionStolen).await?;
    Ok(Exchange::Reused(revocation))
}

#[cfg(test)]
mod tests;
