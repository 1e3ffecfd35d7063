//! Statements of counting attempts; nothing else.

use urr_db::{Error, Tx, statements};
use urr_kernel::Timestamp;

statements! {
    /// Counts an attempt before it is made, unless the wait is not over. Answers with the count, or with nothing. Attempts
    /// are forgotten some time after the last.
    CHARGE = "
        insert into attempts (key, tries, last_at) values ($1, 1, $2)
        on conflict (key) do update
           set tries = case when attempts.last_at < $3 then 1 else attempts.tries + 1 end, last_at = excluded.last_at
         where attempts.locked_until is null or attempts.locked_until <= $2
        returning tries";

    /// From now on there is a wait.
    LOCK = "update attempts set locked_until = $2 where key = $1";

    /// Until when the wait is.
    LOCKED_UNTIL = "select locked_until from attempts where key = $1";

    /// The attempt was not made after all.
    TAKE_BACK = "update attempts set tries = tries - 1, locked_until = null where key = $1 and tries > 0";

    /// All is forgiven.
    CLEAR = "delete from attempts where key = $1";

    /// Lets something happen once until a given time. Answers with a row, or with nothing if it is too early.
    ONCE = "
        insert into attempts (key, tries, last_at, locked_until) values ($1, 1, $2, $3)
        on conflict (key) do update
           set tries = attempts.tries + 1, last_at = excluded.last_at, locked_until = excluded.locked_until
         where attempts.locked_until is null or attempts.locked_until <= $2
        returning tries";

    /// The count of failures, made if there is none, and nobody else changes it until the transaction ends.
    TRIES = "
        insert into attempts (key, tries, last_at) values ($1, 0, $2)
        on conflict (key) do update set tries = attempts.tries
        returning tries, last_at";

    /// Sets it.
    SET_TRIES = "update attempts set tries = $2, last_at = $3, locked_until = $4 where key = $1";

    /// Notes the time of an attempt that failed.
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

/// Makes the next attempt wait.
pub(crate) async fn lock(tx: &mut Tx<'_>, key: &Vec<u8>, until: Timestamp) -> Result<(), Error> {
    tx.execute(&LOCK, &[key, &until]).await?;
    Ok(())
}

/// Until when attempts wait.
pub(crate) async fn locked_until(tx: &mut Tx<'_>, key: &Vec<u8>) -> Result<Option<Timestamp>, Error> {
    Ok(tx.optional(&LOCKED_UNTIL, &[key], |row| row.get(0)).await?.flatten())
}

/// Takes an attempt back.
pub(crate) async fn take_back(tx: &mut Tx<'_>, key: &Vec<u8>) -> Result<(), Error> {
    tx.execute(&TAKE_BACK, &[key]).await?;
    Ok(())
}

/// Forgets every attempt.
pub(crate) async fn clear(tx: &mut Tx<'_>, key: &Vec<u8>) -> Result<(), Error> {
    tx.execute(&CLEAR, &[key]).await?;
    Ok(())
}

/// Whether it is time for something that may happen once until `until`.
pub(crate) async fn once(
    tx: &mut Tx<'_>,
    key: &Vec<u8>,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, Error> {
    let tries: Option<u32> = tx.optional(&ONCE, &[key, &now, &until], |row| row.get(0)).await?;
    Ok(tries.is_some())
}

/// Notes a failure.
pub(crate) async fn failed(tx: &mut Tx<'_>, key: &Vec<u8>, now: Timestamp) -> Result<(), Error> {
    tx.execute(&FAILED, &[key, &now]).await?;
    Ok(())
}

/// How many failures are counted and when that was true, locked until the transaction ends.
pub(crate) async fn tries(tx: &mut Tx<'_>, key: &Vec<u8>, now: Timestamp) -> Result<(u32, Timestamp), Error> {
    tx.one(&TRIES, &[key, &now], |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Sets the count of failures, when it was true and until when attempts wait.
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
