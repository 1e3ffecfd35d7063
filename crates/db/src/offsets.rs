//! How far each consumer group of the in-process bus has read each source's outbox.

use crate::{Error, Position, Tx, statements};

statements! {
    /// Where a group is.
    LOAD = "select xid, seq from bus_offsets where consumer_group = $1 and source = $2";

    /// Moves a group.
    STORE = "insert into bus_offsets (consumer_group, source, xid, seq) values ($1, $2, $3, $4)
             on conflict (consumer_group, source) do update set xid = excluded.xid, seq = excluded.seq";
}

/// Where a group is in a source's log; `None` if it has never read.
pub async fn load(tx: &mut Tx<'_>, group: &str, source: &str) -> Result<Option<Position>, Error> {
    tx.optional(&LOAD, &[&group, &source], |row| Ok(Position { xid: row.get(0)?, seq: row.get(1)? })).await
}

/// Remembers where a group is.
pub async fn store(tx: &mut Tx<'_>, group: &str, source: &str, at: Position) -> Result<(), Error> {
    tx.execute(&STORE, &[&group, &source, &at.xid, &at.seq]).await.map(|_| ())
}
