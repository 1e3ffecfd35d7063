//! The statements of the in-process bus that go beyond what `db` offers: moving an offset only from where it is known to
//! stand, and marking what every group has passed.

use urr_db::{EngineKind, Error, Position, Tx, statements};
use urr_kernel::Timestamp;

/// Rows marked in one transaction: a few milliseconds of work, so that nobody's write waits long for it.
pub(crate) const MARK_BATCH: u32 = 1_000;

statements! {
    /// A group's first step.
    BEGIN = "insert into bus_offsets (consumer_group, source, xid, seq) values ($1, $2, $3, $4)
             on conflict (consumer_group, source) do nothing";

    /// Moves a group on from where it stands. Of two processes the second waits here for the first, and then finds that
    /// the group stands elsewhere.
    ADVANCE = "update bus_offsets set xid = $5, seq = $6
                where consumer_group = $1 and source = $2 and xid = $3 and seq = $4";

    /// Sends a group back to the start.
    RESET = "update bus_offsets set xid = 0, seq = 0 where consumer_group = $1 and source = $2";

    /// Marks rows that every group has passed.
    MARK_SQLITE = sqlite "
        update outbox set published_at = $2
         where seq in (select seq from outbox
                        where published_at is null and dead_at is null and seq <= $1 order by seq limit $3)";

    /// Marks rows that every group has passed.
    MARK_POSTGRES = postgres "
        update outbox set published_at = $3
         where seq in (select seq from outbox
                        where published_at is null and dead_at is null and (xid, seq) <= ($1, $2)
                        order by seq limit $4)";
}

/// Moves a group from one position to the next. `false` if it does not stand there: another process has moved it.
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

/// Sends a group back to the start of a source's log, wherever it stands. One that has not begun is there already.
pub(crate) async fn reset(tx: &mut Tx<'_>, group: &str, source: &str) -> Result<(), Error> {
    tx.execute(&RESET, &[&group, &source]).await.map(|_| ())
}

/// Marks at most [`MARK_BATCH`] rows up to a position as published. Says how many; fewer than the batch means that it is
/// done.
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

    async fn an_offset_moves_only_from_where_it_stands(db: &Db) {
        let at = |xid, seq| Position { xid, seq };
        assert!(moved(db, None, at(1, 5)).await);
        assert!(!moved(db, None, at(1, 9)).await, "another process began first");
        assert!(!moved(db, Some(at(1, 4)), at(1, 9)).await, "behind");
        assert!(!moved(db, Some(at(0, 5)), at(1, 9)).await, "another transaction's number");
        assert_eq!(stands(db).await, Some(at(1, 5)));
        assert!(moved(db, Some(at(1, 5)), at(2, 1)).await);
        assert_eq!(stands(db).await, Some(at(2, 1)));
    }

    #[tokio::test]
    async fn an_offset_moves_only_from_where_it_stands_on_sqlite() {
        let (_dir, db) = fresh_sqlite(&DOMAIN).await;
        an_offset_moves_only_from_where_it_stands(&db).await;
    }

    #[tokio::test]
    async fn an_offset_moves_only_from_where_it_stands_on_postgres() {
        let Some(db) = fresh_postgres(&DOMAIN).await else { return };
        an_offset_moves_only_from_where_it_stands(&db).await;
    }
}
