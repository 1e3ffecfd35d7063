//! Limits that more than one crate must agree on. A limit used by one crate is defined there.

use std::time::Duration;

/// Seats per reservation unless the event overrides it: a family of four books together.
pub const MAX_SEATS_PER_RESERVATION: u32 = 4;

/// Seats a buyer may hold per event at a time, over all sessions.
pub const MAX_SEATS_PER_USER: u32 = 4;

/// How long an unpaid reservation keeps its seats.
pub const HOLD: Duration = Duration::from_mins(5);

/// Seats of the largest event: a stadium of 100,000.
pub const MAX_SEATS_PER_EVENT: usize = 100_000;

/// The longest `Idempotency-Key`: a UUID is 36 characters, a hash in hex 64.
pub const MAX_IDEMPOTENCY_KEY_LEN: usize = 64;

/// Maximum payload of one message. Brokers reject 1 MB by default; half of it leaves room for
/// headers and base64.
pub const MAX_MESSAGE_BYTES: usize = 500_000;

/// The largest amount of money in a single row: 100 billion won, well below 2^53 for JavaScript
/// clients.
pub const MAX_KRW: i64 = 100_000_000_000;
