//! SQL statements of re-encryption.

use urr_db::{Error, Sql, Tx, statements};
use urr_kernel::{Timestamp, UserId};

use crate::accounts::store::Personal;

statements! {
    /// Accounts encrypted with another than the current key, after a given one.
    pub(crate) STALE = "
        select pii_key, id from accounts
         where erased_at is null and (pii_key < $1 or pii_key > $1) and (pii_key, id) > ($2, $3)
         order by pii_key, id limit $4";

    /// Updates re-encrypted personal data.
    RESEAL = "
        update accounts set email = $2, name = $3, phone = $4, pii_key = $5, updated_at = $6
         where id = $1 and erased_at is null";

    /// Every key id in use.
    KEYS = "
        select distinct pii_key from accounts where erased_at is null
         union select distinct pii_key from identities
         union select distinct pii_key from second_factors";

    /// Inserts a fact, unless it exists.
    KEEP_FACT = "insert into facts (name, value) values ($1, $2) on conflict (name) do nothing";

    /// Reads a fact.
    FACT = "select value from facts where name = $1";
}

/// A row to re-encrypt: its key id and account.
pub(crate) type Stale = (String, UserId);

/// Rows to re-encrypt, found by `sql`: encrypted with another key than `key`, in order, after
/// `after`.
pub(crate) async fn stale(
    tx: &mut Tx<'_>,
    sql: &'static Sql,
    key: &str,
    after: &Stale,
    limit: u32,
) -> Result<Vec<Stale>, Error> {
    tx.all(sql, &[&key, &after.0, &after.1, &limit], |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Updates re-encrypted personal data.
pub(crate) async fn reseal(
    tx: &mut Tx<'_>,
    id: UserId,
    personal: &Personal,
    key: &str,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(&RESEAL, &[&id, &personal.email, &personal.name, &personal.phone, &key, &now]).await?;
    Ok(())
}

/// Every key id in use.
pub(crate) async fn keys(tx: &mut Tx<'_>) -> Result<Vec<String>, Error> {
    tx.all(&KEYS, &[], |row| row.get(0)).await
}

/// Inserts a fact if it is new, and returns the stored one.
pub(crate) async fn fact(tx: &mut Tx<'_>, name: &str, value: &Vec<u8>) -> Result<Vec<u8>, Error> {
    tx.execute(&KEEP_FACT, &[&name, value]).await?;
    tx.one(&FACT, &[&name], |row| row.get(0)).await
}
