//! SQL for the seat map, and the mapping of its rows.

use std::collections::HashMap;

use urr_contracts::tickets::SeatStatus;
use urr_db::{Error, Tx, statements};
use urr_kernel::{EventId, SeatId, Timestamp};

statements! {
    /// Seats that are not free: sold, being paid for (no expiry), or held by an unexpired hold.
    CLAIMED = "
        select seat_id, state from seats
         where event_id = $1 and state <> 'available'
           and (state = 'sold' or expires_at is null or expires_at > $2)";
}

/// Returns the seats that are not free, with the state a fan sees.
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
