//! When to ask again, and how long it will take. Pure.

use urr_contracts::queue::Wait;

use crate::settings::Limits;

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

/// Nobody is asked to come back sooner: it would tell them nothing new.
const MIN_POLL_SECS: u64 = 1;

/// However slow the line is, nobody is told to stay away longer than this, unless their turn cannot come sooner at full speed either: a
/// line that stood still may go on at once, and whoever is first should not find out a minute later. After Redis has lost a room everybody
/// has their place back before the grace of [`crate::GRACE`] is over, or before the line gets to them: in `t` seconds at most `batch × t`
/// people are let in, and more than that many who came before them are back by then.
const SURE_POLL_SECS: u64 = 3;

/// However far somebody is, they are not told to stay away for longer than this: people ahead of them who give up make the line shorter
/// than letting in does, and nobody knows how many will.
const MAX_POLL_SECS: u64 = 3_600;

/// A wait that begins in `shut_secs`, when the sale does.
pub(crate) fn after(shut_secs: u64, wait: Wait) -> Wait {
    let [secs, from_secs, to_secs] =
        [wait.secs, wait.from_secs, wait.to_secs].map(|secs| secs.saturating_add(shut_secs));
    Wait { secs, from_secs, to_secs }
}

/// When whoever stands at `position`, counted from one, should ask again: after two thirds of their wait, so that the near ask often
/// and the far cost little, and early enough not to be taken for gone ([`Limits::silence`]). `shut_secs`: nobody is let in for so long.
pub(crate) fn next_poll_secs(position: u64, wait: &Wait, shut_secs: u64, limits: &Limits) -> u32 {
    let soonest = position.saturating_sub(1) / u64::try_from(limits.batch).unwrap_or(u64::MAX).max(1);
    let sure = soonest.saturating_add(shut_secs).max(SURE_POLL_SECS);
    let heard_of = (limits.waiting_idle.as_secs() / 2).max(two_thirds(soonest)).min(MAX_POLL_SECS);
    let most_of_it = two_thirds(wait.secs.saturating_add(shut_secs));
    u32::try_from(most_of_it.min(sure).min(heard_of).max(MIN_POLL_SECS)).unwrap_or(u32::MAX)
}

fn two_thirds(secs: u64) -> u64 {
    secs.saturating_mul(2) / 3
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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

    fn poll(position: u64, per_second: Option<f64>) -> u32 {
        next_poll_secs(position, &wait(position, per_second), 0, &Limits::default())
    }

    #[test]
    fn the_near_ask_often_and_the_far_seldom() {
        assert_eq!([1, 500, 5_000, 20_000].map(|at| poll(at, None)), [3, 4, 49, 199]);
        assert_eq!(poll(40_000, Some(50.0)), 300, "half of the time after which the silent are sent away");
        assert_eq!(poll(100_001, Some(50.0)), 666, "nobody is sent away there so soon");
        assert_eq!(poll(1_000_000, Some(50.0)), 3_600);
        let strict = Limits { waiting_idle: Duration::from_secs(5), ..Limits::default() };
        let strict = |at| next_poll_secs(at, &wait(at, None), 0, &strict);
        assert_eq!([1, 301, 100_001].map(strict), [2, 2, 666]);
    }

    #[test]
    fn nobody_stays_away_while_their_turn_could_come() {
        assert_eq!(poll(1, Some(0.01)), 3, "the line may go on at once");
        assert_eq!(poll(5_000, Some(1.0)), 49, "at full speed it takes 50 seconds");
        assert_eq!(poll(20_000, Some(1.0)), 199, "and here that long");
    }

    #[test]
    fn before_a_sale_begins_people_are_told_to_come_back_when_it_does() {
        let (limits, soon) = (Limits::default(), wait(1, None));
        assert_eq!(after(3_600, soon).secs, 3_600 + MIN_WAIT_SECS);
        let polls = [3_600, 60, 10, 1, 0].map(|shut| next_poll_secs(1, &soon, shut, &limits));
        assert_eq!(polls, [300, 43, 10, 3, 3], "never long after it begins");
    }

    /// How often whoever comes in at `position` asks, at the pace of a million in five hours.
    fn questions(position: u32, limits: &Limits) -> u32 {
        let (pace, mut elapsed, mut questions) = (1_000_000.0 / 18_000.0, 0_u32, 0);
        loop {
            let left = (f64::from(position) - pace * f64::from(elapsed)).ceil();
            if left < 1.0 {
                return questions;
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 1 and a million"
            )]
            let left = left as u64;
            elapsed += next_poll_secs(left, &wait(left, Some(pace)), 0, limits);
            questions += 1;
        }
    }

    #[test]
    fn a_five_hour_line_costs_few_questions() {
        // At full speed, and at half of it.
        for (batch, last, on_average) in [(56, 12, 10), (100, 17, 14)] {
            let limits = Limits { batch, ..Limits::default() };
            assert!(questions(1_000_000, &limits) <= last, "{}", questions(1_000_000, &limits));
            let all: Vec<u32> = (1..=1_000).map(|part| questions(part * 1_000, &limits)).collect();
            assert!(all.iter().sum::<u32>() <= on_average * 1_000, "{}", all.iter().sum::<u32>());
        }
    }

    proptest! {
        #[test]
        fn nobody_further_back_is_told_a_shorter_wait(a in 0_u64..2_000_000, b in 0_u64..2_000_000, pace in 0.1_f64..1_000.0) {
            let (near, far) = (a.min(b), a.max(b));
            prop_assert!(wait_secs(near, Some(pace)) <= wait_secs(far, Some(pace)));
            prop_assert!(poll(near.max(1), Some(pace)) <= poll(far.max(1), Some(pace)));
        }

        /// A page asks up to a tenth later than it was told, and the line goes at full speed meanwhile.
        #[test]
        fn nobody_who_asks_when_they_are_told_is_taken_for_gone(
            ahead in 0_usize..2_000_000, batch in 1_usize..2_000, idle in 5_u64..7_200, pace in 0.1_f64..1_000.0, shut in 0_u64..90_000,
        ) {
            let limits = Limits { batch, waiting_idle: Duration::from_secs(idle), ..Limits::default() };
            let position = u64::try_from(ahead).unwrap() + 1;
            let told = next_poll_secs(position, &wait(position, Some(pace)), shut, &limits);
            let silent = Duration::from_secs(told.into()).mul_f64(1.1);
            let let_in = batch.saturating_mul(usize::try_from(silent.as_secs()).unwrap() + 1);
            let at_the_end = limits.silence(ahead.saturating_sub(let_in));
            prop_assert!(silent < at_the_end, "told {told} s, may be silent for {at_the_end:?}");
        }
    }
}
