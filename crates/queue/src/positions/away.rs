//! Fallback while Redis is unreachable: active slots stay valid (checked against the journal), new
//! admissions stop.

use urr_contracts::queue::SlotOf;
use urr_db::Tx;

use crate::{Failure, journal::active_slots, service::Service, work::purchases};

/// Whether a slot is active, according to the database.
///
/// The slot's idle time is unknown here, and bounded by its entry token, which the caller has
/// verified: a token is valid for at most ten minutes, never beyond its slot, and none are issued
/// meanwhile.
pub(super) async fn goes_on(service: &Service, request: SlotOf) -> Result<bool, Failure> {
    let SlotOf { event, user, slot } = request;
    let begun_after = service.clock.now().before(service.limits.slot_total);
    service
        .db
        .read("queue.slot", async |tx: &mut Tx<'_>| {
            let Some((found, given)) = active_slots::slot_of(tx, event, user).await? else {
                return Ok(false);
            };
            if found != slot || given <= begun_after {
                return Ok(false);
            }
            // Slots of completed purchases are freed in Redis, so those purchases are still
            // pending.
            Ok(!purchases::will_free(tx, event, user, given).await?)
        })
        .await
}

#[cfg(test)]
mod tests;
