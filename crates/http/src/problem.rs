//! The error body of every response.

use std::{borrow::Cow, fmt, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value};
use urr_kernel::RequestId;

use crate::codes::Code;

/// The media type of every error body.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// Members common to all problems. A field of the same name never replaces them.
pub const RESERVED: [&str; 6] = ["code", "error", "message", "status", "requestId", "retryAfter"];

/// An error as clients see it, as JSON:
/// `{"code":"tickets.seats_taken","error":"…","message":"…","status":409,"requestId":"…", …}`.
/// `error` and `message` hold the same sentence because older clients read either. The edge adds
/// `requestId`.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    /// A stable name for programs, `<domain>.<what>`; each has a page in `docs/errors`.
    pub code: Cow<'static, str>,
    /// A sentence for people.
    pub message: Cow<'static, str>,
    /// When to retry: the `Retry-After` header and the member `retryAfter`, in whole seconds.
    pub retry_after: Option<Duration>,
    /// Further members of the body.
    pub fields: Map<String, Value>,
    /// Why it happened. Logged, never sent.
    pub cause: Option<String>,
}

impl Problem {
    /// A problem without further fields.
    pub fn new(
        status: StatusCode,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            status,
            code: code.into(),
            message: message.into(),
            retry_after: None,
            fields: Map::new(),
            cause: None,
        }
    }

    /// A problem with a listed code.
    pub fn of(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code.1, code.0, message)
    }

    /// Adds a member to the body. The members every problem has cannot be replaced.
    pub fn field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.fields.insert(name.into(), value.into());
        self
    }

    /// Sets when the client should retry.
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Sets the cause, which the edge logs and clients never see.
    pub fn caused_by(mut self, error: &dyn std::error::Error) -> Self {
        self.cause = Some(urr_telemetry::chain(error));
        self
    }

    /// Whole seconds, rounded up and at least 1: with 0 clients would retry at once.
    fn retry_after_secs(&self) -> Option<u64> {
        self.retry_after.map(|after| (after.as_secs() + u64::from(after.subsec_nanos() > 0)).max(1))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Problem {}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", &self.code)?;
        map.serialize_entry("error", &self.message)?;
        map.serialize_entry("message", &self.message)?;
        map.serialize_entry("status", &self.status.as_u16())?;
        if let Some(seconds) = self.retry_after_secs() {
            map.serialize_entry("retryAfter", &seconds)?;
        }
        for (name, value) in self.fields.iter().filter(|(name, _)| !RESERVED.contains(&name.as_str())) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = Bytes::from(serde_json::to_vec(&self).expect("all keys are strings"));
        let mut response = Response::new(Body::from(body.clone()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(seconds) = self.retry_after_secs() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(Unsigned { body, code: self.code, cause: self.cause });
        response
    }
}

/// A problem in the response's extensions, for the edge, which adds the request id and logs it.
#[derive(Clone)]
pub(crate) struct Unsigned {
    body: Bytes,
    pub(crate) code: Cow<'static, str>,
    pub(crate) cause: Option<String>,
}

impl Unsigned {
    /// The body with the request id inserted before its closing brace. It always has members.
    pub(crate) fn sign(&self, id: RequestId) -> Vec<u8> {
        const MEMBER: &[u8] = b",\"requestId\":\"";
        /// A UUID in its hyphenated form.
        const ID_LEN: usize = 36;
        let mut signed = Vec::with_capacity(self.body.len() + MEMBER.len() + ID_LEN + 2);
        signed.extend_from_slice(&self.body[..self.body.len() - 1]);
        signed.extend_from_slice(MEMBER);
        signed.extend_from_slice(id.as_uuid().hyphenated().encode_lower(&mut [0; ID_LEN]).as_bytes());
        signed.extend_from_slice(b"\"}");
        signed
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use serde_json::json;

    use super::*;

    async fn body(response: Response) -> Value {
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&bytes).unwrap()
    }

    #[tokio::test]
    async fn status_body_and_headers_agree() {
        let problem = Problem::new(StatusCode::CONFLICT, "tickets.seats_taken", "Some seats are taken.")
            .field("seats", json!(["A-1"]))
            .retry_after(Duration::from_millis(1_200));
        let response = problem.into_response();
        assert_eq!(response.status(), StatusCode::CONFLICT);
        assert_eq!(response.headers()[header::CONTENT_TYPE], PROBLEM_JSON);
        assert_eq!(response.headers()[header::RETRY_AFTER], "2");
        let expected = json!({
            "code": "tickets.seats_taken", "error": "Some seats are taken.", "message": "Some seats are taken.",
            "status": 409, "retryAfter": 2, "seats": ["A-1"],
        });
        assert_eq!(body(response).await, expected);
    }

    #[tokio::test]
    async fn a_field_cannot_replace_a_reserved_member() {
        let problem =
            Problem::new(StatusCode::NOT_FOUND, "x.y", "No.").field("code", "other").field("status", 200);
        let body = body(problem.into_response()).await;
        assert_eq!((&body["code"], &body["status"]), (&json!("x.y"), &json!(404)));
    }

    #[tokio::test]
    async fn the_cause_is_never_sent() {
        let error = std::io::Error::other("secret table name");
        let response =
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "x.y", "No.").caused_by(&error).into_response();
        assert!(!body(response).await.to_string().contains("secret"));
    }

    #[tokio::test]
    async fn signing_adds_the_request_id_and_keeps_the_rest() {
        let id = RequestId::from_uuid(
            serde_json::from_value(json!("0190a1f0-0000-7000-8000-000000000001")).unwrap(),
        );
        let response = Problem::new(StatusCode::NOT_FOUND, "x.y", "No.").into_response();
        let unsigned = response.extensions().get::<Unsigned>().unwrap().clone();
        let signed = body(Response::new(Body::from(unsigned.sign(id)))).await;
        assert_eq!(signed["requestId"], id.to_string());
        assert_eq!(signed["code"], "x.y");
    }
}
