//! Sessions: signing in, refreshing, listing and ending them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, UserId};
use uuid::Uuid;

use super::{Account, Origin, SecondFactorNeeded, Sensitive};

/// Signs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// The account's address.
    pub email: String,
    /// Its password.
    pub password: Sensitive,
    /// Where the request comes from.
    pub origin: Origin,
}

/// What came of a sign-in whose first factor was right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum LoginOutcome {
    /// Signed in.
    SignedIn(Box<SignedIn>),
    /// A second factor is needed.
    SecondFactor(SecondFactorNeeded),
}

/// A pair of tokens and whose they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedIn {
    /// The account.
    pub account: Account,
    /// Which session.
    pub session: Uuid,
    /// The access token.
    pub access_token: Sensitive,
    /// When the access token stops being good.
    pub access_expires_at: Timestamp,
    /// The refresh token, good once.
    pub refresh_token: Sensitive,
    /// When the refresh token stops being good.
    pub refresh_expires_at: Timestamp,
}

/// Exchanges a refresh token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refresh {
    /// The newest refresh token of the session.
    pub refresh_token: Sensitive,
    /// Where the request comes from.
    pub origin: Origin,
}

/// Ends sessions. Names the session by its id, which the access token carries, or by its refresh token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logout {
    /// The session of the caller's access token. It must be the calling user's.
    pub session: Option<Uuid>,
    /// Any refresh token of the session.
    pub refresh_token: Option<Sensitive>,
    /// Also ends every other session of the calling user.
    pub everywhere: bool,
}

/// Asks for the calling user's sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListSessions {
    /// The session of the caller's access token, to be marked.
    pub current: Option<Uuid>,
}

/// The sessions of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sessions {
    /// The last used first.
    pub sessions: Vec<Session>,
}

/// One sign-in that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Which session.
    pub id: Uuid,
    /// How its user signed in.
    pub method: LoginMethod,
    /// Where it was last used from.
    pub origin: Origin,
    /// When it began.
    pub created_at: Timestamp,
    /// When it was last refreshed.
    pub last_used_at: Timestamp,
    /// When it ends at the latest.
    pub expires_at: Timestamp,
    /// Whether it is the one that asks.
    pub current: bool,
}

/// How somebody signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoginMethod {
    /// Address and password.
    Password,
    /// A mailed link that set a new password.
    Reset,
    /// A code, when the second factor was turned on or off.
    SecondFactor,
    /// An account at Google.
    Google,
    /// An account at Kakao.
    Kakao,
    /// An account at Naver.
    Naver,
}

/// Ends one session of the calling user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSession {
    /// Which session.
    pub session: Uuid,
}

/// Asks for a page of the calling user's sign-ins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListLogins {
    /// Only those older than this one: the last of the page before.
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
    /// Which attempt.
    pub id: Uuid,
    /// When.
    pub at: Timestamp,
    /// From where.
    pub origin: Origin,
    /// How.
    pub method: LoginMethod,
    /// Why it failed. `None`: it did not.
    pub failure: Option<LoginFailure>,
}

/// Why somebody could not sign in to an account that exists. Told to its owner alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoginFailure {
    /// The password was wrong.
    WrongPassword,
    /// The password was right and the code of the second factor was wrong.
    WrongCode,
}

/// Asks which sessions ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevocationsSince {
    /// The `as_of` of the last answer; for the first question, the lifetime of an access token ago.
    pub since: Timestamp,
    /// The `next` of the last answer, to go on with a list that did not fit.
    pub after: Option<Uuid>,
}

/// Sessions that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocations {
    /// Every one since then, and a few from before: those that were committed late must not be missed.
    pub ended: Vec<Revocation>,
    /// When the list was made: the next question's `since`, once there is no `next` any more.
    pub as_of: Timestamp,
    /// Where to go on if there are more.
    pub next: Option<Uuid>,
}

/// One session that ended before its access tokens did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    /// The revocation's own id.
    pub id: Uuid,
    /// Whose session.
    pub user: UserId,
    /// Which session: access tokens with this `sid` are refused.
    pub session: Uuid,
    /// When it ended.
    pub at: Timestamp,
    /// When its last access token expires, and the revocation may be forgotten.
    pub until: Timestamp,
}
