//! Statements of the count of reserved places; nothing else.

use urr_db::{Error, Tx, statements};
use urr_kernel::EventId;

statements! {
    /// Counts places in.
    ADD = "update event_places set reserved = reserved + $2 where event_id = $1";

    /// Counts places out, never below zero.
    REMOVE = "
        update event_places set reserved = case when reserved > $2 then reserved - $2 else 0 end where event_id = $1";
}

/// Counts places in. `false`: no such event.
pub(crate) async fn add(tx: &mut Tx<'_>, event: EventId, seats: u32) -> Result<bool, Error> {
    Ok(tx.execute(&ADD, &[&event, &seats]).await? == 1)
}

/// Counts places out. `false`: no such event.
pub(crate) async fn remove(tx: &mut Tx<'_>, event: EventId, seats: u32) -> Result<bool, Error> {
    Ok(tx.execute(&REMOVE, &[&event, &seats]).await? == 1)
}
