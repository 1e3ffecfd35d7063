//! The gate in Redis. Both operations are scripts; all keys of an event hash to one slot.

use std::time::Duration;

use urr_kernel::{EventId, SeatId};
use urr_kv::{Arg, Error, Kv, Script};

use super::{Entry, Owner};

static ACQUIRE: Script = Script::new("gate.acquire", include_str!("acquire.lua"));
static RELEASE: Script = Script::new("gate.release", include_str!("release.lua"));

/// Marks by seat, in Redis.
#[derive(Debug)]
pub struct Redis {
    kv: Kv,
    ttl: Duration,
}

impl Redis {
    pub(super) fn new(kv: Kv, ttl: Duration) -> Self {
        Self { kv, ttl }
    }

    pub(super) async fn acquire(&self, event: EventId, seats: &[SeatId], owner: Owner) -> Entry {
        match self.try_acquire(event, seats, owner).await {
            Ok(busy) if busy.is_empty() => Entry::Through,
            Ok(busy) => Entry::Busy(busy),
            Err(error) => {
                tracing::debug!(%error, "redis did not answer: gate skipped, the database decides alone");
                Entry::Open
            }
        }
    }

    async fn try_acquire(
        &self,
        event: EventId,
        seats: &[SeatId],
        owner: Owner,
    ) -> Result<Vec<SeatId>, Error> {
        let owner = owner.as_uuid();
        let ttl_ms = i64::try_from(self.ttl.as_millis()).unwrap_or(i64::MAX).max(1);
        let args = [Arg::from(owner.as_bytes().as_slice()), Arg::from(ttl_ms)];
        let reply = self.kv.run(&ACQUIRE, &keys(event, seats), &args).await?;
        let mut busy = Vec::new();
        for place in reply.list()? {
            let place = usize::try_from(place.int()?).ok().and_then(|place| place.checked_sub(1));
            let seat = place.and_then(|place| seats.get(place));
            busy.push(*seat.ok_or_else(|| Error::Reply("a seat that was not asked for".to_owned()))?);
        }
        Ok(busy)
    }

    pub(super) async fn release(&self, event: EventId, seats: &[SeatId], owner: Owner) {
        let owner = owner.as_uuid();
        let args = [Arg::from(owner.as_bytes().as_slice())];
        if let Err(error) = self.kv.run(&RELEASE, &keys(event, seats), &args).await {
            tracing::debug!(%error, "redis did not answer: marks stay in the gate until they expire");
        }
    }
}

fn keys(event: EventId, seats: &[SeatId]) -> Vec<String> {
    seats.iter().map(|seat| format!("gate:{{{event}}}:{seat}")).collect()
}
