//! Metadata of an OpenID Connect issuer: its endpoints and keys.
//!
//! It is fetched by one request at a time and cached. An unknown key id triggers a fetch, but at
//! most every [`PAUSE`], so that forged key ids cost the issuer nothing. While the issuer is
//! unreachable, the cached metadata is used for a while.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use serde::Deserialize;
use tokio::sync::Mutex;
use urr_http::Client;
use urr_kernel::Clock;

use super::{
    ask::{BadPage, NoAnswer, Page},
    id_token::RsaKey,
};

/// How long the cache is fresh. Google publishes a key days before it is used.
pub(super) const FRESH: Duration = Duration::from_hours(1);

/// How long a stale cache is used while the issuer is unreachable. A withdrawn key is not trusted
/// for longer.
pub(super) const STALE: Duration = Duration::from_hours(24);

/// Minimum interval between two fetches.
pub(super) const PAUSE: Duration = Duration::from_secs(10);

/// Maximum number of keys, more than any issuer has; the rest is ignored.
const MAX_KEYS: usize = 32;

/// An issuer with its cached metadata.
#[derive(Debug)]
pub(super) struct Issuer {
    pub(super) name: String,
    discovery: Page,
    client: Client,
    clock: Clock,
    known: RwLock<Option<Arc<IssuerMetadata>>>,
    /// Held during a fetch. The time of the last one, successful or not.
    asking: Mutex<Option<Duration>>,
}

/// Metadata of an issuer.
#[derive(Debug)]
pub(super) struct IssuerMetadata {
    /// The authorization endpoint.
    pub(super) authorize: String,
    /// The token endpoint.
    pub(super) token: Page,
    keys: HashMap<String, RsaKey>,
    at: Duration,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    n: String,
    e: String,
}

impl Jwk {
    fn key(self) -> Option<(String, RsaKey)> {
        let signs = self.kty == "RSA"
            && self.usage.is_none_or(|usage| usage == "sig")
            && self.alg.is_none_or(|alg| alg == "RS256");
        signs.then(|| RsaKey::new(&self.n, &self.e)).flatten().map(|key| (self.kid, key))
    }
}

impl Issuer {
    pub(super) fn new(client: &Client, name: &str, clock: Clock) -> Result<Self, BadPage> {
        let name = name.trim_end_matches('/').to_owned();
        Ok(Self {
            discovery: Page::new(client, &format!("{name}/.well-known/openid-configuration"))?,
            name,
            client: client.clone(),
            clock,
            known: RwLock::default(),
            asking: Mutex::default(),
        })
    }

    /// Returns the current metadata, or cached ones that are not too old.
    pub(super) async fn known(&self) -> Result<Arc<IssuerMetadata>, NoAnswer> {
        let seen = self.remembered();
        let age = seen.as_ref().map(|seen| self.age(seen));
        match (seen, age) {
            (Some(seen), Some(age)) if age < FRESH => Ok(seen),
            // A fetch is already running; use the cache meanwhile.
            (Some(seen), Some(age)) if age < STALE && self.asking.try_lock().is_err() => Ok(seen),
            (seen, age) => match (self.renew(seen.as_ref()).await, seen) {
                (Err(error), Some(seen)) if age.is_some_and(|age| age < STALE) => {
                    if !matches!(error, NoAnswer::TooSoon) {
                        let error = urr_telemetry::chain(&error);
                        tracing::warn!(
                            issuer = self.name,
                            error,
                            "issuer unreachable: using its cached keys"
                        );
                    }
                    Ok(seen)
                }
                (renewed, _) => renewed,
            },
        }
    }

    /// Returns the key with this id. `None`: the issuer has none.
    pub(super) async fn key(&self, name: &str) -> Result<Option<RsaKey>, NoAnswer> {
        let seen = self.known().await?;
        if let Some(key) = seen.keys.get(name) {
            return Ok(Some(key.clone()));
        }
        Ok(self.renew(Some(&seen)).await?.keys.get(name).cloned())
    }

    fn remembered(&self) -> Option<Arc<IssuerMetadata>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn age(&self, known: &IssuerMetadata) -> Duration {
        self.clock.ticks().saturating_sub(known.at)
    }

    /// Fetches metadata newer than `seen`, unless they are as new as allowed.
    async fn renew(&self, seen: Option<&Arc<IssuerMetadata>>) -> Result<Arc<IssuerMetadata>, NoAnswer> {
        let mut asked_at = self.asking.lock().await;
        let (now, remembered) = (self.clock.ticks(), self.remembered());
        if let Some(known) = &remembered
            && !seen.is_some_and(|seen| Arc::ptr_eq(seen, known))
        {
            return Ok(Arc::clone(known));
        }
        if let Some(asked) = *asked_at
            && now.saturating_sub(asked) < PAUSE
        {
            return remembered.filter(|known| known.at >= asked).ok_or(NoAnswer::TooSoon);
        }
        // Record only a completed fetch: a cancelled request must not block others from fetching.
        let answer = self.ask(now).await;
        *asked_at = Some(now);
        let known = Arc::new(answer?);
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&known));
        Ok(known)
    }

    async fn ask(&self, at: Duration) -> Result<IssuerMetadata, NoAnswer> {
        let found: Discovery = self.discovery.get(None).await?;
        if found.issuer.trim_end_matches('/') != self.name {
            return Err(self.discovery.odd("the metadata name another issuer"));
        }
        let page = |url: &str| {
            Page::new(&self.client, url)
                .map_err(|_| self.discovery.odd("the metadata contain an unusable URL"))
        };
        let (token, keys) = (page(&found.token_endpoint)?, page(&found.jwks_uri)?);
        page(&found.authorization_endpoint)?;
        let set: KeySet = keys.get(None).await?;
        // A key set may contain unsupported key types.
        let known =
            set.keys.into_iter().take(MAX_KEYS).filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let keys_by_name: HashMap<_, _> = known.filter_map(Jwk::key).collect();
        if keys_by_name.is_empty() {
            return Err(keys.odd("no RS256 key"));
        }
        Ok(IssuerMetadata { authorize: found.authorization_endpoint, token, keys: keys_by_name, at })
    }
}
