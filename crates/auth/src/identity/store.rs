//! SQL statements and rows of identities.

use urr_contracts::auth::{Identity, IdentitySource};
use urr_db::{EnumText, Error, Tx, statements};
use urr_kernel::{Ids, Timestamp, UserId};
use uuid::Uuid;

use super::provider::Person;
use crate::{
    Failure,
    pii::{CellRef, Vault},
};

statements! {
    /// Inserts a started verification.
    BEGIN = "insert into identity_checks (id, account_id, created_at, expires_at) values ($1, $2, $3, $4)";

    /// Deletes an account's verifications except the newest.
    TRIM = "
        delete from identity_checks where account_id = $1
            and id not in (select id from identity_checks where account_id = $1 order by id desc limit $2)";

    /// Whether an account's verification can still be completed.
    IS_OPEN = "
        select id from identity_checks where id = $1 and account_id = $2 and used_at is null and expires_at > $3";

    /// Marks a verification as completed. Only one caller gets a row.
    SPEND = "
        update identity_checks set used_at = $3
         where id = $1 and account_id = $2 and used_at is null and expires_at > $3
        returning id";

    /// Inserts an account's identity, unless the person has another account.
    INSERT = "
        insert into identities (account_id, ci_index, person, pii_key, source, verified_at)
        values ($1, $2, $3, $4, $5, $6)
        on conflict do nothing";

    /// Updates the identity after the same person was verified again.
    RENEW = "
        update identities set person = $3, pii_key = $4, source = $5, verified_at = $6
         where account_id = $1 and ci_index = $2";

    /// Sets the time of verification on the account.
    MARK = "update accounts set identity_verified_at = $2, updated_at = $2 where id = $1";

    /// Loads an account's identity.
    GET = "select ci_index, person, source, verified_at from identities where account_id = $1";

    /// When the account with this identity was closed.
    HOLDER = "
        select a.deleted_at from identities i join accounts a on a.id = i.account_id where i.ci_index = $1";

    /// Identities encrypted with another than the current key, after a given one.
    pub(crate) STALE = "
        select pii_key, account_id from identities
         where (pii_key < $1 or pii_key > $1) and (pii_key, account_id) > ($2, $3)
         order by pii_key, account_id limit $4";

    /// Updates a re-encrypted identity.
    RESEAL = "update identities set person = $2, pii_key = $3 where account_id = $1";

    /// Deletes an account's verifications.
    pub(crate) ERASE_CHECKS = "delete from identity_checks where account_id = $1";
    /// Deletes an identity, so that the person may have another account.
    pub(crate) ERASE = "delete from identities where account_id = $1";
}

/// A stored identity with its person.
pub(crate) struct StoredIdentity {
    pub(crate) ci_index: Vec<u8>,
    pub(crate) person: Person,
    pub(crate) source: IdentitySource,
    pub(crate) verified_at: Timestamp,
}

impl StoredIdentity {
    /// The fields that other roles may read.
    pub(crate) fn shown(&self) -> Identity {
        Identity { source: self.source, verified_at: self.verified_at, birth_date: self.person.birth_date }
    }
}

/// The blind index of a person.
pub(crate) fn ci_index(vault: &Vault, ci: &str) -> Vec<u8> {
    vault.index("ci", ci)
}

fn cell(account: UserId) -> CellRef {
    CellRef { column: "identities.person", row: account.as_uuid() }
}

fn seal((vault, ids): (&Vault, &Ids), account: UserId, person: &Person) -> Vec<u8> {
    let text = serde_json::to_string(person).expect("a person is plain data and always serialises");
    vault.seal(ids, cell(account), &text)
}

/// Inserts a verification and deletes all but the `most` newest of the account.
pub(crate) async fn begin(
    tx: &mut Tx<'_>,
    id: Uuid,
    account: UserId,
    (now, expires_at): (Timestamp, Timestamp),
    most: u32,
) -> Result<(), Error> {
    tx.execute(&BEGIN, &[&id, &account, &now, &expires_at]).await?;
    tx.execute(&TRIM, &[&account, &most]).await?;
    Ok(())
}

/// Whether a verification belongs to the account and can still be completed.
pub(crate) async fn is_open(
    tx: &mut Tx<'_>,
    id: Uuid,
    account: UserId,
    now: Timestamp,
) -> Result<bool, Error> {
    Ok(tx.optional(&IS_OPEN, &[&id, &account, &now], |row| row.get::<Uuid>(0)).await?.is_some())
}

/// Marks a verification as completed. Returns `false` if that is no longer possible.
pub(crate) async fn spend(tx: &mut Tx<'_>, id: Uuid, account: UserId, now: Timestamp) -> Result<bool, Error> {
    Ok(tx.optional(&SPEND, &[&id, &account, &now], |row| row.get::<Uuid>(0)).await?.is_some())
}

/// Inserts an account's first identity. Returns `false` if the person has another account.
pub(crate) async fn insert(
    keys: (&Vault, &Ids),
    tx: &mut Tx<'_>,
    account: UserId,
    (person, source): (&Person, IdentitySource),
    now: Timestamp,
) -> Result<bool, Error> {
    let (index, sealed) = (ci_index(keys.0, &person.ci), seal(keys, account, person));
    let made =
        tx.execute(&INSERT, &[&account, &index, &sealed, &keys.0.key(), &EnumText(source), &now]).await? == 1;
    if made {
        tx.execute(&MARK, &[&account, &now]).await?;
    }
    Ok(made)
}

/// Updates the data of the same person.
pub(crate) async fn renew(
    keys: (&Vault, &Ids),
    tx: &mut Tx<'_>,
    account: UserId,
    (person, source): (&Person, IdentitySource),
    now: Timestamp,
) -> Result<(), Error> {
    let (index, sealed) = (ci_index(keys.0, &person.ci), seal(keys, account, person));
    tx.execute(&RENEW, &[&account, &index, &sealed, &keys.0.key(), &EnumText(source), &now]).await?;
    tx.execute(&MARK, &[&account, &now]).await?;
    Ok(())
}

/// Loads an account's identity.
pub(crate) async fn get(
    vault: &Vault,
    tx: &mut Tx<'_>,
    account: UserId,
) -> Result<Option<StoredIdentity>, Failure> {
    let found = tx
        .optional(&GET, &[&account], |row| {
            let EnumText(source) = row.get(2)?;
            Ok((row.get::<Vec<u8>>(0)?, row.get::<Vec<u8>>(1)?, source, row.get(3)?))
        })
        .await?;
    let Some((ci_index, sealed, source, verified_at)) = found else { return Ok(None) };
    let text = vault.open(cell(account), &sealed)?;
    let changed = |_| crate::pii::Unreadable::Changed { column: "identities.person" };
    let person = serde_json::from_str(&text).map_err(changed)?;
    Ok(Some(StoredIdentity { ci_index, person, source, verified_at }))
}

/// When the person's account was closed; `None` if it is open or no longer exists.
pub(crate) async fn closed_at(tx: &mut Tx<'_>, ci_index: &Vec<u8>) -> Result<Option<Timestamp>, Error> {
    Ok(tx.optional(&HOLDER, &[ci_index], |row| row.get(0)).await?.flatten())
}

/// Re-encrypts an identity with the current key.
pub(crate) async fn reseal(keys: (&Vault, &Ids), tx: &mut Tx<'_>, account: UserId) -> Result<(), Failure> {
    if let Some(kept) = get(keys.0, tx, account).await? {
        tx.execute(&RESEAL, &[&account, &seal(keys, account, &kept.person), &keys.0.key()]).await?;
    }
    Ok(())
}
