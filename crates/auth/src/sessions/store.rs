//! SQL statements and rows of sessions.

use std::{net::IpAddr, time::Duration};

use urr_contracts::auth::{LoginAttempt, LoginFailure, LoginMethod, Origin, Revocation, Session};
use urr_db::{EnumText, Error, Row, Tx, statements};
use urr_kernel::{Scalar, Timestamp, UserId};
use uuid::Uuid;

use super::rules::{REFRESH_LIFETIME, network, revoked_until};

statements! {
    /// Inserts a session.
    INSERT = "
        insert into sessions (id, account_id, method, address, agent, created_at, last_used_at, expires_at)
        values ($1, $2, $3, $4, $5, $6, $6, $7)";

    /// An account's sessions that can still be refreshed (used within 7 days), most recently used
    /// first.
    LIVE = "
        select id, method, address, agent, created_at, last_used_at, expires_at
          from sessions
         where account_id = $1 and ended_at is null and expires_at > $2 and last_used_at > $3
         order by last_used_at desc, id desc limit $4";

    /// Ends a session, unless it has ended.
    END = "
        update sessions set ended_at = $3, end_reason = $4
         where id = $1 and account_id = $2 and ended_at is null returning id";

    /// Ends every session of an account.
    END_ALL = "
        update sessions set ended_at = $2, end_reason = $3 where account_id = $1 and ended_at is null returning id";

    /// Records a session's use, unless it has ended.
    TOUCH = "
        update sessions set last_used_at = $2, address = $3, agent = $4
         where id = $1 and ended_at is null and expires_at > $2
        returning account_id, expires_at";

    /// Whether an account's session is live.
    IS_LIVE = "select id from sessions where id = $1 and account_id = $2 and ended_at is null and expires_at > $3";

    /// Whether an account's session is live and began after a given time.
    IS_NEW = "select id from sessions where id = $1 and account_id = $2 and ended_at is null and created_at >= $3";

    /// Inserts a refresh token.
    INSERT_TOKEN = "
        insert into refresh_tokens (token_hash, session_id, created_at, expires_at, grace_uses)
        values ($1, $2, $3, $4, 0)";

    /// Exchanges a refresh token. Only one caller gets a row.
    ROTATE = "
        update refresh_tokens set rotated_at = $2, rotated_by = $3
         where token_hash = $1 and rotated_at is null and expires_at > $2
        returning session_id";

    /// Counts a repeat by the client that exchanged a token a moment ago.
    GRACE = "
        update refresh_tokens set grace_uses = grace_uses + 1
         where token_hash = $1 and rotated_by = $2 and rotated_at >= $3 and grace_uses < $4
        returning session_id";

    /// Loads a token.
    TOKEN = "
        select t.session_id, s.account_id, t.expires_at, t.rotated_at, t.rotated_by
          from refresh_tokens t join sessions s on s.id = t.session_id
         where t.token_hash = $1";

    /// Inserts a revocation.
    REVOKE = "insert into revocations (id, account_id, session_id, at) values ($1, $2, $3, $4)";

    /// Recent revocations.
    REVOKED = "
        select id, account_id, session_id, at from revocations where at >= $1 and id > $2 order by id limit $3";

    /// Inserts a sign-in attempt; no row if the account does not exist. The same statement runs for
    /// known and unknown addresses. PostgreSQL cannot infer the types of selected parameters.
    NOTE =
        sqlite "
        insert into login_history (id, account_id, at, address, network, agent, method, failure)
        select $1, id, $3, $4, $5, $6, $7, $8 from accounts where id = $2"
        postgres "
        insert into login_history (id, account_id, at, address, network, agent, method, failure)
        select $1::uuid, id, $3::timestamptz, $4::text, $5::text, $6::text, $7::text, $8::text from accounts where id = $2";

    /// An account's attempts before a given one, newest first.
    HISTORY = "
        select id, at, address, agent, method, failure
          from login_history where account_id = $1 and id < $2 order by id desc limit $3";

    /// Whether there was a sign-in to the account from this network.
    KNOWN = "
        select network from login_history where account_id = $1 and network = $2 and failure is null limit 1";

    /// Whether there was a sign-in from this network with all factors of the account.
    KNOWN_IN_FULL = "
        select network from login_history
         where account_id = $1 and network = $2 and failure is null and method <> $3 limit 1";
}

