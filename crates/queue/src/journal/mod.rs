//! Append-only record of what happened in a room.
//!
//! For rooms in memory it is also what they are rebuilt from: a step is on disk before any answer
//! reflects it.

pub(crate) mod active_slots;
pub(crate) mod outage;
mod rows;
pub(crate) mod setting;
pub(crate) mod slot_copy;
pub(crate) mod store;
pub mod verify;
pub(crate) mod writer;

use serde::{Deserialize, Serialize};
use urr_db::{Db, Tx};
use urr_kernel::{EventId, OrderKey, Timestamp, UserId};
use uuid::Uuid;

use self::verify::{Report, Verifier};

/// Entries read per page.
const PAGE: i64 = 20_000;

/// Verifies the journal of an event's room. `None` if there is none.
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
    /// Temporary.
    #[error("the database failed")]
    Db(#[from] urr_db::Error),
    /// The journal has other steps with these numbers, or another process owns the rooms.
    #[error("another process writes this journal")]
    Foreign,
}

/// One entry of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Generation of the room; a new one begins when a store has lost its data.
    pub generation: u64,
    /// Counts up by one within a generation.
    pub seq: u64,
    /// Time by the clock of the store that decided.
    pub at: Timestamp,
    /// The change.
    pub step: Step,
}

/// A change of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A user got a position in line.
    Joined {
        /// The user.
        user: UserId,
        /// The order key.
        order: OrderKey,
        /// Origin of the position. `None` in old journals.
        source: Option<Source>,
    },
    /// A user got a slot, from the line or at once.
    Admitted {
        /// The user.
        user: UserId,
        /// The order key they had, or would have had.
        order: OrderKey,
        /// The slot's id, which entry tokens carry.
        slot: Uuid,
        /// Origin of the position if they were admitted at once. `None` if they waited, or in old
        /// journals.
        source: Option<Source>,
    },
    /// A slot could not be recorded, so its owner is back at their old position.
    Returned {
        /// The user.
        user: UserId,
        /// The order key.
        order: OrderKey,
    },
    /// A user left the line or lost their slot.
    Gone {
        /// The user.
        user: UserId,
        /// The reason.
        why: Why,
    },
    /// The number of slots changed.
    Threshold {
        /// The new number.
        threshold: u32,
    },
    /// Admissions were paused.
    Paused,
    /// Admissions were resumed.
    Resumed,
    /// An operator removed all users. Earlier tickets are void.
    Cleared {
        /// The new epoch; only its tickets are valid.
        epoch: u64,
    },
}

/// Origin of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A newcomer's, behind every earlier one.
    New,
    /// Restored by a queue ticket.
    Ticket,
    /// From a Tier 1 pass.
    Pass,
}

/// Why a user is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// They left.
    Left,
    /// They were idle for too long.
    Idle,
    /// Their slot expired.
    Expired,
    /// They completed a purchase.
    Bought,
}
