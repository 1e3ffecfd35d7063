//! Copies active slots into the next generation of a room that its store has lost. This is done in
//! pages, so that no transaction is long.
//!
//! If a copy breaks off, that generation counts as lost too: the next one finds each slot in the
//! last generation that has it, back to where the line was cleared.

use urr_db::{Error, Row, Tx, statements};
use urr_kernel::{EventId, Scalar, Timestamp};

use super::{
    Entry, Step,
    store::{after, counted},
};

statements! {
    /// Copies slots of earlier generations that were given since `$4` and have not ended, numbered
    /// from `$3` on. Steps up to `($5, $6)` are skipped. The conditions repeat those of the partial
    /// index on users, or SQLite would not use it.
    CARRY = "
        insert into journal (event_id, generation, seq, at, kind, user_id, order_key, slot_id)
        select event_id, cast($2 as bigint), cast($3 as bigint) + row_number() over (order by generation, seq), at, kind, user_id, order_key, slot_id
          from (select * from journal given
                 where event_id = $1 and kind = 'admitted' and at > $4 and (generation, seq) > ($5, $6)
                   and generation < cast($2 as bigint)
                   and not exists (
                       select 1 from journal later
                        where later.event_id = given.event_id and later.user_id = given.user_id
                          and later.kind <> 'joined'
                          and (later.generation, later.seq) > (given.generation, given.seq))
                 order by generation, seq limit $7) going_on";

    /// The last step of earlier generations that gave a slot.
    GIVEN = "
        select generation, seq from journal
         where event_id = $1 and user_id = $2 and slot_id = $3 and generation < $4 and kind <> 'joined'
         order by generation desc, seq desc limit 1";
}

/// Progress of the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotCopy {
    /// The new generation.
    pub(crate) generation: u64,
    /// Its last step.
    pub(super) seq: u64,
    /// Slots given before this have expired.
    pub(super) since: Timestamp,
    /// The last step of earlier generations that was copied.
    pub(super) last: (i64, i64),
}

impl SlotCopy {
    /// Copies up to `limit` slots. Returns them and the new progress.
    pub(crate) async fn page(
        self,
        tx: &mut Tx<'_>,
        event: EventId,
        limit: i64,
    ) -> Result<(Vec<Entry>, Self), Error> {
        let (generation, seq) = (counted(self.generation), counted(self.seq));
        let params: [&dyn Scalar; 7] =
            [&event, &generation, &seq, &self.since, &self.last.0, &self.last.1, &limit];
        tx.execute(&CARRY, &params).await?;
        let slots = after(tx, event, self.generation, self.seq, limit).await?;
        let Some(&Entry { seq, step: Step::Admitted { user, slot, .. }, .. }) = slots.last() else {
            return Ok((slots, self));
        };
        let position = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let last = tx.one(&GIVEN, &[&event, &user, &slot, &generation], position).await?;
        Ok((slots, Self { seq, last, ..self }))
    }
}
