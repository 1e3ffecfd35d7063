//! Pure decisions: who is let on when, how long it takes, when to ask again. No clock, no store.

use std::time::Duration;

use urr_contracts::vwr::{Error, MAX_BATCH, MAX_RATE, Order, Place, Room, WaitRange};
use urr_kernel::Timestamp;

/// How many a new room lets on per second: 500 in ten seconds, as its predecessor did.
pub const DEFAULT_RATE: u32 = 50;

/// Time without anybody letting people on is made up for this long and no longer: a line must not burst in because a process was
/// away for an hour.
pub(crate) const MAX_CREDIT: Duration = Duration::from_secs(5);

/// Nobody should ask more often.
const MIN_POLL: u64 = 2;
/// Nobody should hear less often.
const MAX_POLL: u64 = 60;

const MICROS: u64 = 1_000_000;

/// How far people are let on at `now`, and up to when that counts. `moved_at`: up to when it counted before.
///
/// The count is exact: what is left of a second is kept for the next time. Nothing is saved up while nobody waits or nobody may. After
/// the clock went back, time counts from what it says now.
pub(crate) fn advance(room: &Room, moved_at: Timestamp, now: Timestamp) -> (u64, Timestamp) {
    let moved_at = moved_at.min(now);
    if !room.active || room.paused || room.rate == 0 || room.serving >= room.tail {
        return (room.serving, now);
    }
    let elapsed = micros(now.since(moved_at).min(MAX_CREDIT));
    let steps = elapsed * u64::from(room.rate) / MICROS;
    if steps == 0 {
        return (room.serving, moved_at);
    }
    let serving = (room.serving + steps).min(room.tail);
    if serving == room.tail {
        return (serving, now);
    }
    // Rounded so that it never adds up to more than the rate.
    let left = elapsed - (steps * MICROS).div_ceil(room.rate.into());
    (serving, now.before(Duration::from_micros(left)))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Whether a decision makes sense at all.
pub(crate) fn check(order: Order) -> Result<(), Error> {
    match order {
        Order::Activate { rate: Some(rate), .. } | Order::Rate { rate } if rate > MAX_RATE => {
            Err(Error::BadRate { max: MAX_RATE })
        }
        Order::Advance { batch } if !(1..=MAX_BATCH).contains(&batch) => {
            Err(Error::BadBatch { max: MAX_BATCH })
        }
        _ => Ok(()),
    }
}

/// When a room is opened again: now, or behind every place of the opening before if the clock went back meanwhile. By that instant
/// passes of this opening are told from earlier ones.
pub(crate) fn opens_at(last: &Room, now: Timestamp) -> Timestamp {
    let behind = last.opened_at.after(Duration::from_micros(last.tail));
    if now > behind { now } else { last.opened_at.after(WHOLE_LINE) }
}

/// A microsecond each for a billion places, which no line has.
const WHOLE_LINE: Duration = Duration::from_secs(1_000);

/// The room after a decision. A room that is opened again counts from one, under a new epoch.
pub(crate) fn decide(room: &Room, order: Order, now: Timestamp) -> Room {
    match order {
        Order::Activate { rate, fail_open } => {
            let opened = if room.active {
                *room
            } else {
                Room {
                    epoch: room.epoch + 1,
                    opened_at: now,
                    active: true,
                    paused: false,
                    tail: 0,
                    serving: 0,
                    ..*room
                }
            };
            Room {
                rate: rate.unwrap_or(opened.rate),
                fail_open: fail_open.unwrap_or(opened.fail_open),
                ..opened
            }
        }
        Order::Deactivate => Room { active: false, ..*room },
        Order::Advance { batch } => {
            let serving = room.serving.saturating_add(batch.into()).min(room.tail).max(room.serving);
            Room { serving, ..*room }
        }
        Order::Rate { rate } => Room { rate, ..*room },
        Order::Pause => Room { paused: true, ..*room },
        Order::Resume => Room { paused: false, ..*room },
    }
}

/// How quickly people were let on of late, per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    /// In the slower of the last minute and its last quarter.
    pub(crate) slow: f64,
    /// In the quicker.
    pub(crate) quick: f64,
}

/// How a position stands.
pub(crate) fn place(room: &Room, position: u64, pace: Option<Pace>) -> Place {
    let ahead = position.saturating_sub(room.serving).saturating_sub(u64::from(position > room.serving));
    // Somebody whose turn is next still waits for it.
    let steps = position.saturating_sub(room.serving);
    let wait = |rate: f64| if rate > 0.0 { whole_secs(as_float(steps) / rate) } else { UNKNOWN_WAIT };
    let paused = room.paused || room.rate == 0;
    let range = pace
        .filter(|_| steps > 0 && !paused)
        .map(|pace| WaitRange { low: wait(pace.quick), high: wait(pace.slow) });
    let wait_secs = match range {
        Some(WaitRange { low, high }) => u64::midpoint(low, high),
        None if steps == 0 => 0,
        None if paused => UNKNOWN_WAIT,
        None => wait(f64::from(room.rate)),
    };
    Place {
        position,
        serving: room.serving,
        // What we know of the room may be older than the place.
        tail: room.tail.max(position),
        ahead,
        wait_secs,
        range,
        next_poll_secs: next_poll(ahead, wait_secs, position),
        paused,
    }
}

/// What a room that lets nobody on says: an hour, which is as good as "nobody knows" and still a number.
const UNKNOWN_WAIT: u64 = 3_600;

/// Half of what is left to wait, so that a long wait costs few questions; a little less for some than for others, so that they do
/// not ask all at once; and never later than the ladder that clients were promised.
fn next_poll(ahead: u64, wait_secs: u64, position: u64) -> u64 {
    let ladder = match ahead {
        0..=500 => 2,
        501..=2_000 => 5,
        2_001..=10_000 => 10,
        _ => 15,
    };
    let half = (wait_secs / 2).clamp(MIN_POLL, MAX_POLL).min(ladder);
    // Neighbours in line came together and would ask together. Fibonacci's hash spreads them over the last quarter.
    let spread = position.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let jitter = ((half / 4 + 1) * spread) >> 32;
    (half - jitter).max(MIN_POLL)
}

#[expect(clippy::cast_precision_loss, reason = "an estimate does not need the last of 53 bits")]
pub(crate) fn as_float(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and a cast from a float stops at the largest number"
)]
fn whole_secs(secs: f64) -> u64 {
    secs.ceil().max(0.0) as u64
}

#[cfg(test)]
mod tests;
