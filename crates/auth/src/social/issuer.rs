//! What an OpenID Connect issuer publishes: where its pages are and which keys it signs with.
//!
//! It is asked by one request at a time and remembered. A key nobody has heard of makes us ask again, but not more often than every
//! [`PAUSE`], so that made-up names of keys cost the issuer nothing. While the issuer is away its last word counts for a while.

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

/// How long nobody asks again. Google publishes a key days before it is used.
pub(super) const FRESH: Duration = Duration::from_hours(1);

/// How long the last word counts while there is no newer one. A key that was taken back is not believed for longer.
pub(super) const STALE: Duration = Duration::from_hours(24);

/// The pause between two questions.
pub(super) const PAUSE: Duration = Duration::from_secs(10);

/// More keys than any issuer has; the rest is not looked at.
const MAX_KEYS: usize = 32;

/// An issuer, and what is known of it.
#[derive(Debug)]
pub(super) struct Issuer {
    pub(super) name: String,
    discovery: Page,
    client: Client,
    clock: Clock,
    known: RwLock<Option<Arc<Known>>>,
    /// Held by whoever asks. When that was done the last time, with or without success.
    asking: Mutex<Option<Duration>>,
}

/// What an issuer said.
#[derive(Debug)]
pub(super) struct Known {
    /// The page that browsers are sent to.
    pub(super) authorize: String,
    /// Where codes are exchanged.
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

    /// What the issuer says, or said not too long ago.
    pub(super) async fn known(&self) -> Result<Arc<Known>, NoAnswer> {
        let seen = self.remembered();
        let age = seen.as_ref().map(|seen| self.age(seen));
        match (seen, age) {
            (Some(seen), Some(age)) if age < FRESH => Ok(seen),
            // Somebody asks already; nobody else needs to wait for it.
            (Some(seen), Some(age)) if age < STALE && self.asking.try_lock().is_err() => Ok(seen),
            (seen, age) => match (self.renew(seen.as_ref()).await, seen) {
                (Err(error), Some(seen)) if age.is_some_and(|age| age < STALE) => {
                    if !matches!(error, NoAnswer::TooSoon) {
                        let error = urr_telemetry::chain(&error);
                        tracing::warn!(issuer = self.name, error, "an issuer is away; its last word counts");
                    }
                    Ok(seen)
                }
                (renewed, _) => renewed,
            },
        }
    }

    /// The key of this name. `None`: the issuer has none.
    pub(super) async fn key(&self, name: &str) -> Result<Option<RsaKey>, NoAnswer> {
        let seen = self.known().await?;
        if let Some(key) = seen.keys.get(name) {
            return Ok(Some(key.clone()));
        }
        Ok(self.renew(Some(&seen)).await?.keys.get(name).cloned())
    }

    fn remembered(&self) -> Option<Arc<Known>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn age(&self, known: &Known) -> Duration {
        self.clock.ticks().saturating_sub(known.at)
    }

    /// Something newer than `seen`; the same if it is as new as can be.
    async fn renew(&self, seen: Option<&Arc<Known>>) -> Result<Arc<Known>, NoAnswer> {
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
        // Only a question that was asked to the end counts: whoever leaves in the middle must not keep others from asking.
        let answer = self.ask(now).await;
        *asked_at = Some(now);
        let known = Arc::new(answer?);
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&known));
        Ok(known)
    }

    async fn ask(&self, at: Duration) -> Result<Known, NoAnswer> {
        let found: Discovery = self.discovery.get(None).await?;
        if found.issuer.trim_end_matches('/') != self.name {
            return Err(self.discovery.odd("it is about another issuer"));
        }
        let page = |url: &str| {
            Page::new(&self.client, url)
                .map_err(|_| self.discovery.odd("it names a page that cannot be asked"))
        };
        let (token, keys) = (page(&found.token_endpoint)?, page(&found.jwks_uri)?);
        page(&found.authorization_endpoint)?;
        let set: KeySet = keys.get(None).await?;
        // A set may hold keys of kinds we do not know.
        let known =
            set.keys.into_iter().take(MAX_KEYS).filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let keys_by_name: HashMap<_, _> = known.filter_map(Jwk::key).collect();
        if keys_by_name.is_empty() {
            return Err(keys.odd("it has no key for RS256"));
        }
        Ok(Known { authorize: found.authorization_endpoint, token, keys: keys_by_name, at })
    }
}
