//! Statements and rows of the audit log; nothing else.

use urr_contracts::queue;
use urr_db::{Error, Row, Tx, statements};
use urr_kernel::{EventId, Timestamp, UserId};
use uuid::Uuid;

statements! {
    /// Inserts an audit entry, before the command is executed.
    ASK = "
        insert into audit (id, event_id, at, user_id, action, number, done) values ($1, $2, $3, $4, $5, $6, $7)";

    /// Marks an entry as done.
    DONE = "update audit set done = $2 where id = $1";

    NEWEST = "
        select at, user_id, action, number, done from audit where event_id = $1
         order by at desc, id desc limit $2";
}

/// Values of the column `action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Threshold,
    Pause,
    Resume,
    Clear,
}

urr_db::text_enum! { Action { Threshold = "threshold", Pause = "pause", Resume = "resume", Clear = "clear" } }

/// An audit entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) id: Uuid,
    pub(crate) event: EventId,
    pub(crate) at: Timestamp,
    pub(crate) by: Option<UserId>,
    pub(crate) action: Action,
    pub(crate) number: Option<u32>,
}

/// Inserts an audit entry.
pub(crate) async fn ask(tx: &mut Tx<'_>, asked: &Asked) -> Result<(), Error> {
    let Asked { id, event, at, by, action, number } = asked;
    tx.execute(&ASK, &[id, event, at, by, action, number, &false]).await?;
    Ok(())
}

/// Marks an entry as done.
pub(crate) async fn done(tx: &mut Tx<'_>, id: Uuid) -> Result<(), Error> {
    tx.execute(&DONE, &[&id, &true]).await?;
    Ok(())
}

/// Up to `limit` actions, newest first.
pub(crate) async fn newest(tx: &mut Tx<'_>, event: EventId, limit: u32) -> Result<Vec<queue::Deed>, Error> {
    let deed = |row: &Row<'_>| {
        Ok(queue::Deed {
            at: row.get(0)?,
            by: row.get(1)?,
            what: row.get::<Action>(2)?.as_str().to_owned(),
            number: row.get(3)?,
            done: row.get(4)?,
        })
    };
    tx.all(&NEWEST, &[&event, &limit], deed).await
}
