//! Background work: tasks that shutdown waits for, reconcilers, schedules and leases.
//!
//! A *reconciler* takes no input and may always run again: it looks at the stores, finds what is overdue and does it. It
//! runs on its [`Schedule`] and sooner when somebody nudges it. Work with a payload travels on the bus instead.

mod backoff;
mod lease;
mod nudge;
mod reconciler;
mod round;
mod schedule;
mod tasks;
mod together;

pub use backoff::Backoff;
pub use lease::{Lease, LeaseConfig};
pub use nudge::{Nudge, Woken, pause};
pub use reconciler::{Outcome, Reconciler, run};
pub use round::Round;
pub use schedule::{BadSchedule, Schedule};
pub use tasks::{Tasks, UNWIND, Unfinished, panic_text};
pub use together::{NotDone, Together, Work};

/// Whatever went wrong, with its sources.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Every statement of this crate, for the test that prepares them all on both engines.
pub fn statements() -> &'static [&'static urr_db::Sql] {
    lease::STATEMENTS
}
