//! SQL statements and rows of linked accounts.

use urr_contracts::auth::{LinkedAccount, Provider};
use urr_db::{EnumText, Error, Row, Tx, statements};
use urr_kernel::{Timestamp, UserId};
use uuid::Uuid;

statements! {
    /// Inserts a link, unless the provider account is linked or the account has another of the same
    /// provider.
    INSERT = "
        insert into linked_accounts (id, account_id, provider, subject_index, linked_at, last_used_at)
        values ($1, $2, $3, $4, $5, $6)
        on conflict do nothing";

    /// The account linked to a provider account.
    OWNER = "select account_id from linked_accounts where provider = $1 and subject_index = $2";

    /// Records a sign-in with a linked account.
    USED = "update linked_accounts set last_used_at = $3 where provider = $1 and subject_index = $2";

    /// All linked accounts of an account.
    OF_ACCOUNT = "
        select provider, linked_at, last_used_at from linked_accounts where account_id = $1 order by linked_at, id";

    /// Deletes a link.
    REMOVE = "delete from linked_accounts where account_id = $1 and provider = $2";

    /// Deletes all links of an account.
    REMOVE_ALL = "delete from linked_accounts where account_id = $1";
}

/// Inserts a link. Returns `false` if the provider account is linked already, or the account has
/// another of the same provider.
pub(crate) async fn insert(
    tx: &mut Tx<'_>,
    id: Uuid,
    account: UserId,
    (provider, subject): (Provider, &Vec<u8>),
    (now, used): (Timestamp, Option<Timestamp>),
) -> Result<bool, Error> {
    Ok(tx.execute(&INSERT, &[&id, &account, &EnumText(provider), subject, &now, &used]).await? == 1)
}

/// The account linked to a provider account.
pub(crate) async fn owner(
    tx: &mut Tx<'_>,
    provider: Provider,
    subject: &Vec<u8>,
) -> Result<Option<UserId>, Error> {
    tx.optional(&OWNER, &[&EnumText(provider), subject], |row| row.get(0)).await
}

/// Records a sign-in. Returns `false` if the link was removed meanwhile.
pub(crate) async fn used(
    tx: &mut Tx<'_>,
    provider: Provider,
    subject: &Vec<u8>,
    now: Timestamp,
) -> Result<bool, Error> {
    Ok(tx.execute(&USED, &[&EnumText(provider), subject, &now]).await? == 1)
}

/// An account's linked accounts, oldest first.
pub(crate) async fn of_account(tx: &mut Tx<'_>, account: UserId) -> Result<Vec<LinkedAccount>, Error> {
    tx.all(&OF_ACCOUNT, &[&account], linked).await
}

fn linked(row: &Row<'_>) -> Result<LinkedAccount, Error> {
    let EnumText(provider) = row.get(0)?;
    Ok(LinkedAccount { provider, linked_at: row.get(1)?, last_used_at: row.get(2)? })
}

/// Deletes a link. Returns `false` if there is none.
pub(crate) async fn remove(tx: &mut Tx<'_>, account: UserId, provider: Provider) -> Result<bool, Error> {
    Ok(tx.execute(&REMOVE, &[&account, &EnumText(provider)]).await? == 1)
}

/// Deletes all links of an account. Returns how many.
pub(crate) async fn remove_all(tx: &mut Tx<'_>, account: UserId) -> Result<u64, Error> {
    tx.execute(&REMOVE_ALL, &[&account]).await
}
