//! Statements of the count of reserved places; nothing else.

use urr_db::{Error, Tx, statements};
use urr_kernel::EventId;

statements! {
    /// Changes a count, never below zero.
    CHANGE = "
        update event_places set reserved = case when reserved + $2 > 0 then reserved + $2 else 0 end where event_id = $1";
}

/// Changes how many places are reserved. `false`: no such event.
pub(crate) async fn change(tx: &mut Tx<'_>, event: EventId, places: i64) -> Result<bool, Error> {
    Ok(tx.execute(&CHANGE, &[&event, &places]).await? == 1)
}
