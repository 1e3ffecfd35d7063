//! The inbox: which messages a consumer group has processed. The row is written in the same
//! transaction as the effect, so a message delivered twice has its effect once.

use std::{collections::HashSet, time::Duration};

use urr_kernel::{MessageId, Scalar, Timestamp};

use crate::{EngineKind, Error, Tx, outbox::PURGE_BATCH, statements};

/// Retention. A broker keeps messages for days, not weeks, so no duplicate arrives after this.
pub const KEEP: Duration = Duration::from_hours(30 * 24);

statements! {
    /// Records a message unless it is recorded. On PostgreSQL a concurrent duplicate waits here for
    /// the first transaction to end.
    FIRST_TIME = "insert into processed_events (consumer_group, message_id, processed_at) values ($1, $2, $3)
                  on conflict (consumer_group, message_id) do nothing";

    /// The same for many in one round trip; returns the new ones. The parameter is a JSON array.
    FIRST_TIMES = postgres "
        insert into processed_events (consumer_group, message_id, processed_at)
        select $1, message::uuid, $3 from jsonb_array_elements_text($2::jsonb) message order by message::uuid
        on conflict (consumer_group, message_id) do nothing returning message_id";

    /// Deletes the oldest.
    PURGE = "delete from processed_events where (consumer_group, message_id) in
               (select consumer_group, message_id from processed_events
                 where processed_at < $1 order by processed_at limit $2)";
}

/// Whether the group has not processed this message before. Records it when `tx` commits.
pub async fn first_time(
    tx: &mut Tx<'_>,
    group: &str,
    message: MessageId,
    now: Timestamp,
) -> Result<bool, Error> {
    Ok(tx.execute(&FIRST_TIME, &[&group, &message, &now]).await? == 1)
}

/// Which of these messages the group has not processed before. Records them when `tx` commits.
pub async fn first_times(
    tx: &mut Tx<'_>,
    group: &str,
    messages: &[MessageId],
    now: Timestamp,
) -> Result<HashSet<MessageId>, Error> {
    match tx.engine_kind() {
        EngineKind::Postgres => {
            let ids: Vec<String> = messages.iter().map(|id| format!("\"{id}\"")).collect();
            let list = format!("[{}]", ids.join(","));
            let new = tx.all(&FIRST_TIMES, &[&group, &list, &now], |row| row.get(0)).await?;
            Ok(new.into_iter().collect())
        }
        EngineKind::Sqlite => {
            let mut rows: Vec<[&dyn Scalar; 3]> = Vec::with_capacity(messages.len());
            for message in messages {
                rows.push([&group, message, &now]);
            }
            let changed = tx.execute_each(&FIRST_TIME, &rows).await?;
            let new = messages.iter().zip(changed).filter(|(_, changed)| *changed == 1);
            Ok(new.map(|(message, _)| *message).collect())
        }
    }
}

/// Deletes at most [`PURGE_BATCH`] records older than [`KEEP`] and returns how many; fewer than the
/// batch means done.
pub async fn purge(tx: &mut Tx<'_>, now: Timestamp) -> Result<u64, Error> {
    tx.execute(&PURGE, &[&now.before(KEEP), &PURGE_BATCH]).await
}
