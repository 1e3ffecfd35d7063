//! Who is in, as the journal knows it: for when the store of a room cannot be asked.
//!
//! Whoever is in was written down before they heard of it. How a slot ends is written down within a second, and by nobody while the
//! store is away: nothing happens in a room that nobody can ask.

use urr_db::{Error, Row, Tx, statements};
use urr_kernel::{EventId, Timestamp, UserId};
use uuid::Uuid;

statements! {
    /// What became of one user last. Only a step that let them in has a slot. SQLite, which keeps no statistics here, would rather read
    /// the whole journal of the event, so it is told which index to use.
    LAST =
        sqlite "
            select slot_id, at, generation, seq from journal indexed by journal_of_user
             where event_id = $1 and user_id = $2 and kind <> 'joined'
             order by generation desc, seq desc limit 1"
        postgres "
            select slot_id, at, generation, seq from journal
             where event_id = $1 and user_id = $2 and kind <> 'joined'
             order by generation desc, seq desc limit 1";

    /// The step with which the line was last cleared. Later lives say it again with the same number. SQLite is told here, too.
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

/// The slot that somebody has, and when it was given. Whether its time is over is for others to say.
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

/// The step with which the line was last cleared, as generation and number; zeros if it never was. A life that says it again and
/// broke off while it began has not taken over the slots of the lives before, so the first step that says it counts.
pub(super) async fn cleared(tx: &mut Tx<'_>, event: EventId) -> Result<(i64, i64), Error> {
    let step = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    Ok(tx.optional(&CLEARED, &[&event], step).await?.unwrap_or((0, 0)))
}
