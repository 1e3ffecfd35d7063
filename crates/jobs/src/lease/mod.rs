//! Leases: which of several processes runs a reconciler.
//!
//! A lease avoids duplicate work and protects nothing: its holder may be paused, lose the lease
//! without noticing and resume in the middle of its work. Work that must not commit after a
//! takeover calls [`Lease::still_mine`] inside its own transaction.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use urr_db::{
    Db, Tx,
    lease::{self, Epoch},
};
use urr_kernel::Clock;
use uuid::Uuid;

/// Configuration of one lease.
#[derive(Clone)]
pub struct LeaseConfig {
    /// Must be the database that the work changes, so that [`Lease::still_mine`] can protect it.
    pub db: Db,
    /// Name of the job, such as `tickets.expire_holds`.
    pub name: &'static str,
    /// Unique id of this process instance; changes on restart.
    pub owner: Uuid,
    /// Takeover delay after the holder crashes. The lease is renewed every third of it.
    pub ttl: Duration,
}

impl LeaseConfig {
    /// Ten seconds without a renewal mean a dead process; even a slow database answers several
    /// times in that period.
    pub const TTL: Duration = Duration::from_secs(10);
}

/// One process's handle on a lease. Clones share its state: a reconciler keeps one for its
/// transactions while [`run`](crate::run) uses another.
#[derive(Clone)]
pub struct Lease(Arc<Shared>);

struct Shared {
    config: LeaseConfig,
    held: Mutex<Option<Held>>,
}

#[derive(Clone, Copy)]
struct Held {
    epoch: Epoch,
    /// When it was last renewed, in [`Clock::ticks`].
    renewed: Duration,
}

urr_db::statements! {
    /// Finds the lease under this epoch. On PostgreSQL the row stays locked until the work commits,
    /// so a takeover waits for it; SQLite has one writer and needs no lock.
    STILL_MINE = sqlite "select 1 from leases where name = $1 and owner = $2 and epoch = $3"
                 postgres "select 1 from leases where name = $1 and owner = $2 and epoch = $3 for share";
}

impl Lease {
    /// A lease that is not held yet.
    pub fn new(config: LeaseConfig) -> Self {
        Self(Arc::new(Shared { config, held: Mutex::new(None) }))
    }

    /// Takeover delay after the holder crashes.
    pub fn ttl(&self) -> Duration {
        self.0.config.ttl
    }

    /// The current epoch, which grows with every acquisition; `None` if this process knows that it
    /// does not hold the lease. Use it as a fencing token for work outside the database.
    pub fn epoch(&self) -> Option<Epoch> {
        self.held().map(|held| held.epoch)
    }

    /// Whether no other process has taken over. Call it inside the transaction that does the work:
    /// if it returns `true` and the transaction commits, there was no takeover before the commit.
    pub async fn still_mine(&self, tx: &mut Tx<'_>) -> Result<bool, urr_db::Error> {
        let Some(held) = *self.held() else { return Ok(false) };
        let LeaseConfig { name, owner, .. } = &self.0.config;
        let found = tx.optional(&STILL_MINE, &[name, owner, &held.epoch.0], |_| Ok(())).await?;
        Ok(found.is_some())
    }

    /// Acquires or renews the lease; `false` if another process holds it.
    pub(crate) async fn hold(&self, clock: &Clock) -> Result<bool, urr_db::Error> {
        if self.renew(clock).await? {
            return Ok(true);
        }
        let LeaseConfig { db, name, owner, ttl } = &self.0.config;
        let renewed = clock.ticks();
        let epoch = lease::acquire(db, name, *owner, *ttl, clock.now()).await?;
        if let Some(epoch) = epoch {
            tracing::info!(
                job = name,
                epoch = epoch.0,
                "lease acquired: this process runs the job from now on"
            );
        }
        *self.held() = epoch.map(|epoch| Held { epoch, renewed });
        Ok(epoch.is_some())
    }

    /// Renews the lease until it is lost. Returns at once if it is not held.
    pub(crate) async fn lost(&self, clock: &Clock) {
        while self.epoch().is_some() {
            tokio::time::sleep(self.ttl() / 3).await;
            match self.renew(clock).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    let renewed = self.held().map(|held| held.renewed);
                    let job = self.0.config.name;
                    tracing::warn!(
                        job,
                        cause = urr_telemetry::chain(&error),
                        "lease not renewed: trying again until it expires"
                    );
                    if renewed.is_none_or(|renewed| clock.ticks() >= renewed + self.ttl()) {
                        return;
                    }
                }
            }
        }
    }

    /// Releases the lease, so that the next process need not wait for it to expire.
    pub(crate) async fn release(&self, clock: &Clock) {
        let Some(held) = self.held().take() else { return };
        let LeaseConfig { db, name, owner, .. } = &self.0.config;
        if let Err(error) = lease::release(db, name, *owner, held.epoch, clock.now()).await {
            tracing::warn!(
                job = name,
                cause = urr_telemetry::chain(&error),
                "lease not released: another process takes over when it expires"
            );
        }
    }

    /// Renews once. Returns `false` and forgets the lease if it is lost or was not held.
    async fn renew(&self, clock: &Clock) -> Result<bool, urr_db::Error> {
        let Some(held) = *self.held() else { return Ok(false) };
        let LeaseConfig { db, name, owner, ttl } = &self.0.config;
        let renewed = clock.ticks();
        let kept = lease::renew(db, name, *owner, held.epoch, *ttl, clock.now()).await?;
        if !kept {
            tracing::warn!(
                job = name,
                epoch = held.epoch.0,
                "lease lost: another process may run this job now"
            );
        }
        *self.held() = kept.then_some(Held { renewed, ..held });
        Ok(kept)
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeaseConfig { name, owner, .. } = &self.0.config;
        f.debug_struct("Lease").field("name", name).field("owner", owner).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
