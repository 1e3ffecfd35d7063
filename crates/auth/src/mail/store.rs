//! Statements and rows of mails; nothing else.

use urr_db::{Error, Row, Tx, statements};
use urr_kernel::{Timestamp, UserId};
use uuid::Uuid;

use super::Kind;

statements! {
    /// A mail to be sent. Nothing if nobody has the account: the same statement runs for known and unknown addresses.
    INSERT =
        sqlite "
        insert into mails (id, account_id, kind, state, attempts, next_at, created_at)
        select $1, id, $3, 'waiting', 0, $4, $4 from accounts where id = $2"
        postgres "
        insert into mails (id, account_id, kind, state, attempts, next_at, created_at)
        select $1::uuid, id, $3::text, 'waiting', 0, $4::timestamptz, $4::timestamptz from accounts where id = $2";

    /// Mails whose time has come.
    DUE = "
        select id, account_id, kind, attempts from mails where state = 'waiting' and next_at <= $1
         order by next_at limit $2";

    /// Those of one kind.
    DUE_OF_KIND = "
        select id, account_id, kind, attempts from mails where state = 'waiting' and kind = $3 and next_at <= $1
         order by next_at limit $2";

    /// Takes a mail for one attempt: whoever changes a row sends it. The next attempt waits until then.
    CLAIM = "
        update mails set attempts = attempts + 1, next_at = $3 where id = $1 and attempts = $2 and state = 'waiting'";

    /// It is over.
    FINISH = "
        update mails set state = $2, ended_at = $3, trouble = $4 where id = $1 and state = 'waiting'";
}

/// A mail to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) id: Uuid,
    pub(crate) account: UserId,
    pub(crate) kind: Kind,
    /// Attempts made so far.
    pub(crate) attempts: u32,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Sent,
    Failed,
}
urr_db::text_enum! { State { Sent = "sent", Failed = "failed" } }

/// Keeps a mail to be sent, if somebody has the account.
pub(crate) async fn insert(
    tx: &mut Tx<'_>,
    id: Uuid,
    account: UserId,
    kind: Kind,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(&INSERT, &[&id, &account, &kind, &now]).await?;
    Ok(())
}

/// Mails whose time has come, those that have waited longest first.
pub(crate) async fn due(tx: &mut Tx<'_>, now: Timestamp, limit: u32) -> Result<Vec<Due>, Error> {
    tx.all(&DUE, &[&now, &limit], a_due).await
}

/// Those of one kind.
pub(crate) async fn due_of_kind(
    tx: &mut Tx<'_>,
    kind: Kind,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Due>, Error> {
    tx.all(&DUE_OF_KIND, &[&now, &limit, &kind], a_due).await
}

fn a_due(row: &Row<'_>) -> Result<Due, Error> {
    Ok(Due { id: row.get(0)?, account: row.get(1)?, kind: row.get(2)?, attempts: row.get(3)? })
}

/// Takes a mail for one attempt. `false`: somebody else has it.
pub(crate) async fn claim(tx: &mut Tx<'_>, mail: &Due, next_at: Timestamp) -> Result<bool, Error> {
    Ok(tx.execute(&CLAIM, &[&mail.id, &mail.attempts, &next_at]).await? == 1)
}

/// Notes how it ended.
pub(crate) async fn finish(
    tx: &mut Tx<'_>,
    id: Uuid,
    state: State,
    now: Timestamp,
    trouble: Option<&str>,
) -> Result<(), Error> {
    tx.execute(&FINISH, &[&id, &state, &now, &trouble]).await?;
    Ok(())
}
