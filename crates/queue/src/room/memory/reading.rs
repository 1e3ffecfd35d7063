//! Reading a journal back at start.

use urr_db::{Db, Tx};
use urr_kernel::Timestamp;

use super::Numbered;
use crate::journal::store;

/// Rows read at a time.
pub(super) const PAGE: i64 = 20_000;

/// The room as its journal left it.
pub(super) async fn read_back(
    db: &Db,
    life: &store::Life,
    now: Timestamp,
) -> Result<Numbered, urr_db::Error> {
    let mut numbered = Numbered::new(life.threshold, life.generation, now);
    loop {
        let after = numbered.seq;
        let page = db
            .read("queue.read_back", async |tx: &mut Tx<'_>| {
                store::after(tx, life.event, life.generation, after, PAGE).await
            })
            .await?;
        for entry in &page {
            numbered.hall.apply(entry.step, entry.at);
            numbered.seq = entry.seq;
        }
        if page.is_empty() {
            numbered.hall.wake(now);
            return Ok(numbered);
        }
    }
}
