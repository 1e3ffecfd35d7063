//! What happened in a room, in order, and never changed afterwards.
//!
//! In memory the journal is also what the room is rebuilt from: a step is on disk before anybody hears of it.

pub(crate) mod carrying;
pub(crate) mod inside;
pub(crate) mod outage;
mod rows;
pub(crate) mod setting;
pub(crate) mod store;
pub mod verify;
pub(crate) mod writer;

use serde::{Deserialize, Serialize};
use urr_db::{Db, Tx};
use urr_kernel::{EventId, OrderKey, Timestamp, UserId};
use uuid::Uuid;

use self::verify::{Report, Verifier};

/// Entries read at a time.
const PAGE: i64 = 20_000;

/// Reads the journal of an event's room from the beginning. `None`: there is none.
pub async fn verify(db: &Db, event: EventId) -> Result<Option<Report>, urr_db::Error> {
    let life = db.read("queue.life", async |tx: &mut Tx<'_>| store::life(tx, event).await).await?;
    let Some(life) = life else { return Ok(None) };
    let mut verifier = Verifier::new(life.threshold);
    let mut last = (0, 0);
    loop {
        let (generation, seq) = last;
        let page = db
            .read("queue.verify", async |tx: &mut Tx<'_>| {
                store::after(tx, event, generation, seq, PAGE).await
            })
            .await?;
        for entry in &page {
            verifier.read(entry);
        }
        match page.last() {
            Some(entry) => last = (entry.generation, entry.seq),
            None => return Ok(Some(verifier.finish())),
        }
    }
}

/// Why steps were not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unwritten {
    /// It may work later.
    #[error("the database failed")]
    Db(#[from] urr_db::Error),
    /// Steps of the same numbers are there and are not these, or somebody else keeps the rooms.
    #[error("the journal is written by somebody else")]
    Foreign,
}

/// One line of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which life of the room: a store that lost its data begins a new one.
    pub generation: u64,
    /// Counts up by one within a generation.
    pub seq: u64,
    /// When it happened, by the clock of the store that decided it.
    pub at: Timestamp,
    /// What happened.
    pub step: Step,
}

/// What can happen in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Somebody got a place in line.
    Joined {
        /// Who.
        user: UserId,
        /// Where.
        order: OrderKey,
        /// Where that is from. Nothing: it was not noted yet.
        source: Option<Source>,
    },
    /// Somebody got a slot, from the line or without waiting.
    Admitted {
        /// Who.
        user: UserId,
        /// The place they had, or would have had.
        order: OrderKey,
        /// The slot's id, which their entry tokens carry.
        slot: Uuid,
        /// Where the place is from, if they did not wait. Nothing: they did, or it was not noted yet.
        source: Option<Source>,
    },
    /// A slot could not be recorded, so its owner stands in line again where they stood.
    Returned {
        /// Who.
        user: UserId,
        /// Where.
        order: OrderKey,
    },
    /// Somebody is neither in line nor in a slot any more.
    Gone {
        /// Who.
        user: UserId,
        /// Why.
        why: Why,
    },
    /// How many may be in at once from now on.
    Threshold {
        /// That many.
        threshold: u32,
    },
    /// Nobody is let in until further notice.
    Paused,
    /// People are let in again.
    Resumed,
    /// An operator sent everybody away. Tickets from before are void.
    Cleared {
        /// Tickets of this epoch are good from now on.
        epoch: u64,
    },
}

/// Where the place of somebody who came is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// They are new here: it is behind everybody who came before.
    New,
    /// A queue ticket tells of it.
    Ticket,
    /// A Tier 1 pass tells of it.
    Pass,
}

/// Why somebody is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// They left.
    Left,
    /// They showed no sign of life.
    Idle,
    /// Their slot's time was over.
    Expired,
    /// They bought what they came for.
    Bought,
}
