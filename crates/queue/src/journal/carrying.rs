//! Slots that go on when a store has lost a room. They are written into the journal of its next life a page at a time, so that no
//! transaction is long however many there are.
//!
//! A life whose pages are not all written is as good as lost: the next one finds each slot in the last life that has it, back to
//! where the line was cleared.

use urr_db::{Error, Row, Tx, statements};
use urr_kernel::{EventId, Scalar, Timestamp};

use super::{
    Entry, Step,
    store::{after, counted},
};

statements! {
    /// Slots of earlier lives that were given since a given time and have not ended go on in this one, numbered from a given step on;
    /// those up to another given step do not. What the index on users has is said as it says it, or SQLite would not use it.
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

    /// The last step of earlier lives that gave a slot.
    GIVEN = "
        select generation, seq from journal
         where event_id = $1 and user_id = $2 and slot_id = $3 and generation < $4 and kind <> 'joined'
         order by generation desc, seq desc limit 1";
}

/// How far it has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carrying {
    /// The new life.
    pub(crate) generation: u64,
    /// Its last step.
    pub(super) seq: u64,
    /// Slots from before have ended.
    pub(super) since: Timestamp,
    /// The last step of earlier lives that was looked at.
    pub(super) last: (i64, i64),
}

impl Carrying {
    /// Writes the next slots down, up to `limit`. Answers with them, and with how far it has got then.
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