/// Why a session ended, for investigations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    Logout,
    EndedByUser,
    TooMany,
    TokenReused,
    PasswordChanged,
    RoleChanged,
    SecondFactorChanged,
    AccountClosed,
}
urr_db::text_enum! {
    EndReason {
        Logout = "logout",
        EndedByUser = "ended_by_user",
        TooMany = "too_many",
        TokenReused = "token_reused",
        PasswordChanged = "password_changed",
        RoleChanged = "role_changed",
        SecondFactorChanged = "second_factor_changed",
        AccountClosed = "account_closed",
    }
}

/// Inserts a session.
pub(crate) async fn insert(
    tx: &mut Tx<'_>,
    id: Uuid,
    account: UserId,
    (method, origin): (LoginMethod, &Origin),
    (now, expires_at): (Timestamp, Timestamp),
) -> Result<(), Error> {
    let params: &[&dyn Scalar] =
        &[&id, &account, &EnumText(method), &origin.address, &origin.agent, &now, &expires_at];
    tx.execute(&INSERT, params).await?;
    Ok(())
}

/// An account's sessions that can still be refreshed (used within 7 days), most recently used
/// first, at most `limit`.
pub(crate) async fn live(
    tx: &mut Tx<'_>,
    account: UserId,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Session>, Error> {
    tx.all(&LIVE, &[&account, &now, &now.before(REFRESH_LIFETIME), &limit], session).await
}

fn session(row: &Row<'_>) -> Result<Session, Error> {
    let EnumText(method) = row.get(1)?;
    Ok(Session {
        id: row.get(0)?,
        method,
        origin: Origin { address: row.get(2)?, agent: row.get(3)? },
        created_at: row.get(4)?,
        last_used_at: row.get(5)?,
        expires_at: row.get(6)?,
        current: false,
    })
}

/// Ends one session of an account. Returns `false` if it does not exist or has ended.
pub(crate) async fn end(
    tx: &mut Tx<'_>,
    id: Uuid,
    account: UserId,
    now: Timestamp,
    reason: EndReason,
) -> Result<bool, Error> {
    let ended: Option<Uuid> = tx.optional(&END, &[&id, &account, &now, &reason], |row| row.get(0)).await?;
    Ok(ended.is_some())
}

/// Ends every session of an account and returns their ids.
pub(crate) async fn end_all(
    tx: &mut Tx<'_>,
    account: UserId,
    now: Timestamp,
    reason: EndReason,
) -> Result<Vec<Uuid>, Error> {
    tx.all(&END_ALL, &[&account, &now, &reason], |row| row.get(0)).await
}

/// Records a session's use. Returns its account and expiry, or `None` if it has ended.
pub(crate) async fn touch(
    tx: &mut Tx<'_>,
    id: Uuid,
    origin: &Origin,
    now: Timestamp,
) -> Result<Option<(UserId, Timestamp)>, Error> {
    tx.optional(&TOUCH, &[&id, &now, &origin.address, &origin.agent], |row| Ok((row.get(0)?, row.get(1)?)))
        .await
}

/// Whether an account's session is live.
pub(crate) async fn is_live(
    tx: &mut Tx<'_>,
    id: Uuid,
    account: UserId,
    now: Timestamp,
) -> Result<bool, Error> {
    Ok(tx.optional(&IS_LIVE, &[&id, &account, &now], |row| row.get::<Uuid>(0)).await?.is_some())
}

/// Whether an account's session is live and began after a given time.
pub(crate) async fn is_new(
    tx: &mut Tx<'_>,
    id: Uuid,
    account: UserId,
    since: Timestamp,
) -> Result<bool, Error> {
    Ok(tx.optional(&IS_NEW, &[&id, &account, &since], |row| row.get::<Uuid>(0)).await?.is_some())
}

/// Inserts a refresh token.
pub(crate) async fn insert_token(
    tx: &mut Tx<'_>,
    hash: &Vec<u8>,
    session: Uuid,
    (now, expires_at): (Timestamp, Timestamp),
) -> Result<(), Error> {
    tx.execute(&INSERT_TOKEN, &[hash, &session, &now, &expires_at]).await?;
    Ok(())
}

/// Exchanges a token for its session. `None`: it is unknown, expired or already exchanged.
pub(crate) async fn rotate(
    tx: &mut Tx<'_>,
    hash: &Vec<u8>,
    now: Timestamp,
    client: &Vec<u8>,
) -> Result<Option<Uuid>, Error> {
    tx.optional(&ROTATE, &[hash, &now, client], |row| row.get(0)).await
}

/// The session of a token that the same client exchanged within `grace`.
pub(crate) async fn grace(
    tx: &mut Tx<'_>,
    hash: &Vec<u8>,
    client: &Vec<u8>,
    (now, grace): (Timestamp, Duration),
    max_uses: u32,
) -> Result<Option<Uuid>, Error> {
    tx.optional(&GRACE, &[hash, client, &now.before(grace), &max_uses], |row| row.get(0)).await
}

/// A stored refresh token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) session: Uuid,
    pub(crate) account: UserId,
    pub(crate) expires_at: Timestamp,
    pub(crate) rotated_at: Option<Timestamp>,
    /// The client that exchanged it.
    pub(crate) rotated_by: Option<Vec<u8>>,
}

