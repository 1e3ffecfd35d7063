//! Background work: tasks that shutdown waits for, reconcilers, schedules and leases.
//!
//! A *reconciler* takes no input and is safe to repeat: it reads overdue work from the stores and
//! does it. It runs on its [`Schedule`], and earlier when it is nudged. Work with a payload is a
//! message on the bus instead.

mod backoff;
mod batcher;
mod lease;
mod nudge;
mod reconciler;
mod scan;
mod schedule;
mod tasks;

pub use backoff::Backoff;
pub use batcher::{BatchError, Batcher, Work};
pub use lease::{Lease, LeaseConfig};
pub use nudge::{Nudge, Woken, pause};
pub use reconciler::{Outcome, Reconciler, run};
pub use scan::Scan;
pub use schedule::{BadSchedule, Schedule};
pub use tasks::{Tasks, UNWIND, Unfinished, panic_text};

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Every statement of this crate, for the test that prepares them all on both engines.
pub fn statements() -> &'static [&'static urr_db::Sql] {
    lease::STATEMENTS
}
