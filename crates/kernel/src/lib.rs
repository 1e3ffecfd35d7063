//! Types shared by every crate: ids, money, time, actors, limits, failures, SQL values and a circuit
//! breaker.
//!
//! Nothing here does I/O or is async. The product reads the wall clock and randomness only through
//! [`Clock`] and [`Ids`], so a test that fixes both is reproducible.

mod actor;
mod birth_date;
mod breaker;
mod clock;
mod fact;
mod failure;
mod ids;
mod language;
pub mod limits;
mod money;
mod order;
mod time;
mod value;

pub use actor::{Actor, Role};
pub use birth_date::{BadBirthDate, BirthDate};
pub use breaker::{Breaker, BreakerLimits, Refused};
pub use clock::Clock;
pub use fact::{Envelope, Fact};
pub use failure::{CommonError, Failure, Refusal};
pub use ids::*;
pub use language::Language;
pub use money::{Krw, MoneyError};
pub use order::{BadOrderKey, OrderKey};
pub use time::{BadTimestamp, Timestamp};
pub use value::{Scalar, Value, WrongValue};
