//! PortOne, REST API V2: `GET /identity-verifications/{id}`.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use http::{HeaderValue, StatusCode, header};
use serde::Deserialize;
use urr_contracts::auth::{Account, IdentitySource, Sensitive};
use urr_http::{BadTarget, Call, Client, ClientLimits, Target};
use urr_kernel::Clock;
use uuid::Uuid;

use super::{
    provider::{Finding, IdentityProvider, ProviderError, Window},
    rules,
};

/// Connection settings of PortOne.
#[derive(Clone, Debug)]
pub struct PortOneConfig {
    /// URL of its API: `https://api.portone.io`.
    pub base_url: String,
    /// The V2 API secret.
    pub secret: Sensitive,
    /// The store id.
    pub store_id: String,
    /// The channel for identity verification.
    pub channel_key: String,
}

/// Why the PortOne settings are invalid.
#[derive(Debug, thiserror::Error)]
pub enum BadPortOne {
    /// The URL is invalid.
    #[error(transparent)]
    Target(#[from] BadTarget),
    /// The store id, channel or secret has invalid characters.
    #[error("the {0} has characters that PortOne never uses")]
    Characters(&'static str),
}

/// Total time limit for PortOne, with retries and pauses: well within the 30 s of a request.
const PATIENCE: Duration = Duration::from_secs(8);

/// Responses have about 2 kB; this allows thirty times that.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Maximum concurrent calls, so that a slow PortOne blocks a bounded number of requests.
const MAX_IN_FLIGHT: usize = 64;

/// PortOne's error type for an unknown verification.
const NOT_FOUND: &str = "IDENTITY_VERIFICATION_NOT_FOUND";

/// PortOne client.
pub struct PortOne {
    target: Target,
    authorization: HeaderValue,
    store_id: String,
    channel_key: String,
}

impl fmt::Debug for PortOne {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortOne").field("target", &self.target).finish_non_exhaustive()
    }
}

impl PortOne {
    /// Validates the settings, without calling PortOne.
    pub fn new(config: PortOneConfig, clock: Clock) -> Result<Self, BadPortOne> {
        let limits = ClientLimits {
            connect: Duration::from_secs(3),
            read: Duration::from_secs(5),
            answer_bytes: MAX_ANSWER_BYTES,
            in_flight: MAX_IN_FLIGHT,
            idle_connections: 4,
            tries: 2,
            ..ClientLimits::default()
        };
        Self::with_limits(config, clock, limits)
    }

    pub(crate) fn with_limits(
        config: PortOneConfig,
        clock: Clock,
        limits: ClientLimits,
    ) -> Result<Self, BadPortOne> {
        let PortOneConfig { base_url, secret, store_id, channel_key } = config;
        for (what, text) in [("store id", &store_id), ("channel key", &channel_key)] {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            if text.is_empty() || !text.bytes().all(plain) {
                return Err(BadPortOne::Characters(what));
            }
        }
        let authorization = HeaderValue::try_from(format!("PortOne {}", secret.expose()));
        let mut authorization = authorization.map_err(|_| BadPortOne::Characters("secret"))?;
        authorization.set_sensitive(true);
        let target = Client::new(limits, clock).target(&base_url)?;
        Ok(Self { target, authorization, store_id, channel_key })
    }

    /// Interprets a response. `channel_key` is checked because the browser chooses the channel: a
    /// test channel of the same store would confirm any identity.
    fn read(&self, verification: Uuid, body: &[u8]) -> Result<Finding, ProviderError> {
        let verified = match serde_json::from_slice(body)? {
            Reply::Verified(verified) => verified,
            Reply::Ready => return Ok(Finding::Pending),
            Reply::Failed => return Ok(Finding::Failed),
            Reply::Other => return Err(ProviderError::Unusable("has an unknown status")),
        };
        if verified.id != verification.to_string() {
            return Err(ProviderError::Unusable("belongs to another verification"));
        }
        if !verified.channel.is_some_and(|channel| channel.is(&self.channel_key)) {
            tracing::warn!(%verification, "identity verification refused: it used another channel than auth.portone_channel_key");
            return Ok(Finding::Failed);
        }
        rules::person(verified.customer.into()).map(Finding::Verified)
    }
}

#[async_trait]
impl IdentityProvider for PortOne {
    fn window(&self) -> Window {
        Window {
            source: IdentitySource::Portone,
            store_id: Some(self.store_id.clone()),
            channel_key: Some(self.channel_key.clone()),
        }
    }

    async fn look_up(&self, verification: Uuid, _: &Account) -> Result<Finding, ProviderError> {
        let call = Call::get(format!("/identity-verifications/{verification}?storeId={}", self.store_id))
            .header(header::AUTHORIZATION, self.authorization.clone())
            .within(PATIENCE);
        let answer = self.target.send(call).await?;
        match answer.status {
            StatusCode::OK => self.read(verification, &answer.body),
            StatusCode::NOT_FOUND if is_not_found(&answer.body) => Ok(Finding::Pending),
            status => Err(ProviderError::Status(status.as_u16())),
        }
    }
}

/// Whether PortOne reports an unknown verification, as opposed to any other 404.
fn is_not_found(body: &[u8]) -> bool {
    serde_json::from_slice::<Refusal>(body).is_ok_and(|refusal| refusal.kind == NOT_FOUND)
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(tag = "status", rename_all = "SCREAMING_SNAKE_CASE")]
enum Reply {
    Verified(Verified),
    Ready,
    Failed,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Verified {
    id: String,
    #[serde(default)]
    channel: Option<Channel>,
    #[serde(rename = "verifiedCustomer")]
    customer: Customer,
}

#[derive(Deserialize)]
struct Channel {
    #[serde(default)]
    key: Option<String>,
}

impl Channel {
    fn is(&self, key: &str) -> bool {
        self.key.as_deref() == Some(key)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Customer {
    #[serde(default)]
    ci: Option<String>,
    #[serde(default)]
    di: Option<String>,
    name: String,
    #[serde(default)]
    birth_date: Option<String>,
    #[serde(default)]
    phone_number: Option<String>,
    #[serde(default)]
    gender: Option<String>,
    #[serde(default)]
    is_foreigner: Option<bool>,
}

impl From<Customer> for rules::ProviderData {
    fn from(customer: Customer) -> Self {
        let Customer { ci, di, name, birth_date, phone_number, gender, is_foreigner } = customer;
        Self { ci, di, name, birth_date, phone: phone_number, gender, foreigner: is_foreigner }
    }
}

#[cfg(test)]
mod tests;
