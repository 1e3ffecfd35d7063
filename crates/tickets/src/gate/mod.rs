//! The gate: rejects contending claims before they reach the database. It is not a source of truth.
//!
//! When a thousand fans request one seat, one of them sets a mark here and continues to the
//! database; the others are rejected after one lookup. Losing all marks only costs speed: the claim
//! in the database decides.

mod memory;
mod redis;
#[cfg(test)]
mod suite;

use std::time::Duration;

use urr_kernel::{Clock, EventId, SeatId};
use urr_kv::Kv;
use uuid::Uuid;

use self::{memory::MemoryGate, redis::Redis};

/// Lifetime of a mark: longer than the slowest claim, short enough not to block a seat for long
/// after a client disappears.
pub const GATE_TTL: Duration = Duration::from_secs(5);

/// Owner of a mark. A retry by the same buyer with the same key has the same owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner(Uuid);

impl Owner {
    /// Creates an owner from a UUID.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// Returns the UUID.
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }
}

/// Result of [`SeatGate::acquire`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// All seats are marked for this owner. Continue with the claim.
    Through,
    /// Other owners have marked these seats. Nothing was marked.
    Busy(Vec<SeatId>),
    /// The gate is unreachable or full. Continue; the database decides alone.
    Open,
}

/// The gate, in this process or shared through Redis.
#[derive(Debug)]
pub enum SeatGate {
    /// For a single process.
    Memory(MemoryGate),
    /// For several processes.
    Redis(Redis),
}

impl SeatGate {
    /// Creates a gate in memory whose marks expire after `ttl`.
    pub fn memory(clock: Clock, ttl: Duration) -> Self {
        Self::Memory(MemoryGate::new(clock, ttl))
    }

    /// Creates a gate in Redis whose marks expire after `ttl`.
    pub fn redis(kv: Kv, ttl: Duration) -> Self {
        Self::Redis(Redis::new(kv, ttl))
    }

    /// Marks all of the seats for `owner`, or none of them, atomically.
    pub async fn acquire(&self, event: EventId, seats: &[SeatId], owner: Owner) -> Entry {
        let entry = match self {
            Self::Memory(gate) => gate.acquire(event, seats, owner),
            Self::Redis(gate) => gate.acquire(event, seats, owner).await,
        };
        let outcome = match &entry {
            Entry::Through => "through",
            Entry::Busy(_) => "busy",
            Entry::Open => "open",
        };
        metrics::counter!("urr_tickets_gate_total", "outcome" => outcome).increment(1);
        entry
    }

    /// Removes the marks of `owner` from these seats. Marks of other owners stay.
    pub async fn release(&self, event: EventId, seats: &[SeatId], owner: Owner) {
        match self {
            Self::Memory(gate) => gate.release(event, seats, owner),
            Self::Redis(gate) => gate.release(event, seats, owner).await,
        }
    }
}
