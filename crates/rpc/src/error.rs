//! Error enums that cross the wire unchanged, and the only mapping from kinds to status codes.

use std::time::Duration;

use http::StatusCode;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use urr_http::{Problem, RESERVED};
use urr_kernel::{CommonError, Refusal};

/// The category of an error. Only [`Kind::status`] maps it to HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request is malformed: the caller must change it.
    Invalid,
    /// The request is well-formed but contradicts an earlier one.
    Unprocessable,
    /// Not signed in.
    Unauthenticated,
    /// The actor lacks the permission.
    Forbidden,
    /// Does not exist, or is not visible to this actor.
    NotFound,
    /// The current state does not allow it.
    Conflict,
    /// Too many requests.
    TooMany,
    /// No reply in time.
    Timeout,
    /// A dependency is down: retry later.
    Unavailable,
    /// A bug. The details are in the log.
    Internal,
}

impl Kind {
    /// The status code. No other code chooses one for a domain error.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Invalid => StatusCode::BAD_REQUEST,
            Self::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Conflict => StatusCode::CONFLICT,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<CommonError> for Kind {
    fn from(error: CommonError) -> Self {
        match error {
            CommonError::SignInRequired => Self::Unauthenticated,
            CommonError::AdminRequired | CommonError::SecondFactorRequired => Self::Forbidden,
            CommonError::Unavailable => Self::Unavailable,
            CommonError::Internal => Self::Internal,
        }
    }
}

/// Default retry delay.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The errors of one service: an enum with `#[serde(tag = "code", rename_all = "snake_case")]`, whose
/// last variant is an untagged [`CommonError`].
pub trait ServiceError: Refusal + Serialize + DeserializeOwned {
    /// Prefix of the public codes: `tickets` makes `tickets.seats_taken`.
    const DOMAIN: &'static str;

    /// The category.
    fn kind(&self) -> Kind;

    /// When a retry makes sense.
    fn retry_after(&self) -> Option<Duration> {
        matches!(self.kind(), Kind::Unavailable | Kind::Timeout | Kind::TooMany).then_some(RETRY_AFTER)
    }
}

/// The public form of a service error: its fields beside `code`, `message` and `status`.
pub fn problem<E: ServiceError>(error: &E) -> Problem {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(error) else {
        unreachable!("an error enum serialises to an object with a code")
    };
    let Some(Value::String(code)) = fields.remove("code") else {
        unreachable!("an error enum is tagged with its code")
    };
    // Codes of common errors have their own prefix.
    let code = if code.contains('.') { code } else { format!("{}.{code}", E::DOMAIN) };
    let mut problem = Problem::new(error.kind().status(), code, error.to_string());
    for (name, value) in fields {
        assert!(
            !RESERVED.contains(&name.as_str()),
            "{}: an error field must not be named {name}",
            problem.code
        );
        problem = problem.field(name, value);
    }
    match error.retry_after() {
        Some(after) => problem.retry_after(after),
        None => problem,
    }
}

/// Restores the error enum from another role's response; `None` if it is not an error of this
/// service.
pub fn restore<E: ServiceError>(body: &[u8]) -> Option<E> {
    let mut problem: Value = serde_json::from_slice(body).ok()?;
    if let Ok(common) = serde_json::from_value::<CommonError>(problem.clone()) {
        return Some(common.into());
    }
    let code = problem.get("code")?.as_str()?.strip_prefix(E::DOMAIN)?.strip_prefix('.')?.to_owned();
    *problem.get_mut("code")? = Value::String(code);
    serde_json::from_value(problem).ok()
}
