//! Messages that a consumer group could not deal with, kept with the reason until somebody decides.

use urr_kernel::{MessageId, Timestamp};

use crate::{Error, Message, Row, Tx, outbox, statements};

/// One message that a group gave up on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Who gave up.
    pub group: String,
    /// On what.
    pub message: Message,
    /// After how many tries.
    pub attempts: u32,
    /// Why.
    pub error: String,
    /// When.
    pub dead_at: Timestamp,
}

statements! {
    /// Keeps a letter. Giving up twice on the same message keeps the newer reason.
    INSERT = "insert into dead_letters (message_id, topic, key, kind, payload, created_at, consumer_group, attempts,
                                        error, dead_at)
              values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
              on conflict (consumer_group, message_id) do update
                 set attempts = excluded.attempts, error = excluded.error, dead_at = excluded.dead_at";

    /// The next letters of a group in the order in which their messages were written.
    LIST = "select message_id, topic, key, kind, payload, created_at, consumer_group, attempts, error, dead_at
              from dead_letters
             where consumer_group = $1 and ((created_at, message_id) > ($2, $3) or $2 is null)
             order by created_at, message_id limit $4";

    /// Takes a letter out.
    TAKE = "delete from dead_letters where consumer_group = $1 and message_id = $2
            returning message_id, topic, key, kind, payload, created_at, consumer_group, attempts, error, dead_at";

    /// How many there are.
    COUNT = "select count(*) from dead_letters";

    /// How many of them are a group's.
    COUNT_OF = "select count(*) from dead_letters where consumer_group = $1";
}

/// Keeps a message that its group gave up on.
pub async fn insert(tx: &mut Tx<'_>, letter: &DeadLetter) -> Result<(), Error> {
    let DeadLetter { group, message, attempts, error, dead_at } = letter;
    let Message { id, topic, key, kind, payload, at } = message;
    let [topic, key, kind, payload] = [topic, key, kind, payload].map(|text| without_nul(text));
    let error = without_nul(&outbox::shortened(error));
    tx.execute(&INSERT, &[id, &topic, &key, &kind, &payload, at, group, attempts, &error, dead_at]).await?;
    Ok(())
}

/// PostgreSQL keeps no NUL in a text, and a stranger's record may have one: better a letter with a mark in its place
/// than none.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A group's letters after this one, or from the beginning, in the order in which their messages were written.
pub async fn list(
    tx: &mut Tx<'_>,
    group: &str,
    after: Option<&DeadLetter>,
    limit: u32,
) -> Result<Vec<DeadLetter>, Error> {
    let (at, id) = after.map(|letter| (letter.message.at, letter.message.id)).unzip();
    tx.all(&LIST, &[&group, &at, &id, &limit], letter).await
}

/// Takes a letter out, to deal with its message once more; `None` if there is no such letter.
pub async fn take(tx: &mut Tx<'_>, group: &str, message: MessageId) -> Result<Option<DeadLetter>, Error> {
    tx.optional(&TAKE, &[&group, &message], letter).await
}

/// How many letters lie.
pub async fn count(tx: &mut Tx<'_>) -> Result<i64, Error> {
    tx.one(&COUNT, &[], |row| row.get(0)).await
}

/// How many letters of a group lie.
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
