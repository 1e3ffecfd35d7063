//! Whose rooms these are. Rooms in memory are one process's; on a server that other processes reach as well, a lease says whose, and
//! every step is written on condition that it still does.
//!
//! An embedded database needs none of this: its directory is locked.

use std::time::Duration;

use urr_db::{
    Db, EngineKind, Error, Tx,
    lease::{self, Epoch},
    statements, transaction,
};
use urr_jobs::Tasks;
use urr_kernel::{Clock, Ids};
use uuid::Uuid;

use crate::room::CannotOpen;

const NAME: &str = "queue.rooms_in_memory";

/// A process that has not been heard of for this long has died, and the next one may begin.
pub(crate) const TTL: Duration = Duration::from_secs(5);
/// Whoever starts waits this long for a process that may have died, in pauses.
const PATIENCE: Duration = Duration::from_secs(7);
const PAUSE: Duration = Duration::from_millis(200);

statements! {
    /// Goes on being the one, also after having been silent for long, unless another process has begun.
    KEEP = postgres "
        update leases set expires_at = clock_timestamp() + $3::bigint * interval '1 microsecond'
         where name = $1 and owner = $2";

    /// Whether it is still us. Nobody can begin before the transaction that asks has ended.
    OURS = postgres "select 1 from leases where name = $1 and owner = $2 for share";
}

/// This process's right to the rooms. Clones share it.
#[derive(Clone)]
pub(crate) struct Keeper(Option<Held>);

#[derive(Clone)]
struct Held {
    db: Db,
    clock: Clock,
    owner: Uuid,
    epoch: Epoch,
}

impl Keeper {
    /// Takes the rooms, once no other process has them.
    pub(super) async fn take(db: &Db, clock: &Clock, ids: &Ids) -> Result<Self, CannotOpen> {
        if db.engine() == EngineKind::Sqlite {
            return Ok(Self(None));
        }
        let (owner, started) = (Uuid::from_bytes(ids.bytes()), clock.ticks());
        loop {
            if let Some(epoch) = lease::acquire(db, NAME, owner, TTL, clock.now()).await? {
                return Ok(Self(Some(Held { db: db.clone(), clock: clock.clone(), owner, epoch })));
            }
            if clock.ticks().saturating_sub(started) > PATIENCE {
                return Err(CannotOpen::InUse);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Shows signs of life until the process stops, and stops it when another has begun.
    pub(super) fn watch(&self, tasks: &Tasks) {
        let Some(held) = self.0.clone() else { return };
        let stopping = tasks.token();
        tasks.spawn_essential("queue.keeper", async move {
            loop {
                tokio::select! {
                    () = stopping.cancelled() => return,
                    () = tokio::time::sleep(TTL / 3) => {}
                }
                match held.keep().await {
                    Ok(true) => {}
                    Ok(false) => {
                        tracing::error!(
                            "another process keeps the waiting rooms in its memory now: this one stops"
                        );
                        return;
                    }
                    // Nothing can be written either, so nobody is let in meanwhile.
                    Err(error) => {
                        let cause = urr_telemetry::chain(&error);
                        tracing::warn!(
                            cause,
                            "the database has not heard that the waiting rooms are still here"
                        );
                    }
                }
            }
        });
    }

    /// Whether the rooms are still ours. Asked inside the transaction that writes.
    pub(crate) async fn is_ours(&self, tx: &mut Tx<'_>) -> Result<bool, Error> {
        let Some(held) = &self.0 else { return Ok(true) };
        Ok(tx.optional(&OURS, &[&NAME, &held.owner], |_| Ok(())).await?.is_some())
    }

    /// Lets the next process begin at once.
    pub(crate) async fn release(&self) {
        let Some(Held { db, clock, owner, epoch }) = &self.0 else { return };
        if let Err(error) = lease::release(db, NAME, *owner, *epoch, clock.now()).await {
            let cause = urr_telemetry::chain(&error);
            tracing::warn!(cause, "the next process waits a moment before it has the waiting rooms");
        }
    }
}

impl Held {
    async fn keep(&self) -> Result<bool, Error> {
        let ttl = i64::try_from(TTL.as_micros()).unwrap_or(i64::MAX);
        transaction!(self.db, "queue.keep", async |tx: &mut Tx<'_>| {
            Ok::<_, Error>(tx.execute(&KEEP, &[&NAME, &self.owner, &ttl]).await? == 1)
        })
    }
}
