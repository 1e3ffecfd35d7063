//! Which of several processes runs a reconciler.
//!
//! A lease saves effort and protects nothing: its holder may be paused, lose it without noticing and wake up in the
//! middle of its work. What must not happen after a takeover asks [`Lease::still_mine`] inside its own transaction.

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

/// What a lease is on, and for whom.
#[derive(Clone)]
pub struct LeaseConfig {
    /// Where the lease is kept: the database that the work changes, or [`Lease::still_mine`] could not protect it.
    pub db: Db,
    /// The work, such as `tickets.expire_holds`.
    pub name: &'static str,
    /// This process, told apart from every other and from its own earlier lives.
    pub owner: Uuid,
    /// How long the others wait when the holder dies without a word. It is renewed three times as often.
    pub ttl: Duration,
}

impl LeaseConfig {
    /// Ten seconds without a sign of life are a dead process; a slow database answers ten times in that.
    pub const TTL: Duration = Duration::from_secs(10);
}

/// This process's part in the struggle for one lease. Clones share it, so a reconciler keeps one for its transactions
/// while [`run`](crate::run) has another for its turns.
#[derive(Clone)]
pub struct Lease(Arc<Shared>);

struct Shared {
    config: LeaseConfig,
    held: Mutex<Option<Held>>,
}

#[derive(Clone, Copy)]
struct Held {
    epoch: Epoch,
    /// By [`Clock::ticks`].
    renewed: Duration,
}

urr_db::statements! {
    /// Finds the lease under this epoch. PostgreSQL keeps the row locked until the work commits, so that a takeover waits
    /// for it; SQLite has one writer and needs no lock.
    STILL_MINE = sqlite "select 1 from leases where name = $1 and owner = $2 and epoch = $3"
                 postgres "select 1 from leases where name = $1 and owner = $2 and epoch = $3 for share";
}

impl Lease {
    /// A lease that is not held yet.
    pub fn new(config: LeaseConfig) -> Self {
        Self(Arc::new(Shared { config, held: Mutex::new(None) }))
    }

    /// How long a holder that died is waited for.
    pub fn ttl(&self) -> Duration {
        self.0.config.ttl
    }

    /// The number of the current holding, which grows with every takeover; `None` when this process knows that it holds
    /// nothing. Work that leaves the database carries it along as a fence.
    pub fn epoch(&self) -> Option<Epoch> {
        self.held().map(|held| held.epoch)
    }

    /// Whether no other process has taken over. Asked inside the transaction that does the work: if it says yes and the
    /// transaction commits, then nobody took over before that.
    pub async fn still_mine(&self, tx: &mut Tx<'_>) -> Result<bool, urr_db::Error> {
        let Some(held) = *self.held() else { return Ok(false) };
        let LeaseConfig { name, owner, .. } = &self.0.config;
        let found = tx.optional(&STILL_MINE, &[name, owner, &held.epoch.0], |_| Ok(())).await?;
        Ok(found.is_some())
    }

    /// Takes the lease or keeps it; `false` if another process has it.
    pub(crate) async fn hold(&self, clock: &Clock) -> Result<bool, urr_db::Error> {
        if self.renew(clock).await? {
            return Ok(true);
        }
        let LeaseConfig { db, name, owner, ttl } = &self.0.config;
        let renewed = clock.ticks();
        let epoch = lease::acquire(db, name, *owner, *ttl, clock.now()).await?;
        if let Some(epoch) = epoch {
            tracing::info!(job = name, epoch = epoch.0, "this process holds the lease");
        }
        *self.held() = epoch.map(|epoch| Held { epoch, renewed });
        Ok(epoch.is_some())
    }

    /// Renews while the work runs or waits for its next turn; returns when the lease is lost, at once if none is held.
    pub(crate) async fn lost(&self, clock: &Clock) {
        while self.epoch().is_some() {
            tokio::time::sleep(self.ttl() / 3).await;
            match self.renew(clock).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    let renewed = self.held().map(|held| held.renewed);
                    let job = self.0.config.name;
                    tracing::warn!(job, cause = urr_telemetry::chain(&error), "the lease was not renewed");
                    if renewed.is_none_or(|renewed| clock.ticks() >= renewed + self.ttl()) {
                        return;
                    }
                }
            }
        }
    }

    /// Lets the lease go, so that the next process need not wait for it to run out.
    pub(crate) async fn release(&self, clock: &Clock) {
        let Some(held) = self.held().take() else { return };
        let LeaseConfig { db, name, owner, .. } = &self.0.config;
        if let Err(error) = lease::release(db, name, *owner, held.epoch, clock.now()).await {
            tracing::warn!(job = name, cause = urr_telemetry::chain(&error), "the lease was not released");
        }
    }

    /// Holds on for another while; `false`, and forgets, if there is nothing to hold on to.
    async fn renew(&self, clock: &Clock) -> Result<bool, urr_db::Error> {
        let Some(held) = *self.held() else { return Ok(false) };
        let LeaseConfig { db, name, owner, ttl } = &self.0.config;
        let renewed = clock.ticks();
        let kept = lease::renew(db, name, *owner, held.epoch, *ttl, clock.now()).await?;
        if !kept {
            tracing::warn!(job = name, epoch = held.epoch.0, "the lease was lost");
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
