//! Steps as rows of the journal.

use urr_db::{Error, Row};
use urr_kernel::{OrderKey, UserId};
use uuid::Uuid;

use super::{Entry, Source, Step, Why};

/// Values of the column `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Joined,
    Admitted,
    Returned,
    Gone,
    Threshold,
    Paused,
    Resumed,
    Cleared,
}

urr_db::text_enum! {
    Kind {
        Joined = "joined",
        Admitted = "admitted",
        Returned = "returned",
        Gone = "gone",
        Threshold = "threshold",
        Paused = "paused",
        Resumed = "resumed",
        Cleared = "cleared",
    }
}
urr_db::text_enum! { Source { New = "new", Ticket = "ticket", Pass = "pass" } }
urr_db::text_enum! { Why { Left = "left", Idle = "idle", Expired = "expired", Bought = "bought" } }

#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) user: Option<UserId>,
    pub(super) order: Option<OrderKey>,
    pub(super) slot: Option<Uuid>,
    pub(super) number: Option<i64>,
    pub(super) why: Option<Why>,
    pub(super) source: Option<Source>,
}

pub(super) fn columns(step: &Step) -> (Kind, Columns) {
    let none = Columns::default();
    match *step {
        Step::Joined { user, order, source } => {
            (Kind::Joined, Columns { user: Some(user), order: Some(order), source, ..none })
        }
        Step::Admitted { user, order, slot, source } => {
            let (user, order, slot) = (Some(user), Some(order), Some(slot));
            (Kind::Admitted, Columns { user, order, slot, source, ..none })
        }
        Step::Returned { user, order } => {
            (Kind::Returned, Columns { user: Some(user), order: Some(order), ..none })
        }
        Step::Gone { user, why } => (Kind::Gone, Columns { user: Some(user), why: Some(why), ..none }),
        Step::Threshold { threshold } => {
            (Kind::Threshold, Columns { number: Some(threshold.into()), ..none })
        }
        Step::Paused => (Kind::Paused, none),
        Step::Resumed => (Kind::Resumed, none),
        Step::Cleared { epoch } => {
            let number = i64::try_from(epoch).expect("epochs fit into i64");
            (Kind::Cleared, Columns { number: Some(number), ..none })
        }
    }
}

/// Decodes a row of the journal.
pub(super) fn entry(row: &Row<'_>) -> Result<Entry, Error> {
    let step = match row.get(3)? {
        Kind::Joined => Step::Joined { user: row.get(4)?, order: row.get(5)?, source: row.get(9)? },
        Kind::Admitted => {
            Step::Admitted { user: row.get(4)?, order: row.get(5)?, slot: row.get(6)?, source: row.get(9)? }
        }
        Kind::Returned => Step::Returned { user: row.get(4)?, order: row.get(5)? },
        Kind::Gone => Step::Gone { user: row.get(4)?, why: row.get(8)? },
        Kind::Threshold => Step::Threshold { threshold: row.get(7)? },
        Kind::Paused => Step::Paused,
        Kind::Resumed => Step::Resumed,
        Kind::Cleared => Step::Cleared { epoch: row.get::<u32>(7)?.into() },
    };
    Ok(Entry { generation: number(row, 0)?, seq: number(row, 1)?, at: row.get(2)?, step })
}

/// Decodes a counter.
pub(super) fn number(row: &Row<'_>, column: usize) -> Result<u64, Error> {
    row.get::<i64>(column).map(|number| u64::try_from(number).unwrap_or(0))
}
