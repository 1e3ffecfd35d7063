#![doc = include_str!("../README.md")]

mod hall;
pub mod journal;
mod line;
mod pace;
mod room;
mod settings;

use urr_db::{Domain, Sql, migrations};

pub use hall::{Promise, Slot, Standing, Totals};
pub use room::{Answer, Closed, GRACE, Order, Room};
pub use settings::Limits;

/// The domain's tables.
pub static DOMAIN: Domain = Domain { name: "queue", migrations: migrations!["0001_rooms"] };

/// Every statement the domain can run; a test prepares them on both engines.
pub fn statements() -> Vec<&'static Sql> {
    journal::store::STATEMENTS.to_vec()
}
