//! Offsets of the in-process bus: how far each consumer group has read each source's outbox.

use crate::{Error, Position, Tx, statements};

statements! {
    /// Reads a group's offset.
    LOAD = "select xid, seq from bus_offsets where consumer_group = $1 and source = $2";

    /// Upserts a group's offset.
    STORE = "insert into bus_offsets (consumer_group, source, xid, seq) values ($1, $2, $3, $4)
             on conflict (consumer_group, source) do update set xid = excluded.xid, seq = excluded.seq";
}

/// The group's offset in a source's log; `None` if it has never read it.
pub async fn load(tx: &mut Tx<'_>, group: &str, source: &str) -> Result<Option<Position>, Error> {
    tx.optional(&LOAD, &[&group, &source], |row| Ok(Position { xid: row.get(0)?, seq: row.get(1)? })).await
}

/// Stores the group's offset.
pub async fn store(tx: &mut Tx<'_>, group: &str, source: &str, at: Position) -> Result<(), Error> {
    tx.execute(&STORE, &[&group, &source, &at.xid, &at.seq]).await.map(|_| ())
}