/// Loads a token.
pub(crate) async fn token(tx: &mut Tx<'_>, hash: &Vec<u8>) -> Result<Option<Token>, Error> {
    tx.optional(&TOKEN, &[hash], |row| {
        Ok(Token {
            session: row.get(0)?,
            account: row.get(1)?,
            expires_at: row.get(2)?,
            rotated_at: row.get(3)?,
            rotated_by: row.get(4)?,
        })
    })
    .await
}

/// Inserts a revocation.
pub(crate) async fn revoke(tx: &mut Tx<'_>, revocation: &Revocation) -> Result<(), Error> {
    let Revocation { id, user, session, at, .. } = revocation;
    tx.execute(&REVOKE, &[id, user, session, at]).await?;
    Ok(())
}

/// Revocations at `since` or later, in id order after `after`.
pub(crate) async fn revoked(
    tx: &mut Tx<'_>,
    (since, after): (Timestamp, Uuid),
    access_lifetime: Duration,
    limit: u32,
) -> Result<Vec<Revocation>, Error> {
    tx.all(&REVOKED, &[&since, &after, &limit], |row| {
        let at: Timestamp = row.get(3)?;
        let until = revoked_until(at, access_lifetime);
        Ok(Revocation { id: row.get(0)?, user: row.get(1)?, session: row.get(2)?, at, until })
    })
    .await
}

/// Inserts a sign-in attempt, if the account exists.
pub(crate) async fn note(tx: &mut Tx<'_>, account: UserId, attempt: &LoginAttempt) -> Result<(), Error> {
    let LoginAttempt { id, at, origin, method, failure } = attempt;
    let network = network(&origin.address).map(|network| network.to_string()).unwrap_or_default();
    let params: &[&dyn Scalar] = &[
        id,
        &account,
        at,
        &origin.address,
        &network,
        &origin.agent,
        &EnumText(*method),
        &failure.map(EnumText),
    ];
    tx.execute(&NOTE, params).await?;
    Ok(())
}

/// An account's attempts before a given one, newest first.
pub(crate) async fn history(
    tx: &mut Tx<'_>,
    account: UserId,
    before: Uuid,
    limit: u32,
) -> Result<Vec<LoginAttempt>, Error> {
    tx.all(&HISTORY, &[&account, &before, &limit], |row| {
        let (EnumText(method), failure): (_, Option<EnumText<LoginFailure>>) = (row.get(4)?, row.get(5)?);
        Ok(LoginAttempt {
            id: row.get(0)?,
            at: row.get(1)?,
            origin: Origin { address: row.get(2)?, agent: row.get(3)? },
            method,
            failure: failure.map(|EnumText(failure)| failure),
        })
    })
    .await
}

/// Whether the owner signed in from this network, or set the password there, within the retained
/// history.
pub(crate) async fn is_known(tx: &mut Tx<'_>, account: UserId, network: IpAddr) -> Result<bool, Error> {
    let network = network.to_string();
    let known: Option<String> = tx.optional(&KNOWN, &[&account, &network], |row| row.get(0)).await?;
    Ok(known.is_some())
}

/// The same, but a password reset does not count: it requires the mailbox alone and opens no
/// session.
pub(crate) async fn is_known_in_full(
    tx: &mut Tx<'_>,
    account: UserId,
    network: IpAddr,
) -> Result<bool, Error> {
    let (network, reset) = (network.to_string(), EnumText(LoginMethod::Reset));
    let known: Option<String> =
        tx.optional(&KNOWN_IN_FULL, &[&account, &network, &reset], |row| row.get(0)).await?;
    Ok(known.is_some())
}
