//! Guard of the routes that buy: requires a valid slot of the waiting room.
//!
//! An entry token names the user, the event and the slot; its signature proves them. Whether the
//! slot is still valid must be checked, because a slot ends when its owner leaves, buys or is idle.
//! The guard calls the waiting room, which also counts as activity. A positive reply is cached for
//! a second: an ended slot is rejected after at most a second, and a buyer costs the room one call
//! per second. A negative reply is never cached.
//!
//! While Redis is down, the waiting room replies from its journal, which does not know about idle
//! users. Then the expiry of the token limits how long a user can buy without activity.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use http::{HeaderMap, header};
use urr_http::{Problem, entry_required};
use urr_kernel::{Actor, Clock, EventId};
use urr_passes::{
    Refusal,
    entry::{self, Entries, Entry},
};
use uuid::Uuid;

use crate::rooms::AWAY;

/// Header in which clients send the token.
pub(crate) const HEADER: &str = "x-queue-entry-token";

/// How long a positive reply is cached.
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// Cached slots, about 40 bytes each: a hundred rooms of the usual size. Further slots are checked
/// on every request.
const MAX_KNOWN: usize = 100_000;
/// Timeout of a check. After it the request is rejected.
const PATIENCE: Duration = Duration::from_secs(2);
/// Suggested delay before a retry.
const RETRY: Duration = Duration::from_secs(3);

/// Source of slot states.
#[async_trait]
pub trait SlotSource: Send + Sync {
    /// Whether the slot of a token is valid; counts as activity. The error is the reason why it is
    /// unknown.
    async fn is_open(&self, entry: &Entry) -> Result<bool, String>;
}

/// Guard of the routes that buy.
pub struct Slots {
    entries: Entries,
    source: Arc<dyn SlotSource>,
    clock: Clock,
    /// Valid slots and the time of the check, by [`Clock::ticks`].
    known: Mutex<HashMap<Uuid, Duration>>,
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").finish_non_exhaustive()
    }
}

impl Slots {
    /// Creates a guard that verifies tokens with `entries` and slots with `source`.
    pub fn new(entries: Entries, source: Arc<dyn SlotSource>, clock: Clock) -> Self {
        Self { entries, source, clock, known: Mutex::default() }
    }

    /// Returns the event the caller may buy for.
    pub(crate) async fn event_of(&self, headers: &HeaderMap, actor: Actor) -> Result<EventId, Problem> {
        let token = find(headers)?.ok_or_else(|| entry_required("missing"))?;
        let entry = self.entries.verify(token, self.clock.now()).map_err(|refusal| match refusal {
            Refusal::Expired => entry_required("expired"),
            Refusal::Invalid => entry_required("invalid"),
        })?;
        if actor.user() != Some(entry.user) {
            return Err(entry_required("other_user"));
        }
        if !self.goes_on(&entry).await? {
            return Err(entry_required("slot_over"));
        }
        Ok(entry.event)
    }

    async fn goes_on(&self, entry: &Entry) -> Result<bool, Problem> {
        let now = self.clock.ticks();
        let is_fresh = |asked: Duration| now < asked + KNOWN_FOR;
        if self.known().get(&entry.slot).is_some_and(|asked| is_fresh(*asked)) {
            return Ok(true);
        }
        let answer = tokio::time::timeout(PATIENCE, self.source.is_open(entry)).await;
        let open = answer.unwrap_or_else(|_| Err("no answer in time".to_owned())).map_err(|cause| {
            tracing::warn!(
                cause,
                "cannot reach the waiting room: buying is refused with 503 until it answers"
            );
            Problem::of(urr_http::codes::UNAVAILABLE, AWAY).retry_after(RETRY).field("service", "queue")
        })?;
        let mut known = self.known();
        if open {
            if known.len() >= MAX_KNOWN {
                known.retain(|_, asked| is_fresh(*asked));
            }
            if known.len() < MAX_KNOWN {
                known.insert(entry.slot, now);
            }
        } else {
            known.remove(&entry.slot);
        }
        Ok(open)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Uuid, Duration>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All tokens of a request, those in the header first.
pub(crate) fn carried(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers.get_all(HEADER).iter().filter_map(|value| value.to_str().ok()).chain(kept(headers))
}

/// Tokens in cookies, for clients that send no header.
fn kept(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| name.trim() == entry::COOKIE).map(|(_, value)| value.trim())
}

/// Returns the token of a request: from the header, otherwise from the cookie. Two different tokens
/// are rejected.
fn find(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let invalid = || entry_required("invalid");
    let sent = headers.get_all(HEADER).iter().map(|value| value.to_str().map_err(|_| invalid()));
    let sent: Vec<&str> = sent.collect::<Result<_, _>>()?;
    let found: Vec<&str> = if sent.is_empty() { kept(headers).collect() } else { sent };
    match found.as_slice() {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => {
            Ok(Some(*first).filter(|token| !token.is_empty()))
        }
        [] => Ok(None),
        _ => Err(invalid()),
    }
}
