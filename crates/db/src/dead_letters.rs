//! Dead letters: messages that a consumer group failed to process, stored with the error until an
//! operator decides.

use urr_kernel::{MessageId, Timestamp};

use crate::{Error, Message, Row, Tx, outbox, statements};

/// A message that a consumer group failed to process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The consumer group.
    pub group: String,
    /// The message.
    pub message: Message,
    /// Failed attempts.
    pub attempts: u32,
    /// The last error.
    pub error: String,
    /// When the group gave up.
    pub dead_at: Timestamp,
}

statements! {
    /// Stores a dead letter. A second failure of the same message replaces the error.
    INSERT = "insert into dead_letters (message_id, topic, key, kind, payload, created_at, consumer_group, attempts,
                                        error, dead_at)
              values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
              on conflict (consumer_group, message_id) do update
                 set attempts = excluded.attempts, error = excluded.error, dead_at = excluded.dead_at";

    /// A group's next dead letters, ordered by when their messages were written.
    LIST = "select message_id, topic, key, kind, payload, created_at, consumer_group, attempts, error, dead_at
              from dead_letters
             where consumer_group = $1 and ((created_at, message_id) > ($2, $3) or $2 is null)
             order by created_at, message_id limit $4";

    /// Deletes a dead letter and returns it.
    TAKE = "delete from dead_letters where consumer_group = $1 and message_id = $2
            returning message_id, topic, key, kind, payload, created_at, consumer_group, attempts, error, dead_at";

    /// Number of dead letters.
    COUNT = "select count(*) from dead_letters";

    /// Number of a group's dead letters.
    COUNT_OF = "select count(*) from dead_letters where consumer_group = $1";
}

/// Stores a message that its group gave up on.
pub async fn insert(tx: &mut Tx<'_>, letter: &DeadLetter) -> Result<(), Error> {
    let DeadLetter { group, message, attempts, error, dead_at } = letter;
    let Message { id, topic, key, kind, payload, at } = message;
    let [topic, key, kind, payload] = [topic, key, kind, payload].map(|text| without_nul(text));
    let error = without_nul(&outbox::shortened(error));
    tx.execute(&INSERT, &[id, &topic, &key, &kind, &payload, at, group, attempts, &error, dead_at]).await?;
    Ok(())
}

/// PostgreSQL text cannot contain NUL, but a message produced by another system may. Replace it so
/// that the dead letter can still be stored.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A group's dead letters after this one, or from the start, ordered by when their messages were
/// written.
pub async fn list(
    tx: &mut Tx<'_>,
    group: &str,
    after: Option<&DeadLetter>,
    limit: u32,
) -> Result<Vec<DeadLetter>, Error> {
    let (at, id) = after.map(|letter| (letter.message.at, letter.message.id)).unzip();
    tx.all(&LIST, &[&group, &at, &id, &limit], letter).await
}

/// Removes a dead letter so that its message can be processed again; `None` if there is none.
pub async fn take(tx: &mut Tx<'_>, group: &str, message: MessageId) -> Result<Option<DeadLetter>, Error> {
    tx.optional(&TAKE, &[&group, &message], letter).await
}

/// Number of dead letters.
pub async fn count(tx: &mut Tx<'_>) -> Result<i64, Error> {
    tx.one(&COUNT, &[], |row| row.get(0)).await
}

/// Number of a group's dead letters.
pub async fn count_of(tx: &mut Tx<'_>, group: &str) -> Result<i64, Error> {
    tx.one(&COUNT_OF, &[&group], |row| row.get(0)).await
}

fn letter(row: &Row<'_>) -> Result<DeadLetter, Error> {
    Ok(DeadLetter {
        message: outbox::message(row)?,
        group: row.get(6)?,
        attempts: row.get(7)?,
        error: row.get(8)?,
        dead_at: row.get(9)?,
    })
}
