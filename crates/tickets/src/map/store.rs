//! Statements and rows of the map; nothing else.

use std::collections::HashMap;

use urr_contracts::tickets::SeatStatus;
use urr_db::{Error, Tx, statements};
use urr_kernel::{EventId, SeatId, Timestamp};

statements! {
    /// Seats that are not free: sold, being paid for (no end), or held by a live hold.
    CLAIMED = "
        select seat_id, state from seats
         where event_id = $1 and state <> 'available'
           and (state = 'sold' or expires_at is null or expires_at > $2)";
}

/// Seats that are not free, with what a fan sees of them.
pub(crate) async fn claimed(
    tx: &mut Tx<'_>,
    event: EventId,
    now: Timestamp,
) -> Result<HashMap<SeatId, SeatStatus>, Error> {
    let rows =
        tx.all(&CLAIMED, &[&event, &now], |row| Ok((row.get::<SeatId>(0)?, row.get::<String>(1)?))).await?;
    let status = |state: &str| if state == "sold" { SeatStatus::Reserved } else { SeatStatus::Locked };
    Ok(rows.into_iter().map(|(seat, state)| (seat, status(&state))).collect())
}
