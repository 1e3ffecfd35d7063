//! Leases: one of several processes does the work. A lease avoids duplicate work; it does not
//! protect data, because its owner may be paused and resume after expiry. Work that must not be
//! done twice carries the [`Epoch`] as a fencing token in its own conditional write.

use std::time::Duration;

use urr_kernel::Timestamp;
use uuid::Uuid;

use crate::{Db, EngineKind, Error, Tx, statements, transaction};

/// Fencing token: grows by one each time the lease is acquired, by any owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub i64);

statements! {
    /// Acquires a lease that is new, expired, or already the owner's.
    ACQUIRE_SQLITE = sqlite "
        insert into leases (name, owner, epoch, expires_at) values ($1, $2, 1, $4 + $3)
        on conflict (name) do update
           set owner = excluded.owner, epoch = leases.epoch + 1, expires_at = excluded.expires_at
         where leases.expires_at <= $4 or leases.owner = excluded.owner
        returning epoch";

    /// The same by the server's clock, so that clocks of different machines are never compared.
    ACQUIRE_POSTGRES = postgres "
        insert into leases (name, owner, epoch, expires_at)
        values ($1, $2, 1, clock_timestamp() + $3::bigint * interval '1 microsecond')
        on conflict (name) do update
           set owner = excluded.owner, epoch = leases.epoch + 1, expires_at = excluded.expires_at
         where leases.expires_at <= clock_timestamp() or leases.owner = excluded.owner
        returning epoch";

    /// Extends a lease that has not expired.
    RENEW_SQLITE = sqlite "
        update leases set expires_at = $5 + $4
         where name = $1 and owner = $2 and epoch = $3 and expires_at > $5";

    /// Extends a lease that has not expired.
    RENEW_POSTGRES = postgres "
        update leases set expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
         where name = $1 and owner = $2 and epoch = $3 and expires_at > clock_timestamp()";

    /// Expires a lease now. The row stays, because its epoch must not start again.
    RELEASE_SQLITE = sqlite "
        update leases set expires_at = $4 where name = $1 and owner = $2 and epoch = $3 and expires_at > $4";

    /// Expires a lease now.
    RELEASE_POSTGRES = postgres "
        update leases set expires_at = clock_timestamp()
         where name = $1 and owner = $2 and epoch = $3 and expires_at > clock_timestamp()";
}

/// Acquires the lease for `ttl` unless another owner holds it. `now` is used on SQLite; PostgreSQL
/// uses its own clock.
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

/// Extends the lease to `ttl` from now. `false` means that it is lost: stop the work.
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

/// Releases the lease, so that the next owner need not wait for it to expire. Returns whether it
/// was still held.
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
