//! Ending sessions, listing them, and telling whoever checks access tokens.

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
use crate::{
    accounts,
    service::{Service, admin, signed_in},
    trouble::Trouble,
};

/// A revocation is dated when its transaction begins and seen when it commits, which is cut off after a few seconds.
const LONGEST_COMMIT: Duration = Duration::from_secs(15);

/// The clocks of two machines differ, too: each by as much from a gateway's as a mark of that gateway may be old or early, one of them
/// ahead and the other behind. Whoever asks for news is told this much again, so that nothing is missed.
pub(crate) const OVERLAP: Duration = hop::LIFETIME.saturating_mul(2).saturating_add(LONGEST_COMMIT);

/// Ends the session that the request names, and all others if it says so: of the caller, and of whoever has the session of the
/// refresh token, because the access token may have expired.
pub(crate) async fn logout(service: &Service, ctx: &Ctx, request: &Logout) -> Result<Done, Trouble> {
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
            // A token of a session that is over says nothing about the others.
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
        Ok::<_, Trouble>(ended)
    })?;
    service.announce(&ended);
    Ok(Done {})
}

/// Ends one of the caller's sessions.
pub(crate) async fn end_session(service: &Service, ctx: &Ctx, request: EndSession) -> Result<Done, Trouble> {
    let user = signed_in(ctx)?;
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
) -> Result<Sessions, Trouble> {
    let (user, now) = (signed_in(ctx)?, service.clock.now());
    let limit = u32::try_from(MAX_SESSIONS).expect("a handful");
    let live = service.db.read("auth.sessions", async |tx: &mut Tx<'_>| {
        Ok::<_, Trouble>(store::live(tx, user, now, limit).await?)
    });
    let mut sessions = live.await?;
    for session in &mut sessions {
        session.current = Some(session.id) == request.current;
    }
    Ok(Sessions { sessions })
}

/// Sessions that ended since then.
pub(crate) async fn revocations(
    service: &Service,
    ctx: &Ctx,
    request: RevocationsSince,
) -> Result<Revocations, Trouble> {
    admin(ctx)?;
    let as_of = service.clock.now();
    let from = (request.since.before(OVERLAP), request.after.unwrap_or(Uuid::nil()));
    let limit = u32::try_from(MAX_REVOCATIONS_PER_PAGE).expect("some thousands");
    let lifetime = service.settings.access_lifetime;
    let found = service.db.read("auth.revocations", async |tx: &mut Tx<'_>| {
        Ok::<_, Trouble>(store::revoked(tx, from, lifetime, limit).await?)
    });
    let ended = found.await?;
    let next = ended.last().filter(|_| ended.len() == MAX_REVOCATIONS_PER_PAGE).map(|last| last.id);
    Ok(Revocations { ended, as_of, next })
}

/// The account an access token speaks for, if the token is good and its session is on. For clients that ask; whoever
/// checks tokens on every request knows the revocations instead.
pub(crate) async fn verify_token(service: &Service, token: &Sensitive) -> Result<Account, Trouble> {
    let now = service.clock.now();
    let verified = service.verifier.verify(token.expose(), now).map_err(|_| Error::TokenInvalid)?;
    service
        .db
        .read("auth.verify_token", async |tx: &mut Tx<'_>| {
            let stored = accounts::store::get(&service.vault, tx, verified.access.user).await?;
            let stored = stored.filter(accounts::store::Stored::is_open).ok_or(Error::TokenInvalid)?;
            let live = store::is_live(tx, verified.access.session, stored.account.id, now).await?;
            // What the token allows, which may be less than what the account is.
            let account = Account { role: verified.access.role, ..stored.account };
            if live { Ok(account) } else { Err(Error::TokenInvalid.into()) }
        })
        .await
}
