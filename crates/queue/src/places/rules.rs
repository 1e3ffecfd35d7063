//! When to ask again, and how long it will take. Pure.

use urr_contracts::queue::Wait;

/// Seconds between two questions of somebody who is in, or of somebody who is nowhere.
pub(crate) const IDLE_POLL_SECS: u32 = 3;

/// People let in per second as long as nobody knows better: the pace of a sale with defaults.
const ASSUMED_PER_SECOND: f64 = 50.0;

/// Nobody is told that it takes less than this: they would only be disappointed.
const MIN_WAIT_SECS: u64 = 5;

/// A measured pace changes by about this much from one minute to the next; an assumed one may be anything.
const MEASURED: (f64, f64) = (0.8, 1.3);
const ASSUMED: (f64, f64) = (0.5, 3.0);

/// How long whoever stands at `position`, counted from one, will wait.
pub(crate) fn wait(position: u64, per_second: Option<f64>) -> Wait {
    let (least, most) = if per_second.is_some() { MEASURED } else { ASSUMED };
    let secs = wait_secs(position, per_second);
    Wait { secs, from_secs: times(secs, least), to_secs: times(secs, most).max(secs) }
}

fn times(secs: u64, factor: f64) -> u64 {
    let secs = f64::from(u32::try_from(secs).unwrap_or(u32::MAX));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and saturating is what we want"
    )]
    let times = (secs * factor).ceil() as u64;
    times
}

fn wait_secs(position: u64, per_second: Option<f64>) -> u64 {
    let pace = per_second.filter(|pace| *pace > 0.0).unwrap_or(ASSUMED_PER_SECOND);
    let people = f64::from(u32::try_from(position).unwrap_or(u32::MAX));
    let secs = (people / pace).ceil();
    // At most u32::MAX people at a pace above zero: as a number of seconds it fits, or it saturates.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and saturating is what we want"
    )]
    let secs = secs as u64;
    secs.max(MIN_WAIT_SECS)
}

/// When whoever stands at `position` should ask again. The nearer, the sooner; the far ones cost nothing.
pub(crate) fn next_poll_secs(position: u64) -> u32 {
    match position {
        0 => IDLE_POLL_SECS,
        1..=1_000 => 1,
        1_001..=5_000 => 5,
        5_001..=10_000 => 10,
        10_001..=100_000 => 30,
        _ => 60,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_wait_is_the_line_over_the_pace() {
        assert_eq!(wait_secs(1_000, Some(10.0)), 100);
        assert_eq!(wait_secs(1_000, None), 20, "fifty a second until somebody knows better");
        assert_eq!(wait_secs(1_000, Some(0.0)), 20);
        assert_eq!(wait_secs(1, Some(100.0)), MIN_WAIT_SECS);
        assert_eq!(wait_secs(u64::MAX, Some(f64::MIN_POSITIVE)), u64::MAX);
    }

    #[test]
    fn a_wait_is_a_range_and_a_guess_is_a_wide_one() {
        assert_eq!(wait(1_000, Some(10.0)), Wait { secs: 100, from_secs: 80, to_secs: 130 });
        assert_eq!(wait(1_000, None), Wait { secs: 20, from_secs: 10, to_secs: 60 });
        let far = wait(u64::MAX, Some(f64::MIN_POSITIVE));
        assert!(far.from_secs <= far.secs && far.secs <= far.to_secs);
    }

    #[test]
    fn the_near_ask_often_and_the_far_seldom() {
        let ladder = [1, 1_000, 1_001, 5_000, 5_001, 10_000, 10_001, 100_000, 100_001];
        assert_eq!(ladder.map(next_poll_secs), [1, 1, 5, 5, 10, 10, 30, 30, 60]);
    }

    proptest! {
        #[test]
        fn nobody_further_back_is_told_a_shorter_wait(a in 0_u64..2_000_000, b in 0_u64..2_000_000, pace in 0.1_f64..1_000.0) {
            let (near, far) = (a.min(b), a.max(b));
            prop_assert!(wait_secs(near, Some(pace)) <= wait_secs(far, Some(pace)));
            prop_assert!(next_poll_secs(near.max(1)) <= next_poll_secs(far.max(1)));
        }
    }
}
