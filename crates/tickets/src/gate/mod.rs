//! The contention shield in front of the database. It holds no truth.
//!
//! When a thousand fans want one seat, one of them marks it here and goes on to the database; the others get their
//! answer for the price of one look. Losing every mark costs speed and nothing else: the claim in the database decides.

mod memory;
mod redis;
#[cfg(test)]
mod suite;

use std::time::Duration;

use urr_kernel::{Clock, EventId, SeatId};
use urr_kv::Kv;
use uuid::Uuid;

use self::{memory::Memory, redis::Redis};

/// How long a mark lasts: longer than the slowest claim, short enough to forget a buyer who vanished.
pub const GATE_TTL: Duration = Duration::from_secs(5);

/// Whose mark it is. The same buyer repeating the same request is the same owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner(Uuid);

impl Owner {
    /// An owner named by a UUID.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The name.
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }
}

/// What the gate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Every seat is marked for this owner: go on.
    Through,
    /// Others are on these seats right now; nothing was marked.
    Busy(Vec<SeatId>),
    /// The gate is down or full: go on, the database decides alone.
    Open,
}

/// The gate, in this process or shared by many.
#[derive(Debug)]
pub enum SeatGate {
    /// For one process.
    Memory(Memory),
    /// For many processes.
    Redis(Redis),
}

impl SeatGate {
    /// A gate in this process's memory whose marks last for `ttl`.
    pub fn memory(clock: Clock, ttl: Duration) -> Self {
        Self::Memory(Memory::new(clock, ttl))
    }

    /// A gate in Redis whose marks last for `ttl`.
    pub fn redis(kv: Kv, ttl: Duration) -> Self {
        Self::Redis(Redis::new(kv, ttl))
    }

    /// Marks every seat for `owner`, or none of them, in one atomic step.
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

    /// Removes the owner's marks from these seats. Marks of others stay.
    pub async fn release(&self, event: EventId, seats: &[SeatId], owner: Owner) {
        match self {
            Self::Memory(gate) => gate.release(event, seats, owner),
            Self::Redis(gate) => gate.release(event, seats, owner).await,
        }
    }
}
