//! Ending and listing sessions, and the list of revocations.

use std::time::Duration;

use urr_contracts::auth::{
    Account, Done, EndSession, Error, ListSessions, Logout, MAX_REVOCATIONS_PER_PAGE, Revocations,
    RevocationsSince, Sensitive, Sessions,
};
use urr_db::{Tx, transaction};
use urr_kernel::UserId;
use urr_passes::hop;
use urr_rpc::Ctx;
use uuid::Uuid;

use super::{
    end, end_all,
    rules::{MAX_SESSIONS, token_hash},
    store::{self, EndReason},
};
use crate::{Failure, accounts, service::Service};

/// A revocation is dated at the start of its transaction and visible after the commit. A commit is
/// cut off after a few seconds.
const LONGEST_COMMIT: Duration = Duration::from_secs(15);

/// Clocks of machines differ too: each by at most the lifetime of a hop header from the gateway's,
/// in either direction. Each response repeats the revocations of this period, so that pollers miss
/// none.
const OVERLAP: Duration = hop::LIFETIME.saturating_mul(2).saturating_add(LONGEST_COMMIT);

/// Ends the session of the access token and that of the refresh token; with `everywhere`, all
/// sessions of their accounts. The refresh token counts too, because the access token may have
/// expired.
pub(crate) async fn logout(service: &Service, ctx: &Ctx, request: &Logout) -> Result<Done, Failure> {
    let user = ctx.actor.user();
    let hash = request.refresh_token.as_ref().and_then(token_hash);
    let ended = transaction!(service.db, "auth.logout", async |tx: &mut Tx<'_>| {
        let mut named: Vec<(UserId, Uuid)> = Vec::new();
        let mut owners: Vec<UserId> = user.into_iter().collect();
        if let (Some(user), Some(session)) = (user, request.session) {
            named.push((user, session));
        }
        if let Some(hash) = &hash
            && let Some(token) = store::token(tx, hash).await?
        {
            named.push((token.account, token.session));
            // The token of an ended session must not end other sessions.
            if store::is_live(tx, token.session, token.account, service.clock.now()).await? {
                owners.push(token.account);
            }
        }
        let mut ended = Vec::new();
        for (account, session) in &named {
            ended.extend(end(service, tx, *account, *session, EndReason::Logout).await?);
        }
        for owner in owners.into_iter().filter(|_| request.everywhere) {
            ended.extend(end_all(service, tx, owner, EndReason::Logout).await?);
        }
        Ok::<_, Failure>(ended)
    })?;
    service.announce(&ended);
    Ok(Done {})
}

/// Ends one of the caller's sessions.
pub(crate) async fn end_session(service: &Service, ctx: &Ctx, request: EndSession) -> Result<Done, Failure> {
    let user = ctx.user()?;
    let ended = transaction!(service.db, "auth.end_session", async |tx: &mut Tx<'_>| {
        end(service, tx, user, request.session, EndReason::EndedByUser).await
    })?;
    service.announce(&[ended.ok_or(Error::SessionNotFound)?]);
    Ok(Done {})
}

/// The caller's sessions.
pub(crate) async fn sessions(
    service: &Service,
    ctx: &Ctx,
    request: ListSessions,
) -> Result<Sessions, Failure> {
    let (user, now) = (ctx.user()?, service.clock.now());
    let limit = u32::try_from(MAX_SESSIONS).expect("a handful");
    let live = service.db.read("auth.sessions", async |tx: &mut Tx<'_>| {
        Ok::<_, Failure>(store::live(tx, user, now, limit).await?)
    });
    let mut sessions = live.await?;
    for session in &mut sessions {
        session.current = Some(session.id) == request.current;
    }
    Ok(Sessions { sessions })
}

/// Revocations since a given time.
pub(crate) async fn revocations(
    service: &Service,
    ctx: &Ctx,
    request: RevocationsSince,
) -> Result<Revocations, Failure> {
    ctx.require_admin()?;
    let as_of = service.clock.now();
    let from = (request.since.before(OVERLAP), request.after.unwrap_or(Uuid::nil()));
    let limit = u32::try_from(MAX_REVOCATIONS_PER_PAGE).expect("some thousands");
    let lifetime = service.settings.access_lifetime;
    let found = service.db.read("auth.revocations", async |tx: &mut Tx<'_>| {
        Ok::<_, Failure>(store::revoked(tx, from, lifetime, limit).await?)
    });
    let ended = found.await?;
    let next = ended.last().filter(|_| ended.len() == MAX_REVOCATIONS_PER_PAGE).map(|last| last.id);
    Ok(Revocations { ended, as_of, next })
}

/// Returns the account of a valid access token whose session has not ended. For clients; guards use
/// the list of revocations instead.
pub(crate) async fn verify_token(service: &Service, token: &Sensitive) -> Result<Account, Failure> {
    let now = service.clock.now();
    let verified = service.verifier.verify(token.expose(), now).map_err(|_| Error::TokenInvalid)?;
    service
        .db
        .read("auth.verify_token", async |tx: &mut Tx<'_>| {
            let stored = accounts::store::get(&service.vault, tx, verified.access.user).await?;
            let stored = stored.filter(accounts::store::Stored::is_open).ok_or(Error::TokenInvalid)?;
            let live = store::is_live(tx, verified.access.session, stored.account.id, now).await?;
            // The token's role, which may be lower than the account's.
            let account = Account { role: verified.access.role, ..stored.account };
            if live { Ok(account) } else { Err(Error::TokenInvalid.into()) }
        })
        .await
}
