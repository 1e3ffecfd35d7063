//! Which rooms follow the setting `queue.threshold`: those for which no operator has decided.

use urr_db::{Error, Tx, statements};
use urr_kernel::EventId;

statements! {
    /// A room follows the setting, which is this.
    FOLLOW = "update rooms set configured = $2 where event_id = $1";

    /// A room does not.
    DECIDE = "update rooms set configured = null where event_id = $1 and configured is not null";

    /// Open rooms that follow the setting and were told another.
    FOLLOWERS = "
        select event_id from rooms where closed_at is null and configured is not null and configured <> $1
         order by event_id limit $2";
}

/// A room follows the setting, which is this.
pub(crate) async fn follow(tx: &mut Tx<'_>, event: EventId, threshold: u32) -> Result<(), Error> {
    tx.execute(&FOLLOW, &[&event, &threshold]).await.map(drop)
}

/// An operator has decided for a room.
pub(crate) async fn decide(tx: &mut Tx<'_>, event: EventId) -> Result<(), Error> {
    tx.execute(&DECIDE, &[&event]).await.map(drop)
}

/// Up to `limit` open rooms that follow the setting and were told another than this.
pub(crate) async fn followers(tx: &mut Tx<'_>, threshold: u32, limit: i64) -> Result<Vec<EventId>, Error> {
    tx.all(&FOLLOWERS, &[&threshold, &limit], |row| row.get(0)).await
}
