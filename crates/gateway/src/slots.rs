//! Nobody buys without a slot: the guard before what buys.
//!
//! An entry token says whose slot it is and of which event, and its signature is all that is needed to believe it. Whether the
//! slot goes on is another question, because a slot ends when its owner leaves, buys, or is silent. The waiting room is asked,
//! which also is the sign of life that keeps the slot, and its yes is good for a second: a slot that ended opens nothing a second
//! later, and a buyer who sends many requests costs the room one question a second. A no is never remembered.
//!
//! Where the store of the rooms is away, the waiting room answers from its journal, which does not know who has fallen silent: then it is the token's
//! own end that bounds how long somebody buys without a sign of life.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use http::{HeaderMap, header};
use urr_http::{Entrance, Problem, entry_required};
use urr_kernel::{Actor, Clock};
use urr_passes::{
    Refusal,
    entry::{self, Entries, Entry},
};
use uuid::Uuid;

use crate::{codes, rooms::AWAY};

/// The header in which clients send the token.
pub(crate) const HEADER: &str = "x-queue-entry-token";

/// How long a yes is good.
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// Slots remembered at a time, some 40 bytes each: a hundred rooms of the usual size. Beyond it the room is asked each time.
const MAX_KNOWN: usize = 100_000;
/// A room that has not answered by then does not let anybody in.
const PATIENCE: Duration = Duration::from_secs(2);
/// When to try again after that.
const RETRY: Duration = Duration::from_secs(3);

/// Whoever knows which slots go on.
#[async_trait]
pub trait SlotSource: Send + Sync {
    /// Whether the slot of a token goes on, which keeps it alive. The error says why nobody could say.
    async fn is_open(&self, entry: &Entry) -> Result<bool, String>;
}

/// The guard.
pub struct Slots {
    entries: Entries,
    source: Arc<dyn SlotSource>,
    clock: Clock,
    /// Slots that went on, and when we asked, by [`Clock::ticks`].
    known: Mutex<HashMap<Uuid, Duration>>,
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").finish_non_exhaustive()
    }
}

impl Slots {
    /// A guard that believes tokens which `entries` reads and slots which `source` knows.
    pub fn new(entries: Entries, source: Arc<dyn SlotSource>, clock: Clock) -> Self {
        Self { entries, source, clock, known: Mutex::default() }
    }

    /// For which event the caller may buy.
    pub(crate) async fn entrance(&self, headers: &HeaderMap, actor: Actor) -> Result<Entrance, Problem> {
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
        Ok(Entrance::Slot(entry.event))
    }

    async fn goes_on(&self, entry: &Entry) -> Result<bool, Problem> {
        let now = self.clock.ticks();
        let is_fresh = |asked: Duration| now < asked + KNOWN_FOR;
        if self.known().get(&entry.slot).is_some_and(|asked| is_fresh(*asked)) {
            return Ok(true);
        }
        let answer = tokio::time::timeout(PATIENCE, self.source.is_open(entry)).await;
        let open = answer.unwrap_or_else(|_| Err("no answer in time".to_owned())).map_err(|cause| {
            tracing::warn!(cause, "the waiting room cannot be asked about a slot, so nobody buys");
            Problem::of(codes::UNAVAILABLE, AWAY).retry_after(RETRY).field("service", "queue")
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

/// Every token that a request carries, those in the header first.
pub(crate) fn carried(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers.get_all(HEADER).iter().filter_map(|value| value.to_str().ok()).chain(kept(headers))
}

/// The tokens in cookies, for those who send no header.
fn kept(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| name.trim() == entry::COOKIE).map(|(_, value)| value.trim())
}

/// The token of a request: the header if there is one, else the cookie. Two that differ are none.
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
