//! Slots while the store of the rooms cannot be asked: whoever is in goes on buying, and nobody else comes in.

use urr_contracts::queue::SlotOf;
use urr_db::Tx;

use crate::{journal::inside, service::Service, trouble::Trouble, work::purchases};

/// Whether a slot goes on, as far as the database knows.
///
/// For how long its owner has shown no sign of life is not known here. Whoever asks has seen an entry token: that is good for ten
/// minutes at most, never longer than its slot was when it was signed, and there is no new one meanwhile.
pub(super) async fn goes_on(service: &Service, request: SlotOf) -> Result<bool, Trouble> {
    let SlotOf { event, user, slot } = request;
    let begun_after = service.clock.now().before(service.limits.slot_total);
    service
        .db
        .read("queue.slot", async |tx: &mut Tx<'_>| {
            let Some((found, given)) = inside::slot_of(tx, event, user).await? else { return Ok(false) };
            if found != slot || given <= begun_after {
                return Ok(false);
            }
            // What frees slots of those who have bought waits for the store, too.
            Ok(!purchases::will_free(tx, event, user, given).await?)
        })
        .await
}
