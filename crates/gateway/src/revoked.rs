//! Sessions that ended before their access tokens expired.
//!
//! An access token is valid for an hour, and no request checks it against a database. To make
//! sign-out effective at once, every gateway keeps the sessions that ended during the last hour in
//! memory and polls for new ones several times a second.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use crossbeam_utils::CachePadded;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use urr_kernel::{Clock, Timestamp};
use urr_telemetry::Check;
use uuid::Uuid;

/// Poll interval. Three polls fit into the second within which a revocation must take effect
/// everywhere.
const PERIOD: Duration = Duration::from_millis(300);

/// Timeout of one page: a new attempt is better than a late reply. The whole list has no timeout.
/// After a busy hour a starting process reads hundreds of pages, and it cannot accept tokens
/// without all of them.
const PATIENCE: Duration = Duration::from_secs(2);

/// Age of the list above which sign-in and operator routes are rejected.
pub const STALE: Duration = Duration::from_secs(5);

/// Sessions kept. At 60 sign-ins per second and core, four cores end at most 864,000 sessions per
/// hour; at 40 bytes each this is 40 MB.
const MAX_SESSIONS: usize = 1_000_000;

/// Pages per poll: 5,000 sessions each, as many as are kept.
const MAX_PAGES: usize = 200;

/// How often sessions with expired tokens are removed.
const FORGET_EVERY: Duration = Duration::from_mins(1);

/// An ended session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// Access tokens of this session are rejected.
    pub session: Uuid,
    /// Expiry of the last of them.
    pub until: Timestamp,
}

/// One page of ended sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationPage {
    /// All since the requested time, and possibly older ones.
    pub ended: Vec<Revocation>,
    /// `since` of the next request.
    pub as_of: Timestamp,
    /// Where to continue, if there are more.
    pub next: Option<Uuid>,
}

/// Source of ended sessions.
#[async_trait]
pub trait RevocationSource: Send + Sync {
    /// Returns the sessions that ended since then, starting at `after` on further pages.
    async fn since(&self, since: Timestamp, after: Option<Uuid>) -> Result<RevocationPage, String>;
}

/// The sessions that ended recently.
#[derive(Debug)]
pub struct Revoked {
    clock: Clock,
    /// Maximum lifetime of an access token.
    token_life: Duration,
    /// Padded: taking the read lock writes to it, which must not slow down its neighbours.
    sessions: CachePadded<RwLock<HashMap<Uuid, Timestamp>>>,
    /// Time of the last complete poll, in microseconds of ticks plus one; 0 if never.
    heard: AtomicU64,
}

impl Revoked {
    /// Creates an empty list. `token_life` is the maximum lifetime of an access token.
    pub fn new(clock: Clock, token_life: Duration) -> Self {
        Self { clock, token_life, sessions: CachePadded::default(), heard: AtomicU64::new(0) }
    }

