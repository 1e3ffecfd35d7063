//! Sessions that ended before their access tokens did.
//!
//! An access token is good for an hour, and nobody asks a database about it. So that signing out works at once, every gateway keeps
//! the sessions that ended during the last hour in memory and asks for news several times a second.

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

/// Three questions fit into the second within which an ended session must be known everywhere.
const PERIOD: Duration = Duration::from_millis(300);

/// One page may take this long; a quicker next question is worth more than a late answer. A list of many pages may take as long as
/// they do: at the start of a process after a busy hour there are hundreds, and without all of them nobody can be let in.
const PATIENCE: Duration = Duration::from_secs(2);

/// Without news for longer than this, what must not be done with an ended session is not done at all.
pub const STALE: Duration = Duration::from_secs(5);

/// Ended sessions kept. At 60 sign-ins a second and core, a machine of four cores ends at most 864,000 sessions an hour; of 40
/// bytes each, 40 MB.
const MAX_SESSIONS: usize = 1_000_000;

/// Pages one question may have: of 5,000 sessions each, as many as are kept.
const MAX_PAGES: usize = 200;

/// How often sessions whose tokens have expired are forgotten.
const FORGET_EVERY: Duration = Duration::from_mins(1);

/// One session that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// Access tokens of this session are refused.
    pub session: Uuid,
    /// When the last of them expires by itself.
    pub until: Timestamp,
}

/// A part of the sessions that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationPage {
    /// Every one since the time asked for, and possibly older ones.
    pub ended: Vec<Revocation>,
    /// What to ask for next time.
    pub as_of: Timestamp,
    /// Where to go on if there are more.
    pub next: Option<Uuid>,
}

/// Whoever knows which sessions ended.
#[async_trait]
pub trait RevocationSource: Send + Sync {
    /// The sessions that ended since then, from `after` on if the list did not fit into one page.
    async fn since(&self, since: Timestamp, after: Option<Uuid>) -> Result<RevocationPage, String>;
}

/// The sessions that ended lately.
#[derive(Debug)]
pub struct Revoked {
    clock: Clock,
    /// How long an access token lives at most.
    token_life: Duration,
    /// Apart from the rest: who looks here writes to the lock.
    sessions: CachePadded<RwLock<HashMap<Uuid, Timestamp>>>,
    /// When news came last, in microseconds of ticks plus one; 0: never.
    heard: AtomicU64,
}

impl Revoked {
    /// Knows of none yet. `token_life` is how long an access token lives at most.
    pub fn new(clock: Clock, token_life: Duration) -> Self {
        Self { clock, token_life, sessions: CachePadded::default(), heard: AtomicU64::new(0) }
    }

    /// Whether access tokens of the session are refused.
    pub fn contains(&self, session: Uuid) -> bool {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).contains_key(&session)
    }

    /// Remembers sessions that ended. Whoever ends one in this process may say so at once instead of waiting to be asked. False if
    /// there was no room for all of them.
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

    /// Takes what is known for the whole list: for an installation so new that nobody can have ended a session.
    pub fn begin(&self) {
        self.hear(self.clock.ticks());
    }

    fn hear(&self, asked: Duration) {
        let heard = u64::try_from(asked.as_micros()).unwrap_or(u64::MAX).saturating_add(1);
        self.heard.store(heard, Ordering::Relaxed);
    }

    /// Reads the whole list once, so that a process need not begin without it.
    pub async fn load(&self, source: &dyn RevocationSource) -> Result<(), String> {
        self.ask(source, self.clock.now().before(self.token_life)).await.map(drop)
    }

    /// Asks for news until told to stop. Run it on a task of its own.
    pub async fn watch(self: Arc<Self>, source: Arc<dyn RevocationSource>, stop: CancellationToken) {
        let mut since = self.clock.now().before(self.token_life);
        let mut forget_at = self.clock.ticks() + FORGET_EVERY;
        let mut answers = true;
        loop {
            match self.ask(&*source, since).await {
                Ok(as_of) => {
                    since = as_of;
                    if !std::mem::replace(&mut answers, true) {
                        tracing::info!("ended sessions are known again");
                    }
                }
                Err(cause) => {
                    if std::mem::replace(&mut answers, false) {
                        tracing::warn!(cause, "nobody says which sessions ended");
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

    /// Reads every page, each within its time; what to ask for next time.
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
                // News is as old as the question: what ended meanwhile is in the next answer.
                self.hear(asked);
                return Ok(page.as_of);
            }
            after = page.next;
        }
        Err(format!("the list does not end after {MAX_PAGES} pages"))
    }

    /// Drops sessions whose tokens have expired by themselves.
    fn forget(&self) {
        let now = self.clock.now();
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, until| *until > now);
        metrics::gauge!("urr_gateway_revoked_sessions")
            .set(f64::from(u32::try_from(sessions.len()).unwrap_or(u32::MAX)));
    }

    /// Whether the list was ever read completely. Before that it says nothing about a session that is not on it.
    pub fn is_loaded(&self) -> bool {
        self.heard.load(Ordering::Relaxed) != 0
    }

    /// Whether the list was read completely and not longer ago than [`STALE`].
    pub fn is_fresh(&self) -> bool {
        self.age().is_some_and(|age| age <= STALE)
    }

    fn age(&self) -> Option<Duration> {
        let heard = Duration::from_micros(self.heard.load(Ordering::Relaxed).checked_sub(1)?);
        Some(self.clock.ticks().saturating_sub(heard))
    }

    /// Fails until the list was read for the first time: a process that has not is not ready.
    pub fn loaded(self: &Arc<Self>) -> Arc<dyn Check> {
        Arc::new(Loaded(Arc::clone(self)))
    }

    /// Fails while the list is older than [`STALE`]: the process goes on without what needs it.
    pub fn fresh(self: &Arc<Self>) -> Arc<dyn Check> {
        Arc::new(Fresh(Arc::clone(self)))
    }
}

struct Loaded(Arc<Revoked>);

#[async_trait]
impl Check for Loaded {
    async fn check(&self) -> Result<(), String> {
        self.0.age().map(drop).ok_or_else(|| "nobody has said yet which sessions ended".to_owned())
    }
}

struct Fresh(Arc<Revoked>);

#[async_trait]
impl Check for Fresh {
    async fn check(&self) -> Result<(), String> {
        match self.0.age() {
            Some(age) if age <= STALE => Ok(()),
            Some(age) => Err(format!("nobody has said for {} s which sessions ended", age.as_secs())),
            None => Err("nobody has said yet which sessions ended".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
