//! Sessions: opened by every kind of sign-in, extended by refresh tokens, and revoked everywhere at
//! once.
//!
//! Lock order: account, then session. Exchanging a refresh token locks the token, then the session,
//! and never the account.

pub(crate) mod ending;
pub(crate) mod history;
pub(crate) mod login;
pub(crate) mod owner;
pub(crate) mod refresh;
pub(crate) mod routes;
pub(crate) mod rules;
pub(crate) mod store;
pub(crate) mod sweep;

use urr_contracts::auth::{
    Account, Error, LoginAttempt, LoginMethod, LoginOutcome, Origin, Revocation, SecondFactorNeeded,
    Sensitive, SignedIn,
};
use urr_db::Tx;
use urr_kernel::{Role, Timestamp, UserId};
use urr_passes::{access::Access, challenge::Challenge, succession::TOKEN_LEN};
use uuid::Uuid;

use crate::{Failure, accounts, second_factor, service::Service};
use rules::{MAX_SESSIONS, SESSION_LIFETIME};
use store::EndReason;

/// A new session, and the sessions that were ended to make room for it.
pub(crate) struct Opened {
    pub(crate) signed_in: SignedIn,
    /// To be announced after the commit.
    pub(crate) ended: Vec<Revocation>,
}

/// The result of a correct first factor.
pub(crate) enum Entry {
    /// No second factor is needed.
    Opened(Box<Opened>),
    /// The account has a second factor.
    Challenged(SecondFactorNeeded),
}

impl Entry {
    /// After the commit: announces revocations and returns the outcome.
    pub(crate) fn settle(self, service: &Service) -> LoginOutcome {
        match self {
            Self::Opened(opened) => {
                service.announce(&opened.ended);
                LoginOutcome::SignedIn(Box::new(opened.signed_in))
            }
            Self::Challenged(needed) => LoginOutcome::SecondFactor(needed),
        }
    }
}

/// Opens a session after a correct first factor, or requires the second one. Every kind of sign-in
/// ends here, in the transaction that checked the proof, with the account locked.
pub(crate) async fn open(
    service: &Service,
    tx: &mut Tx<'_>,
    account: &Account,
    method: LoginMethod,
    origin: &Origin,
) -> Result<Entry, Failure> {
    // Read from the row, so that callers cannot forget it.
    if !second_factor::store::is_on(tx, account.id).await? {
        let opened = open_proven(service, tx, account, method, origin).await?;
        return Ok(Entry::Opened(Box::new(opened)));
    }
    let stored = accounts::store::get(&service.vault, tx, account.id).await?;
    let stored = stored.ok_or(Error::InvalidCredentials)?;
    let state = second_factor::state(service, &stored);
    let challenge = Challenge { user: account.id, method: urr_db::enum_text(&method), state };
    let (token, expires_at) = service.challenges.sign(&challenge, service.ids.next(), service.clock.now());
    Ok(Entry::Challenged(SecondFactorNeeded { challenge: Sensitive::new(token), expires_at }))
}

/// Opens a session for an account whose owner has passed all factors, now or in the current
/// session.
pub(crate) async fn open_proven(
    service: &Service,
    tx: &mut Tx<'_>,
    account: &Account,
    method: LoginMethod,
    origin: &Origin,
) -> Result<Opened, Failure> {
    let now = service.clock.now();
    if !accounts::store::signed_in(tx, account.id, now).await? {
        return Err(Error::InvalidCredentials.into());
    }
    let ended = make_room(service, tx, account.id, now).await?;
    let (id, ends) = (service.ids.next::<Uuid>(), now.after(SESSION_LIFETIME));
    store::insert(tx, id, account.id, (method, origin), (now, ends)).await?;
    let attempt =
        LoginAttempt { id: service.ids.next(), at: now, origin: origin.clone(), method, failure: None };
    store::note(tx, account.id, &attempt).await?;
    let account = Account { status: urr_contracts::auth::AccountStatus::Active, ..account.clone() };
    let first = service.ids.bytes();
    let expires_at = keep(tx, &first, id, (now, ends)).await?;
    let signed_in = pair(service, account, id, (first, expires_at));
    Ok(Opened { signed_in, ended })
}

/// Ends the least recently used sessions to stay within the limit.
async fn make_room(
    service: &Service,
    tx: &mut Tx<'_>,
    account: UserId,
    now: Timestamp,
) -> Result<Vec<Revocation>, Failure> {
    // One more than the limit is enough: the account is locked while a session is opened.
    let limit = u32::try_from(MAX_SESSIONS + 1).expect("a handful");
    let live = store::live(tx, account, now, limit).await?;
    let mut ended = Vec::new();
    for session in live.iter().skip(MAX_SESSIONS - 1) {
        ended.extend(end(service, tx, account, session.id, EndReason::TooMany).await?);
    }
    Ok(ended)
}

/// Inserts the hash of a new refresh token. Returns its expiry.
async fn keep(
    tx: &mut Tx<'_>,
    token: &[u8; TOKEN_LEN],
    session: Uuid,
    (now, session_ends): (Timestamp, Timestamp),
) -> Result<Timestamp, Failure> {
    let expires_at = rules::refresh_expires_at(now, session_ends);
    store::insert_token(tx, &rules::hash(token), session, (now, expires_at)).await?;
    Ok(expires_at)
}

/// A refresh token with a new access token of its session.
fn pair(
    service: &Service,
    account: Account,
    session: Uuid,
    (refresh_token, refresh_expires_at): ([u8; TOKEN_LEN], Timestamp),
) -> SignedIn {
    let (now, role) = (service.clock.now(), role(service, &account));
    let access = Access { user: account.id, role, email: Some(account.email.clone()), session };
    SignedIn {
        session,
        access_token: Sensitive::new(service.signer.sign(&access, service.ids.next(), now)),
        access_expires_at: now.after(service.settings.access_lifetime),
        refresh_token: rules::token(refresh_token),
        refresh_expires_at,
        account,
    }
}

/// The role of an account's sessions. All sessions of an account with a second factor were opened
/// with it, because turning it on ends the others.
fn role(service: &Service, account: &Account) -> Role {
    let unproven = service.settings.admin_needs_second_factor() && !account.second_factor;
    if account.role == Role::Admin && unproven { Role::UnprovenAdmin } else { account.role }
}

/// Ends a session and inserts its revocation. `None` if it had already ended.
pub(crate) async fn end(
    service: &Service,
    tx: &mut Tx<'_>,
    account: UserId,
    session: Uuid,
    reason: EndReason,
) -> Result<Option<Revocation>, Failure> {
    let now = service.clock.now();
    if !store::end(tx, session, account, now, reason).await? {
        return Ok(None);
    }
    Ok(Some(revoke(service, tx, account, session, now).await?))
}

/// Ends every session of an account.
pub(crate) async fn end_all(
    service: &Service,
    tx: &mut Tx<'_>,
    account: UserId,
    reason: EndReason,
) -> Result<Vec<Revocation>, Failure> {
    let now = service.clock.now();
    let mut ended = Vec::new();
    for session in store::end_all(tx, account, now, reason).await? {
        ended.push(revoke(service, tx, account, session, now).await?);
    }
    Ok(ended)
}

async fn revoke(
    service: &Service,
    tx: &mut Tx<'_>,
    user: UserId,
    session: Uuid,
    at: Timestamp,
) -> Result<Revocation, Failure> {
    let until = rules::revoked_until(at, service.settings.access_lifetime);
    let revocation = Revocation { id: service.ids.next(), user, session, at, until };
    store::revoke(tx, &revocation).await?;
    Ok(revocation)
}
