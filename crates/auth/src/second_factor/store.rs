//! SQL statements and rows of second factors.

use urr_db::{Error, Tx, statements};
use urr_kernel::{Ids, Timestamp, UserId};

use super::rules;
use crate::{
    Failure,
    pii::{CellRef, Unreadable, Vault},
};

statements! {
    /// Inserts an unconfirmed secret, replacing another unconfirmed one.
    ENROL = "
        insert into second_factors (account_id, secret, pii_key, last_step, created_at) values ($1, $2, $3, -1, $4)
        on conflict (account_id) do update
           set secret = excluded.secret, pii_key = excluded.pii_key, last_step = -1, created_at = excluded.created_at
         where second_factors.confirmed_at is null";

    /// Loads an account's second factor, confirmed or not.
    GET = "select secret, last_step, created_at, confirmed_at from second_factors where account_id = $1";

    /// Accepts a time step. Only one caller updates the row.
    ACCEPT = "update second_factors set last_step = $2 where account_id = $1 and last_step < $2";

    /// Marks the second factor as confirmed.
    CONFIRM = "update second_factors set confirmed_at = $2 where account_id = $1 and confirmed_at is null";

    /// Sets the flag on the account.
    MARK = "update accounts set second_factor_at = $2, updated_at = $3 where id = $1";

    /// Whether an account has a second factor.
    IS_ON = "select second_factor_at from accounts where id = $1";

    /// Inserts a recovery code.
    ADD_CODE = "insert into recovery_codes (account_id, code_hash) values ($1, $2) on conflict do nothing";

    /// Deletes a recovery code. Only one caller deletes the row.
    USE_CODE = "delete from recovery_codes where account_id = $1 and code_hash = $2";

    /// Deletes a second factor.
    pub(crate) REMOVE = "delete from second_factors where account_id = $1";
    /// Deletes an account's recovery codes.
    pub(crate) REMOVE_CODES = "delete from recovery_codes where account_id = $1";

    /// Second factors encrypted with another than the current key.
    pub(crate) STALE = "
        select pii_key, account_id from second_factors
         where (pii_key < $1 or pii_key > $1) and (pii_key, account_id) > ($2, $3)
         order by pii_key, account_id limit $4";

    /// Updates a re-encrypted secret.
    RESEAL = "update second_factors set secret = $2, pii_key = $3 where account_id = $1";
}

/// A second factor.
pub(crate) struct Factor {
    /// The secret shared with the app.
    pub(crate) secret: Vec<u8>,
    pub(crate) last_step: i64,
    pub(crate) created_at: Timestamp,
    pub(crate) confirmed: bool,
}

const COLUMN: &str = "second_factors.secret";

fn cell(account: UserId) -> CellRef {
    CellRef { column: COLUMN, row: account.as_uuid() }
}

/// Inserts a new secret. Returns `false` if the second factor is already on.
pub(crate) async fn enrol(
    (vault, ids): (&Vault, &Ids),
    tx: &mut Tx<'_>,
    account: UserId,
    secret: &str,
    now: Timestamp,
) -> Result<bool, Error> {
    let sealed = vault.seal_secret(ids, cell(account), secret);
    Ok(tx.execute(&ENROL, &[&account, &sealed, &vault.key(), &now]).await? == 1)
}

/// Loads an account's second factor, confirmed or not.
pub(crate) async fn get(vault: &Vault, tx: &mut Tx<'_>, account: UserId) -> Result<Option<Factor>, Failure> {
    let found = tx
        .optional(&GET, &[&account], |row| {
            let confirmed = row.get::<Option<Timestamp>>(3)?.is_some();
            Ok((row.get::<Vec<u8>>(0)?, row.get(1)?, row.get(2)?, confirmed))
        })
        .await?;
    let Some((sealed, last_step, created_at, confirmed)) = found else { return Ok(None) };
    let text = vault.open(cell(account), &sealed)?;
    let secret = rules::from_base32(&text).ok_or(Unreadable::Changed { column: COLUMN })?;
    Ok(Some(Factor { secret, last_step, created_at, confirmed }))
}

/// Accepts a time step. Returns `false` if it was used meanwhile.
pub(crate) async fn accept(tx: &mut Tx<'_>, account: UserId, step: i64) -> Result<bool, Error> {
    Ok(tx.execute(&ACCEPT, &[&account, &step]).await? == 1)
}

/// Turns the second factor on.
pub(crate) async fn confirm(tx: &mut Tx<'_>, account: UserId, now: Timestamp) -> Result<(), Error> {
    tx.execute(&CONFIRM, &[&account, &now]).await?;
    tx.execute(&MARK, &[&account, &Some(now), &now]).await?;
    Ok(())
}

/// Whether an account has a second factor.
pub(crate) async fn is_on(tx: &mut Tx<'_>, account: UserId) -> Result<bool, Error> {
    let at: Option<Option<Timestamp>> = tx.optional(&IS_ON, &[&account], |row| row.get(0)).await?;
    Ok(at.flatten().is_some())
}

/// Turns the second factor off and deletes its data.
pub(crate) async fn remove(tx: &mut Tx<'_>, account: UserId, now: Timestamp) -> Result<(), Error> {
    tx.execute(&REMOVE, &[&account]).await?;
    tx.execute(&REMOVE_CODES, &[&account]).await?;
    tx.execute(&MARK, &[&account, &None::<Timestamp>, &now]).await?;
    Ok(())
}

/// The keyed hash of a recovery code. The key is not in the database, so a stolen table cannot be
/// brute-forced.
fn hash(vault: &Vault, account: UserId, code: &str) -> Vec<u8> {
    vault.index("recovery code", &format!("{account} {code}"))
}

/// Replaces the recovery codes of an account.
pub(crate) async fn set_codes(
    vault: &Vault,
    tx: &mut Tx<'_>,
    account: UserId,
    codes: &[String],
) -> Result<(), Error> {
    tx.execute(&REMOVE_CODES, &[&account]).await?;
    for code in codes {
        tx.execute(&ADD_CODE, &[&account, &hash(vault, account, code)]).await?;
    }
    Ok(())
}

/// Uses a recovery code. Returns `false` if it does not exist or was used.
pub(crate) async fn use_code(
    vault: &Vault,
    tx: &mut Tx<'_>,
    account: UserId,
    code: &str,
) -> Result<bool, Error> {
    Ok(tx.execute(&USE_CODE, &[&account, &hash(vault, account, code)]).await? == 1)
}

/// Re-encrypts a secret with the current key.
pub(crate) async fn reseal(
    (vault, ids): (&Vault, &Ids),
    tx: &mut Tx<'_>,
    account: UserId,
) -> Result<(), Failure> {
    if let Some(factor) = get(vault, tx, account).await? {
        let sealed = vault.seal_secret(ids, cell(account), &rules::base32(&factor.secret));
        tx.execute(&RESEAL, &[&account, &sealed, &vault.key()]).await?;
    }
    Ok(())
}
