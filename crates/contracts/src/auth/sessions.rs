//! Sessions: sign in, refresh, list and end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, UserId};
use uuid::Uuid;

use super::{Account, Origin, SecondFactorNeeded, Sensitive};

/// Signs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// E-mail address of the account.
    pub email: String,
    /// Password of the account.
    pub password: Sensitive,
    /// Origin of the request.
    pub origin: Origin,
}

/// Result of a sign-in whose first factor was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum LoginOutcome {
    /// Signed in.
    SignedIn(Box<SignedIn>),
    /// A second factor is needed.
    SecondFactor(SecondFactorNeeded),
}

/// A pair of tokens and their account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedIn {
    /// The account.
    pub account: Account,
    /// The session.
    pub session: Uuid,
    /// The access token.
    pub access_token: Sensitive,
    /// Expiry of the access token.
    pub access_expires_at: Timestamp,
    /// The refresh token; can be used once.
    pub refresh_token: Sensitive,
    /// Expiry of the refresh token.
    pub refresh_expires_at: Timestamp,
}

/// Exchanges a refresh token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refresh {
    /// The newest refresh token of the session.
    pub refresh_token: Sensitive,
    /// Origin of the request.
    pub origin: Origin,
}

/// Ends sessions. The session is given by its id, as in the access token, or by its refresh token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logout {
    /// The session of the caller's access token. It must be the calling user's.
    pub session: Option<Uuid>,
    /// Any refresh token of the session.
    pub refresh_token: Option<Sensitive>,
    /// Also ends every other session of the calling user.
    pub everywhere: bool,
}

/// Requests the calling user's sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListSessions {
    /// Session of the caller's access token; marked as current in the list.
    pub current: Option<Uuid>,
}

/// The sessions of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sessions {
    /// Most recently used first.
    pub sessions: Vec<Session>,
}

/// A session that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The session.
    pub id: Uuid,
    /// How the user signed in.
    pub method: LoginMethod,
    /// Origin of its last use.
    pub origin: Origin,
    /// Start of the session.
    pub created_at: Timestamp,
    /// Time of the last refresh.
    pub last_used_at: Timestamp,
    /// Latest end of the session.
    pub expires_at: Timestamp,
    /// Whether it is the caller's session.
    pub current: bool,
}

/// Sign-in method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoginMethod {
    /// E-mail address and password.
    Password,
    /// A mailed link that set a new password.
    Reset,
    /// A code, when the second factor is turned on or off.
    SecondFactor,
    /// Google account.
    Google,
    /// Kakao account.
    Kakao,
    /// Naver account.
    Naver,
}

/// Ends one session of the calling user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSession {
    /// The session.
    pub session: Uuid,
}

/// Requests one page of the calling user's sign-ins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListLogins {
    /// Only sign-ins older than this one: the last of the previous page.
    pub before: Option<Uuid>,
    /// 1 to [`MAX_HISTORY_PER_PAGE`](super::MAX_HISTORY_PER_PAGE).
    pub limit: u32,
}

/// A page of sign-ins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logins {
    /// Newest first.
    pub logins: Vec<LoginAttempt>,
}

/// One attempt to sign in to an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginAttempt {
    /// Id of the attempt.
    pub id: Uuid,
    /// Time of the attempt.
    pub at: Timestamp,
    /// Origin of the attempt.
    pub origin: Origin,
    /// Sign-in method.
    pub method: LoginMethod,
    /// Why it failed; `None` if it succeeded.
    pub failure: Option<LoginFailure>,
}

/// Why a sign-in to an existing account failed. Shown to its owner only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoginFailure {
    /// The password was wrong.
    WrongPassword,
    /// The password was right, but the code of the second factor was wrong.
    WrongCode,
}

/// Requests the sessions that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevocationsSince {
    /// `as_of` of the last reply; for the first request, now minus the lifetime of an access token.
    pub since: Timestamp,
    /// `next` of the last reply, to continue a list that did not fit.
    pub after: Option<Uuid>,
}

/// Ended sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocations {
    /// All since that time, and a few older ones, so that late commits are not missed.
    pub ended: Vec<Revocation>,
    /// Time of the list: `since` of the next request, once there is no `next`.
    pub as_of: Timestamp,
    /// Where to continue, if there are more.
    pub next: Option<Uuid>,
}

/// A session that ended before its access tokens expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    /// Id of the revocation.
    pub id: Uuid,
    /// User of the session.
    pub user: UserId,
    /// The session. Access tokens with this `sid` are rejected.
    pub session: Uuid,
    /// When it ended.
    pub at: Timestamp,
    /// Expiry of its last access token; after that the revocation can be deleted.
    pub until: Timestamp,
}
