//! Id newtypes and the id generator.

use std::{
    fmt,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Clock, Scalar, Value, WrongValue};

macro_rules! id {
    ($($(#[$meta:meta])* $name:ident,)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID that is known to be of this kind.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The plain UUID.
            pub const fn as_uuid(&self) -> Uuid {
                self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::from_str(text).map(Self)
            }
        }

        impl Scalar for $name {
            fn to_value(&self) -> Value<'_> {
                Value::Uuid(self.0)
            }

            fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
                Uuid::from_value(value).map(Self)
            }
        }
    )*};
}

id! {
    /// One performance on sale.
    EventId,
    /// A seat plan from which an event's seats are created.
    LayoutId,
    /// One seat of one event.
    SeatId,
    /// A ticket type of a standing event, sold by count.
    TicketTypeId,
    /// One buyer's reservation of seats.
    ReservationId,
    /// One account.
    UserId,
    /// One message on the bus.
    MessageId,
    /// One browser, before sign-in.
    VisitorId,
    /// One request, across all roles that handle it.
    RequestId,
}

/// Generates ids: UUIDv7 of the clock's time to the microsecond (RFC 9562, 6.2, method 3). Ids sort
/// by creation, so new rows are inserted at the end of an index. Clones of a seeded generator share
/// its state.
#[derive(Clone, Debug)]
pub struct Ids {
    clock: Clock,
    chance: Chance,
}

#[derive(Clone, Debug)]
enum Chance {
    /// One generator per thread, seeded by the system, so that threads do not contend for a lock.
    System,
    Seeded(Arc<Mutex<StdRng>>),
}

impl Ids {
    /// Unpredictable ids, for production.
    pub fn random(clock: Clock) -> Self {
        Self { clock, chance: Chance::System }
    }

    /// Reproducible ids for the same seed and clock, for tests.
    pub fn seeded(clock: Clock, seed: u64) -> Self {
        Self { clock, chance: Chance::Seeded(Arc::new(Mutex::new(StdRng::seed_from_u64(seed)))) }
    }

    /// A new id of any kind.
    pub fn next<T: From<Uuid>>(&self) -> T {
        let micros = u64::try_from(self.clock.now().as_micros()).unwrap_or(0);
        let (millis, [.., high, low]) = (micros / 1_000, (micros % 1_000 * 4_096 / 1_000).to_be_bytes());
        let mut bytes: [u8; 10] = self.bytes();
        // The fraction of a millisecond comes first, in twelve bits. The builder sets version and
        // variant.
        (bytes[0], bytes[1]) = (high, low);
        T::from(uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid())
    }

    /// Random bytes, for keys, nonces and jitter.
    #[expect(clippy::disallowed_methods, reason = "the only source of randomness")]
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0_u8; N];
        match &self.chance {
            Chance::System => rand::rng().fill(&mut bytes[..]),
            Chance::Seeded(random) => {
                random.lock().unwrap_or_else(PoisonError::into_inner).fill(&mut bytes[..]);
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Timestamp;

    #[test]
    fn the_same_seed_gives_the_same_ids() {
        let clock = Clock::fixed(Timestamp::from_micros(1_700_000_000_000_000));
        let (a, b) = (Ids::seeded(clock.clone(), 7), Ids::seeded(clock.clone(), 7));
        let first: SeatId = a.next();
        assert_eq!(first, b.next());
        assert_ne!(first, a.next());
    }

    #[test]
    fn ids_are_version_7_and_sort_by_creation() {
        let clock = Clock::fixed(Timestamp::from_micros(1_700_000_000_000_000));
        let ids = Ids::random(clock.clone());
        let early: ReservationId = ids.next();
        let mut last = early;
        for _ in 0..2_000 {
            clock.advance(Duration::from_micros(1));
            let next = ids.next();
            assert!(last < next, "{last} {next}");
            last = next;
        }
        let (seconds, nanos) = last.as_uuid().get_timestamp().unwrap().to_unix();
        assert_eq!((seconds, nanos / 1_000_000), (1_700_000_000, 2));
        assert_eq!(early.as_uuid().get_version_num(), 7);
        assert_eq!(early.to_string().parse::<ReservationId>().unwrap(), early);
    }
}
