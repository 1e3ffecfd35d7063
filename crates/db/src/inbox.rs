//! Which messages a consumer group has dealt with. The row is written in the transaction of the effect, so that a message
//! delivered twice has its effect once.

use std::time::Duration;

use urr_kernel::{MessageId, Timestamp};

use crate::{Error, Tx, outbox::PURGE_BATCH, statements};

/// How long a message is remembered. A broker keeps messages for days, not weeks, so none comes back after this.
pub const KEEP: Duration = Duration::from_hours(30 * 24);

statements! {
    /// Remembers a message unless it is remembered. On PostgreSQL a second delivery waits here for the first to end.
    FIRST_TIME = "insert into processed_events (consumer_group, message_id, processed_at) values ($1, $2, $3)
                  on conflict (consumer_group, message_id) do nothing";

    /// Forgets the oldest.
    PURGE = "delete from processed_events where (consumer_group, message_id) in
               (select consumer_group, message_id from processed_events
                 where processed_at < $1 order by processed_at limit $2)";
}

/// Whether the group sees this message for the first time. If so it is remembered, provided that `tx` commits.
pub async fn first_time(
    tx: &mut Tx<'_>,
    group: &str,
    message: MessageId,
    now: Timestamp,
) -> Result<bool, Error> {
    Ok(tx.execute(&FIRST_TIME, &[&group, &message, &now]).await? == 1)
}

/// Forgets at most [`PURGE_BATCH`] messages older than [`KEEP`]. Says how many; fewer than the batch means that it is
/// done.
pub async fn purge(tx: &mut Tx<'_>, now: Timestamp) -> Result<u64, Error> {
    tx.execute(&PURGE, &[&now.before(KEEP), &PURGE_BATCH]).await
}
