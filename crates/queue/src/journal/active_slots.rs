//! Active slots according to the journal, for when Redis is unreachable.
//!
//! A slot is written before its owner learns of it. Its end is written within a second, and no slot
//! ends while Redis is unreachable: nothing changes in the room then.

use urr_db::{Error, Row, Tx, statements};
use urr_kernel::{EventId, Timestamp, UserId};
use uuid::Uuid;

statements! {
    /// The last step of one user; only an admission has a slot. SQLite has no statistics here and
    /// would scan the event's whole journal, so the index is named.
    LAST =
        sqlite "
            select slot_id, at, generation, seq from journal indexed by journal_of_user
             where event_id = $1 and user_id = $2 and kind <> 'joined'
             order by generation desc, seq desc limit 1"
        postgres "
            select slot_id, at, generation, seq from journal
             where event_id = $1 and user_id = $2 and kind <> 'joined'
             order by generation desc, seq desc limit 1";

    /// The step that last cleared the line. Later generations repeat it with the same number. The
    /// index is named for SQLite here too.
    CLEARED =
        sqlite "
            select generation, seq from journal indexed by journal_of_clearings
             where event_id = $1 and kind = 'cleared'
             order by number desc, generation, seq limit 1"
        postgres "
            select generation, seq from journal
             where event_id = $1 and kind = 'cleared'
             order by number desc, generation, seq limit 1";
}

/// The user's slot and when it was given. The caller checks whether it has expired.
pub(crate) async fn slot_of(
    tx: &mut Tx<'_>,
    event: EventId,
    user: UserId,
) -> Result<Option<(Uuid, Timestamp)>, Error> {
    let last = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, (row.get(2)?, row.get(3)?)));
    let last: Option<(Option<Uuid>, Timestamp, (i64, i64))> =
        tx.optional(&LAST, &[&event, &user], last).await?;
    let Some((Some(slot), given, step)) = last else { return Ok(None) };
    Ok((step > cleared(tx, event).await?).then_some((slot, given)))
}

/// Generation and number of the step that last cleared the line; zeros if it never was. The first
/// of several with the same epoch counts: a generation that repeats it but was lost while it began
/// has not restored the slots of earlier ones.
pub(super) async fn cleared(tx: &mut Tx<'_>, event: EventId) -> Result<(i64, i64), Error> {
    let step = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    Ok(tx.optional(&CLEARED, &[&event], step).await?.unwrap_or((0, 0)))
}
