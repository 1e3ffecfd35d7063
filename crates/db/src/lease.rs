//! Leases: of several processes one does the work. A lease saves effort; it does not protect data, for its owner may be
//! paused and come back late. What must not be done twice carries the [`Epoch`] as a fence in its own conditional write.

use std::time::Duration;

use urr_kernel::Timestamp;
use uuid::Uuid;

use crate::{Db, EngineKind, Error, Tx, statements, transaction};

/// The how-manieth holding of a lease this is. It only grows, over all owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub i64);

statements! {
    /// Takes a lease that is new, has run out, or is the owner's already.
    ACQUIRE_SQLITE = sqlite "
        insert into leases (name, owner, epoch, expires_at) values ($1, $2, 1, $4 + $3)
        on conflict (name) do update
           set owner = excluded.owner, epoch = leases.epoch + 1, expires_at = excluded.expires_at
         where leases.expires_at <= $4 or leases.owner = excluded.owner
        returning epoch";

    /// The same by the server's clock, so that no two machines' clocks are ever compared.
    ACQUIRE_POSTGRES = postgres "
        insert into leases (name, owner, epoch, expires_at)
        values ($1, $2, 1, clock_timestamp() + $3::bigint * interval '1 microsecond')
        on conflict (name) do update
           set owner = excluded.owner, epoch = leases.epoch + 1, expires_at = excluded.expires_at
         where leases.expires_at <= clock_timestamp() or leases.owner = excluded.owner
        returning epoch";

    /// Keeps a lease that has not run out.
    RENEW_SQLITE = sqlite "
        update leases set expires_at = $5 + $4
         where name = $1 and owner = $2 and epoch = $3 and expires_at > $5";

    /// Keeps a lease that has not run out.
    RENEW_POSTGRES = postgres "
        update leases set expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
         where name = $1 and owner = $2 and epoch = $3 and expires_at > clock_timestamp()";

    /// Lets a lease run out now. The row stays, for its epoch must not start again.
    RELEASE_SQLITE = sqlite "
        update leases set expires_at = $4 where name = $1 and owner = $2 and epoch = $3 and expires_at > $4";

    /// Lets a lease run out now.
    RELEASE_POSTGRES = postgres "
        update leases set expires_at = clock_timestamp()
         where name = $1 and owner = $2 and epoch = $3 and expires_at > clock_timestamp()";
}

/// Takes the lease for `ttl` unless somebody else holds it. `now` counts on SQLite; a server goes by its own clock.
pub async fn acquire(
    db: &Db,
    name: &str,
    owner: Uuid,
    ttl: Duration,
    now: Timestamp,
) -> Result<Option<Epoch>, Error> {
    let ttl = micros(ttl);
    transaction!(db, "lease.acquire", async |tx: &mut Tx<'_>| {
        let epoch = match tx.engine_kind() {
            EngineKind::Sqlite => {
                tx.optional(&ACQUIRE_SQLITE, &[&name, &owner, &ttl, &now], |row| row.get(0)).await?
            }
            EngineKind::Postgres => {
                tx.optional(&ACQUIRE_POSTGRES, &[&name, &owner, &ttl], |row| row.get(0)).await?
            }
        };
        Ok(epoch.map(Epoch))
    })
}

/// Holds the lease for another `ttl` from now. `false` means that it is lost: stop the work.
pub async fn renew(
    db: &Db,
    name: &str,
    owner: Uuid,
    epoch: Epoch,
    ttl: Duration,
    now: Timestamp,
) -> Result<bool, Error> {
    let ttl = micros(ttl);
    transaction!(db, "lease.renew", async |tx: &mut Tx<'_>| {
        let kept = match tx.engine_kind() {
            EngineKind::Sqlite => tx.execute(&RENEW_SQLITE, &[&name, &owner, &epoch.0, &ttl, &now]).await?,
            EngineKind::Postgres => tx.execute(&RENEW_POSTGRES, &[&name, &owner, &epoch.0, &ttl]).await?,
        };
        Ok(kept == 1)
    })
}

/// Lets the lease go, so that the next owner need not wait for it to run out. Says whether it was still held.
pub async fn release(db: &Db, name: &str, owner: Uuid, epoch: Epoch, now: Timestamp) -> Result<bool, Error> {
    transaction!(db, "lease.release", async |tx: &mut Tx<'_>| {
        let freed = match tx.engine_kind() {
            EngineKind::Sqlite => tx.execute(&RELEASE_SQLITE, &[&name, &owner, &epoch.0, &now]).await?,
            EngineKind::Postgres => tx.execute(&RELEASE_POSTGRES, &[&name, &owner, &epoch.0]).await?,
        };
        Ok(freed == 1)
    })
}

fn micros(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX / 4)
}
