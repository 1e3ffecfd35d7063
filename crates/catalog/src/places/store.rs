//! SQL for the count of reserved places.

use urr_db::{Error, Tx, statements};
use urr_kernel::EventId;

statements! {
    /// Changes the count; never below zero.
    CHANGE = "
        update event_places set reserved = case when reserved + $2 > 0 then reserved + $2 else 0 end where event_id = $1";
}

/// Changes the number of reserved places. Returns `false` if the event does not exist.
pub(crate) async fn change(tx: &mut Tx<'_>, event: EventId, places: i64) -> Result<bool, Error> {
    Ok(tx.execute(&CHANGE, &[&event, &places]).await? == 1)
}
