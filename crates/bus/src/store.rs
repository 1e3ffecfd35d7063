//! SQL of the in-process bus beyond `db`: conditional offset updates and marking of processed rows.

use urr_db::{EngineKind, Error, Position, Tx, statements};
use urr_kernel::Timestamp;

/// Rows marked per transaction: a few milliseconds, so that other writes are not delayed.
pub(crate) const MARK_BATCH: u32 = 1_000;

statements! {
    /// Inserts a group's first offset.
    BEGIN = "insert into bus_offsets (consumer_group, source, xid, seq) values ($1, $2, $3, $4)
             on conflict (consumer_group, source) do nothing";

    /// Moves an offset. Of two processes the second blocks here until the first commits, and then
    /// matches no row.
    ADVANCE = "update bus_offsets set xid = $5, seq = $6
                where consumer_group = $1 and source = $2 and xid = $3 and seq = $4";

    /// Resets an offset to the start.
    RESET = "update bus_offsets set xid = 0, seq = 0 where consumer_group = $1 and source = $2";

    /// Marks rows that every group has processed.
    MARK_SQLITE = sqlite "
        update outbox set published_at = $2
         where seq in (select seq from outbox
                        where published_at is null and dead_at is null and seq <= $1 order by seq limit $3)";

    /// Marks rows that every group has processed.
    MARK_POSTGRES = postgres "
        update outbox set published_at = $3
         where seq in (select seq from outbox
                        where published_at is null and dead_at is null and (xid, seq) <= ($1, $2)
                        order by seq limit $4)";
}

/// Moves a group's offset. Returns `false` if the stored offset is not `from`: another process has
/// moved it.
pub(crate) async fn advance(
    tx: &mut Tx<'_>,
    group: &str,
    source: &str,
    from: Option<Position>,
    to: Position,
) -> Result<bool, Error> {
    let moved = match from {
        None => tx.execute(&BEGIN, &[&group, &source, &to.xid, &to.seq]).await?,
        Some(from) => {
            tx.execute(&ADVANCE, &[&group, &source, &from.xid, &from.seq, &to.xid, &to.seq]).await?
        }
    };
    Ok(moved == 1)
}

/// Resets a group's offset to the start of the log. A group without an offset is already there.
pub(crate) async fn reset(tx: &mut Tx<'_>, group: &str, source: &str) -> Result<(), Error> {
    tx.execute(&RESET, &[&group, &source]).await.map(|_| ())
}

/// Marks at most [`MARK_BATCH`] rows up to a position as published and returns how many. Fewer than
/// that means there are no more.
pub(crate) async fn mark(tx: &mut Tx<'_>, up_to: Position, now: Timestamp) -> Result<u64, Error> {
    match tx.engine_kind() {
        EngineKind::Sqlite => tx.execute(&MARK_SQLITE, &[&up_to.seq, &now, &MARK_BATCH]).await,
        EngineKind::Postgres => {
            tx.execute(&MARK_POSTGRES, &[&up_to.xid, &up_to.seq, &now, &MARK_BATCH]).await
        }
    }
}

#[cfg(test)]
mod tests {
    use urr_db::{Db, Domain, offsets};
    use urr_testkit::{fresh_postgres, fresh_sqlite};

    use super::*;

    static DOMAIN: Domain = Domain { name: "bus", migrations: &[] };

    async fn moved(db: &Db, from: Option<Position>, to: Position) -> bool {
        db.write("test.advance", async |tx: &mut Tx<'_>| advance(tx, "group", "shop", from, to).await)
            .await
            .unwrap_or_else(|error: Error| panic!("{error:?}"))
    }

    async fn stands(db: &Db) -> Option<Position> {
        db.read("test.load", async |tx: &mut Tx<'_>| offsets::load(tx, "group", "shop").await)
            .await
            .unwrap_or_else(|error: Error| panic!("{error:?}"))
    }

    async fn an_offset_only_moves_from_its_current_value(db: &Db) {
        let at = |xid, seq| Position { xid, seq };
        assert!(moved(db, None, at(1, 5)).await);
        assert!(!moved(db, None, at(1, 9)).await, "another process inserted the offset first");
        assert!(!moved(db, Some(at(1, 4)), at(1, 9)).await, "`from` is behind");
        assert!(!moved(db, Some(at(0, 5)), at(1, 9)).await, "`from` has another xid");
        assert_eq!(stands(db).await, Some(at(1, 5)));
        assert!(moved(db, Some(at(1, 5)), at(2, 1)).await);
        assert_eq!(stands(db).await, Some(at(2, 1)));
    }

    #[tokio::test]
    async fn an_offset_only_moves_from_its_current_value_on_sqlite() {
        let (_dir, db) = fresh_sqlite(&DOMAIN).await;
        an_offset_only_moves_from_its_current_value(&db).await;
    }

    #[tokio::test]
    async fn an_offset_only_moves_from_its_current_value_on_postgres() {
        let Some(db) = fresh_postgres(&DOMAIN).await else { return };
        an_offset_only_moves_from_its_current_value(&db).await;
    }
}
