//! Exclusive ownership of the rooms in memory. On PostgreSQL, which other processes can reach, a
//! lease names the owner, and every step is written on condition that the lease still holds.
//!
//! An embedded database needs no lease: its directory is locked.

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

/// A process that has not renewed its lease for this long has stopped, and another may start.
pub(crate) const TTL: Duration = Duration::from_secs(5);
/// How long a starting process waits for an old lease to expire.
const PATIENCE: Duration = Duration::from_secs(7);
const PAUSE: Duration = Duration::from_millis(200);

statements! {
    /// Renews the lease, even after it expired, unless another process has taken it.
    KEEP = postgres "
        update leases set expires_at = clock_timestamp() + $3::bigint * interval '1 microsecond'
         where name = $1 and owner = $2";

    /// Whether the lease is still ours. The row lock keeps others from taking it until the
    /// transaction ends.
    OURS = postgres "select 1 from leases where name = $1 and owner = $2 for share";
}

/// This process's lease on the rooms. Clones share it.
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
    /// Acquires the lease, waiting for an old one to expire.
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

    /// Renews the lease until the process stops. Stops the process if another has taken it.
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
                            "another process has taken over the waiting rooms: this process stops (two processes need redis.urls)"
                        );
                        return;
                    }
                    // The journal cannot be written either, so admissions stop meanwhile.
                    Err(error) => {
                        let cause = urr_telemetry::chain(&error);
                        tracing::warn!(
                            cause,
                            "cannot renew the lease on the waiting rooms: the database failed; admissions stop until it answers"
                        );
                    }
                }
            }
        });
    }

    /// Whether the lease is still ours. Called inside the transaction that writes.
    pub(crate) async fn is_ours(&self, tx: &mut Tx<'_>) -> Result<bool, Error> {
        let Some(held) = &self.0 else { return Ok(true) };
        Ok(tx.optional(&OURS, &[&NAME, &held.owner], |_| Ok(())).await?.is_some())
    }

    /// Releases the lease, so that the next process can start at once.
    pub(crate) async fn release(&self) {
        let Some(Held { db, clock, owner, epoch }) = &self.0 else { return };
        if let Err(error) = lease::release(db, NAME, *owner, *epoch, clock.now()).await {
            let cause = urr_telemetry::chain(&error);
            tracing::warn!(
                cause,
                "cannot release the lease on the waiting rooms: the next process waits up to 5 s for it to expire"
            );
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
