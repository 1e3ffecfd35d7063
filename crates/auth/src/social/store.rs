//! Statements and rows of accounts elsewhere; nothing else.

use urr_contracts::auth::{LinkedAccount, Provider};
use urr_db::{Error, Row, Tx, statements};
use urr_kernel::{Timestamp, UserId};
use uuid::Uuid;

use crate::words::Word;

statements! {
    /// Makes an account elsewhere a way into an account, unless it is one or the account has one of the same provider.
    INSERT = "
        insert into linked_accounts (id, account_id, provider, subject_index, linked_at, last_used_at)
        values ($1, $2, $3, $4, $5, $6)
        on conflict do nothing";

    /// Whose account an account elsewhere leads to.
    OWNER = "select account_id from linked_accounts where provider = $1 and subject_index = $2";

    /// Notes that somebody signed in with it.
    USED = "update linked_accounts set last_used_at = $3 where provider = $1 and subject_index = $2";

    /// Every account elsewhere of an account.
    OF_ACCOUNT = "
        select provider, linked_at, last_used_at from linked_accounts where account_id = $1 order by linked_at, id";

    /// Makes an account elsewhere no longer a way into an account.
    REMOVE = "delete from linked_accounts where account_id = $1 and provider = $2";

    /// The same for all of an account's.
    REMOVE_ALL = "delete from linked_accounts where account_id = $1";
}

/// Links an account elsewhere. `false`: it leads to an account already, or the account has one of the same provider.
pub(crate) async fn insert(
    tx: &mut Tx<'_>,
    id: Uuid,
    account: UserId,
    (provider, subject): (Provider, &Vec<u8>),
    (now, used): (Timestamp, Option<Timestamp>),
) -> Result<bool, Error> {
    Ok(tx.execute(&INSERT, &[&id, &account, &Word(provider), subject, &now, &used]).await? == 1)
}

/// The account that an account elsewhere leads to.
pub(crate) async fn owner(
    tx: &mut Tx<'_>,
    provider: Provider,
    subject: &Vec<u8>,
) -> Result<Option<UserId>, Error> {
    tx.optional(&OWNER, &[&Word(provider), subject], |row| row.get(0)).await
}

/// Notes a sign-in. `false`: it was unlinked meanwhile.
pub(crate) async fn used(
    tx: &mut Tx<'_>,
    provider: Provider,
    subject: &Vec<u8>,
    now: Timestamp,
) -> Result<bool, Error> {
    Ok(tx.execute(&USED, &[&Word(provider), subject, &now]).await? == 1)
}

/// The accounts elsewhere of an account, the first linked first.
pub(crate) async fn of_account(tx: &mut Tx<'_>, account: UserId) -> Result<Vec<LinkedAccount>, Error> {
    tx.all(&OF_ACCOUNT, &[&account], linked).await
}

fn linked(row: &Row<'_>) -> Result<LinkedAccount, Error> {
    let Word(provider) = row.get(0)?;
    Ok(LinkedAccount { provider, linked_at: row.get(1)?, last_used_at: row.get(2)? })
}

/// Unlinks an account elsewhere. `false`: there is none.
pub(crate) async fn remove(tx: &mut Tx<'_>, account: UserId, provider: Provider) -> Result<bool, Error> {
    Ok(tx.execute(&REMOVE, &[&account, &Word(provider)]).await? == 1)
}

/// Unlinks every account elsewhere of an account. Answers with how many there were.
pub(crate) async fn remove_all(tx: &mut Tx<'_>, account: UserId) -> Result<u64, Error> {
    tx.execute(&REMOVE_ALL, &[&account]).await
}
