//! Rebuilding a room from its journal at start.

use std::time::Duration;

use urr_db::{Db, Tx};
use urr_kernel::Timestamp;

use super::{Numbered, runs::Absence};
use crate::journal::store;

/// Rows read per page.
pub(super) const PAGE: i64 = 20_000;

/// Rebuilds the room. Time in which no process was running does not count as inactivity.
pub(super) async fn read_back(
    db: &Db,
    life: &store::Life,
    absences: &[Absence],
    longest_gap: Duration,
    now: Timestamp,
) -> Result<Numbered, urr_db::Error> {
    let mut numbered = Numbered::new(life.threshold, life.generation, now);
    let (mut absences, mut last) = (absences.iter().peekable(), None);
    loop {
        let after = numbered.seq;
        let page = db
            .read("queue.read_back", async |tx: &mut Tx<'_>| {
                store::after(tx, life.event, life.generation, after, PAGE).await
            })
            .await?;
        for entry in &page {
            while let Some(absence) = absences.next_if(|absence| absence.until <= entry.at) {
                numbered.room_model.was_away(absence.after(last), longest_gap);
            }
            numbered.room_model.apply(entry.step, entry.at);
            numbered.seq = entry.seq;
            last = Some(entry.at);
        }
        if page.is_empty() {
            for absence in absences {
                numbered.room_model.was_away(absence.after(last), longest_gap);
            }
            numbered.room_model.wake(now);
            return Ok(numbered);
        }
    }
}
