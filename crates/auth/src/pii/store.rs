//! Statements of keeping personal data sealed; nothing else.

use urr_db::{Error, Tx, statements};
use urr_kernel::{Timestamp, UserId};

use crate::accounts::store::Personal;

statements! {
    /// Accounts whose personal data is sealed with another key than the current one.
    STALE = "
        select id from accounts where erased_at is null and (pii_key < $1 or pii_key > $1) order by pii_key, id limit $2";

    /// Personal data sealed anew.
    RESEAL = "
        update accounts set email = $2, name = $3, phone = $4, pii_key = $5, updated_at = $6
         where id = $1 and erased_at is null";

    /// Every key that something is sealed with.
    KEYS = "
        select distinct pii_key from accounts where erased_at is null
         union select distinct pii_key from identities
         union select distinct pii_key from second_factors";

    /// Keeps a fact, unless it is known.
    KEEP_FACT = "insert into facts (name, value) values ($1, $2) on conflict (name) do nothing";

    /// A fact.
    FACT = "select value from facts where name = $1";
}

/// Accounts to seal anew.
pub(crate) async fn stale(tx: &mut Tx<'_>, key: &str, limit: u32) -> Result<Vec<UserId>, Error> {
    tx.all(&STALE, &[&key, &limit], |row| row.get(0)).await
}

/// Keeps personal data that was sealed anew.
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

/// Every key in use.
pub(crate) async fn keys(tx: &mut Tx<'_>) -> Result<Vec<String>, Error> {
    tx.all(&KEYS, &[], |row| row.get(0)).await
}

/// Keeps a fact if it is new, and gives back what is known.
pub(crate) async fn fact(tx: &mut Tx<'_>, name: &str, value: &Vec<u8>) -> Result<Vec<u8>, Error> {
    tx.execute(&KEEP_FACT, &[&name, value]).await?;
    tx.one(&FACT, &[&name], |row| row.get(0)).await
}
