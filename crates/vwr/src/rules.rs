//! Pure decisions: admissions, wait estimates and poll intervals. No clock, no store.

use std::time::Duration;

use urr_contracts::vwr::{Error, MAX_BATCH, MAX_RATE, Order, PositionStatus, Room, WaitRange};
use urr_kernel::Timestamp;

/// Default admissions per second.
pub(crate) const DEFAULT_RATE: u32 = 50;

/// Longest gap that is made up after an interruption, so that an hour of downtime does not cause a
/// burst.
pub(crate) const MAX_CREDIT: Duration = Duration::from_secs(5);

/// Shortest poll interval, in seconds.
const MIN_POLL: u64 = 2;
/// Longest poll interval, in seconds.
const MAX_POLL: u64 = 60;

const MICROS: u64 = 1_000_000;

/// The serving counter at `now`, and the time up to which it is accounted for. `moved_at`: that
/// time before.
///
/// Exact: fractions of a position are carried over. No credit accrues while no visitor waits or
/// admissions are stopped. After the clock went back, time counts from the new value.
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
    // Rounded up so that the sum never exceeds the rate.
    let left = elapsed - (steps * MICROS).div_ceil(room.rate.into());
    (serving, now.before(Duration::from_micros(left)))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Whether a command is valid.
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

/// When a reopened room begins: now, or after every position of the previous opening if the clock
/// went back. This time distinguishes the passes of both openings.
pub(crate) fn opens_at(last: &Room, now: Timestamp) -> Timestamp {
    let behind = last.opened_at.after(Duration::from_micros(last.tail));
    if now > behind { now } else { last.opened_at.after(WHOLE_LINE) }
}

/// One microsecond each for a billion positions, more than any line has.
const WHOLE_LINE: Duration = Duration::from_secs(1_000);

/// The room after a command. A reopened room starts from position one, under a new epoch.
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

/// Measured admissions per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    /// The slower of the last minute and its last quarter.
    pub(crate) slow: f64,
    /// The faster of the two.
    pub(crate) quick: f64,
}

/// The state of a position.
pub(crate) fn place(room: &Room, position: u64, pace: Option<Pace>) -> PositionStatus {
    let ahead = position.saturating_sub(room.serving).saturating_sub(u64::from(position > room.serving));
    // The next visitor still waits for one step.
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
    PositionStatus {
        position,
        serving: room.serving,
        // The copy of the room may be older than the position.
        tail: room.tail.max(position),
        ahead,
        wait_secs,
        range,
        next_poll_secs: next_poll(ahead, wait_secs, position),
        paused,
    }
}

/// Estimate while admissions are stopped: an hour stands for "unknown".
const UNKNOWN_WAIT: u64 = 3_600;

/// Half of the remaining wait, so that a long wait costs few polls. Spread, so that visitors do not
/// poll together, and capped by the documented intervals.
fn next_poll(ahead: u64, wait_secs: u64, position: u64) -> u64 {
    let ladder = match ahead {
        0..=500 => 2,
        501..=2_000 => 5,
        2_001..=10_000 => 10,
        _ => 15,
    };
    let half = (wait_secs / 2).clamp(MIN_POLL, MAX_POLL).min(ladder);
    // Neighbours in line arrived together and would poll together. A Fibonacci hash spreads them
    // over the last quarter.
    let spread = position.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let jitter = ((half / 4 + 1) * spread) >> 32;
    (half - jitter).max(MIN_POLL)
}

#[expect(clippy::cast_precision_loss, reason = "an estimate needs no more than 53 bits")]
pub(crate) fn as_float(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and float casts saturate"
)]
fn whole_secs(secs: f64) -> u64 {
    secs.ceil().max(0.0) as u64
}

#[cfg(test)]
mod tests;
