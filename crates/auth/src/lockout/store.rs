//! SQL statements of the attempt counters.

use urr_db::{Error, Tx, statements};
use urr_kernel::Timestamp;

statements! {
    /// Counts an attempt in advance and returns the count; no row if the wait is not over. Counters
    /// expire some time after the last attempt.
    CHARGE = "
        insert into attempts (key, tries, last_at) values ($1, 1, $2)
        on conflict (key) do update
           set tries = case when attempts.last_at < $3 then 1 else attempts.tries + 1 end, last_at = excluded.last_at
         where attempts.locked_until is null or attempts.locked_until <= $2
        returning tries";

    /// Sets the end of the wait.
    LOCK = "update attempts set locked_until = $2 where key = $1";

    /// Reads the end of the wait.
    LOCKED_UNTIL = "select locked_until from attempts where key = $1";

    /// Reverts an attempt.
    TAKE_BACK = "update attempts set tries = tries - 1, locked_until = null where key = $1 and tries > 0";

    /// Deletes a counter.
    CLEAR = "delete from attempts where key = $1";

    /// Inserts a marker that expires at the given time. Returns no row if there is an unexpired
    /// one.
    ONCE = "
        insert into attempts (key, tries, last_at, locked_until) values ($1, 1, $2, $3)
        on conflict (key) do update
           set tries = attempts.tries + 1, last_at = excluded.last_at, locked_until = excluded.locked_until
         where attempts.locked_until is null or attempts.locked_until <= $2
        returning tries";

    /// Reads and locks the failure counter, inserting it if necessary.
    TRIES = "
        insert into attempts (key, tries, last_at) values ($1, 0, $2)
        on conflict (key) do update set tries = attempts.tries
        returning tries, last_at";

    /// Updates the failure counter.
    SET_TRIES = "update attempts set tries = $2, last_at = $3, locked_until = $4 where key = $1";

    /// Records the time of a failed attempt.
    FAILED = "update attempts set last_at = $2 where key = $1";
}

/// Counts an attempt. `None`: the wait is not over.
pub(crate) async fn charge(
    tx: &mut Tx<'_>,
    key: &Vec<u8>,
    now: Timestamp,
    forget_before: Timestamp,
) -> Result<Option<u32>, Error> {
    tx.optional(&CHARGE, &[key, &now, &forget_before], |row| row.get(0)).await
}

/// Sets the end of the wait.
pub(crate) async fn lock(tx: &mut Tx<'_>, key: &Vec<u8>, until: Timestamp) -> Result<(), Error> {
    tx.execute(&LOCK, &[key, &until]).await?;
    Ok(())
}

/// Reads the end of the wait.
pub(crate) async fn locked_until(tx: &mut Tx<'_>, key: &Vec<u8>) -> Result<Option<Timestamp>, Error> {
    Ok(tx.optional(&LOCKED_UNTIL, &[key], |row| row.get(0)).await?.flatten())
}

/// Reverts an attempt.
pub(crate) async fn take_back(tx: &mut Tx<'_>, key: &Vec<u8>) -> Result<(), Error> {
    tx.execute(&TAKE_BACK, &[key]).await?;
    Ok(())
}

/// Deletes a counter.
pub(crate) async fn clear(tx: &mut Tx<'_>, key: &Vec<u8>) -> Result<(), Error> {
    tx.execute(&CLEAR, &[key]).await?;
    Ok(())
}

/// Returns `true` once, then `false` until `until`.
pub(crate) async fn once(
    tx: &mut Tx<'_>,
    key: &Vec<u8>,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, Error> {
    let tries: Option<u32> = tx.optional(&ONCE, &[key, &now, &until], |row| row.get(0)).await?;
    Ok(tries.is_some())
}

/// Records a failure.
pub(crate) async fn failed(tx: &mut Tx<'_>, key: &Vec<u8>, now: Timestamp) -> Result<(), Error> {
    tx.execute(&FAILED, &[key, &now]).await?;
    Ok(())
}

/// Reads the failure counter and its time, locked until the transaction ends.
pub(crate) async fn tries(tx: &mut Tx<'_>, key: &Vec<u8>, now: Timestamp) -> Result<(u32, Timestamp), Error> {
    tx.one(&TRIES, &[key, &now], |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Updates the failure counter, its time and the end of the wait.
pub(crate) async fn set_tries(
    tx: &mut Tx<'_>,
    key: &Vec<u8>,
    tries: u32,
    at: Timestamp,
    until: Option<Timestamp>,
) -> Result<(), Error> {
    tx.execute(&SET_TRIES, &[key, &tries, &at, &until]).await?;
    Ok(())
}