    /// Whether access tokens of the session are rejected.
    pub fn contains(&self, session: Uuid) -> bool {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).contains_key(&session)
    }

    /// Adds ended sessions. Code that ends a session in this process calls it directly, without
    /// waiting for the next poll. Returns `false` if not all of them fit.
    pub fn add(&self, ended: &[Revocation]) -> bool {
        if ended.is_empty() {
            return true;
        }
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        for Revocation { session, until } in ended {
            if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(session) {
                return false;
            }
            sessions.insert(*session, *until);
        }
        true
    }

    /// Marks the list as complete: for an installation so new that no session can have ended.
    pub fn begin(&self) {
        self.hear(self.clock.ticks());
    }

    fn hear(&self, asked: Duration) {
        let heard = u64::try_from(asked.as_micros()).unwrap_or(u64::MAX).saturating_add(1);
        self.heard.store(heard, Ordering::Relaxed);
    }

    /// Reads the whole list once, so that a process can start with it.
    pub async fn load(&self, source: &dyn RevocationSource) -> Result<(), String> {
        self.ask(source, self.clock.now().before(self.token_life)).await.map(drop)
    }

    /// Polls until cancelled. Run it on its own task.
    pub async fn watch(self: Arc<Self>, source: Arc<dyn RevocationSource>, stop: CancellationToken) {
        let mut since = self.clock.now().before(self.token_life);
        let mut forget_at = self.clock.ticks() + FORGET_EVERY;
        let mut answers = true;
        loop {
            match self.ask(&*source, since).await {
                Ok(as_of) => {
                    since = as_of;
                    if !std::mem::replace(&mut answers, true) {
                        tracing::info!(
                            "auth answers again: session revocations are up to date, all routes are open"
                        );
                    }
                }
                Err(cause) => {
                    if std::mem::replace(&mut answers, false) {
                        tracing::warn!(
                            cause,
                            "cannot read session revocations from auth: if this lasts 5 s, sign-in and \
                             admin requests get 503 (all tokens until the list is first read)"
                        );
                    }
                }
            }
            if self.clock.ticks() >= forget_at {
                self.forget();
                forget_at = self.clock.ticks() + FORGET_EVERY;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(PERIOD) => {}
            }
        }
    }

    /// Reads all pages, each with its own timeout. Returns `since` of the next poll.
    async fn ask(&self, source: &dyn RevocationSource, since: Timestamp) -> Result<Timestamp, String> {
        let asked = self.clock.ticks();
        let mut after = None;
        for read in 0..MAX_PAGES {
            let page = match timeout(PATIENCE, source.since(since, after)).await {
                Ok(page) => page?,
                Err(_) => return Err(format!("no answer within {PATIENCE:?}, after {read} pages")),
            };
            if !self.add(&page.ended) {
                return Err(format!("more than {MAX_SESSIONS} sessions ended within the life of a token"));
            }
            if page.next.is_none() {
                // The list is as old as the request: sessions that ended meanwhile are in the next
                // reply.
                self.hear(asked);
                return Ok(page.as_of);
            }
            after = page.next;
        }
        Err(format!("the list does not end after {MAX_PAGES} pages"))
    }

    /// Removes sessions whose tokens have expired.
    fn forget(&self) {
        let now = self.clock.now();
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, until| *until > now);
        metrics::gauge!("urr_gateway_revoked_sessions")
            .set(f64::from(u32::try_from(sessions.len()).unwrap_or(u32::MAX)));
    }

    /// Whether the list was ever read completely. Before that, a session that is not on it may have
    /// ended.
    pub fn is_loaded(&self) -> bool {
        self.heard.load(Ordering::Relaxed) != 0
    }

    /// Whether the list was read completely within the last [`STALE`].
    pub fn is_fresh(&self) -> bool {
        self.age().is_some_and(|age| age <= STALE)
    }

    fn age(&self) -> Option<Duration> {
        let heard = Duration::from_micros(self.heard.load(Ordering::Relaxed).checked_sub(1)?);
        Some(self.clock.ticks().saturating_sub(heard))
    }

    /// Readiness check: fails until the list was read for the first time.
    pub fn loaded(self: &Arc<Self>) -> Arc<dyn Check> {
        Arc::new(LoadedCheck(Arc::clone(self)))
    }

    /// Health check: fails while the list is older than [`STALE`]. The process keeps serving the
    /// routes that do not need it.
    pub fn fresh(self: &Arc<Self>) -> Arc<dyn Check> {
        Arc::new(FreshnessCheck(Arc::clone(self)))
    }
}

struct LoadedCheck(Arc<Revoked>);

#[async_trait]
impl Check for LoadedCheck {
    async fn check(&self) -> Result<(), String> {
        self.0.age().map(drop).ok_or_else(|| "the list of ended sessions has not been read yet".to_owned())
    }
}

struct FreshnessCheck(Arc<Revoked>);

#[async_trait]
impl Check for FreshnessCheck {
    async fn check(&self) -> Result<(), String> {
        match self.0.age() {
            Some(age) if age <= STALE => Ok(()),
            Some(age) => Err(format!("the list of ended sessions is {} s old", age.as_secs())),
            None => Err("the list of ended sessions has not been read yet".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
