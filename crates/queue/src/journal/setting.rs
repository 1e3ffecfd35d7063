//! Rooms that follow the setting `queue.threshold`: those for which no operator has set another.

use urr_db::{Error, Tx, statements};
use urr_kernel::EventId;

statements! {
    /// Stores the setting's value that a room follows.
    FOLLOW = "update rooms set configured = $2 where event_id = $1";

    /// The room no longer follows the setting.
    DECIDE = "update rooms set configured = null where event_id = $1 and configured is not null";

    /// Open rooms that follow the setting and have an older value.
    FOLLOWERS = "
        select event_id from rooms where closed_at is null and configured is not null and configured <> $1
         order by event_id limit $2";
}

/// Stores the setting's value that a room follows.
pub(crate) async fn follow(tx: &mut Tx<'_>, event: EventId, threshold: u32) -> Result<(), Error> {
    tx.execute(&FOLLOW, &[&event, &threshold]).await.map(drop)
}

/// Stops a room from following the setting, because an operator has set its threshold.
pub(crate) async fn decide(tx: &mut Tx<'_>, event: EventId) -> Result<(), Error> {
    tx.execute(&DECIDE, &[&event]).await.map(drop)
}

/// Up to `limit` open rooms that follow the setting and have another value.
pub(crate) async fn followers(tx: &mut Tx<'_>, threshold: u32, limit: i64) -> Result<Vec<EventId>, Error> {
    tx.all(&FOLLOWERS, &[&threshold, &limit], |row| row.get(0)).await
}
