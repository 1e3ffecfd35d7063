//! Error enums that cross the wire whole, and the one place where kinds become status codes.

use std::time::Duration;

use http::StatusCode;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use urr_http::{Problem, RESERVED};

/// What sort of trouble an error is. Only [`Kind::status`] maps it to HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request makes no sense: the caller must change it.
    Invalid,
    /// The request makes sense but contradicts an earlier one.
    Unprocessable,
    /// Nobody is signed in.
    Unauthenticated,
    /// This actor may not do that.
    Forbidden,
    /// No such thing, or not visible to this actor.
    NotFound,
    /// The state does not allow it now.
    Conflict,
    /// Too many requests.
    TooMany,
    /// No answer in time.
    Timeout,
    /// Something below is down: ask again later.
    Unavailable,
    /// A bug. The details are in the log.
    Internal,
}

impl Kind {
    /// The status code. Nothing else in the product chooses one for a domain error.
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

/// How long a caller waits before it asks again when the error itself does not know.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The closed set of errors of one service: an enum with `#[serde(tag = "code", rename_all = "snake_case")]`.
pub trait ServiceError: std::error::Error + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Prefix of the public codes: `tickets` makes `tickets.seats_taken`.
    const DOMAIN: &'static str;

    /// What sort of trouble this is.
    fn kind(&self) -> Kind;

    /// The error for "the service could not be asked".
    fn unavailable() -> Self;

    /// When asking again makes sense.
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
    let mut problem = Problem::new(error.kind().status(), format!("{}.{code}", E::DOMAIN), error.to_string());
    for (name, value) in fields {
        assert!(
            !RESERVED.contains(&name.as_str()),
            "{}: an error's field may not be called {name}",
            problem.code
        );
        problem = problem.field(name, value);
    }
    match error.retry_after() {
        Some(after) => problem.retry_after(after),
        None => problem,
    }
}

/// The error enum back from a problem that another role answered. `None` when it is not one of this service's.
pub fn restore<E: ServiceError>(body: &[u8]) -> Option<E> {
    let mut problem: Value = serde_json::from_slice(body).ok()?;
    let code = problem.get("code")?.as_str()?.strip_prefix(E::DOMAIN)?.strip_prefix('.')?.to_owned();
    *problem.get_mut("code")? = Value::String(code);
    serde_json::from_value(problem).ok()
}
