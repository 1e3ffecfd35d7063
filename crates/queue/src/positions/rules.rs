//! Poll intervals and wait estimates. Pure.

use urr_contracts::queue::Wait;

use crate::{room_model::Totals, settings::Limits};

/// Poll interval of users who have a slot or are not in the room.
pub(crate) const IDLE_POLL_SECS: u32 = 3;

/// Seconds that users typically take to choose seats, until the room has measured it.
const TYPICAL_STAY: f64 = 180.0;

/// Number of assumed departures in the estimate, so that one user more or less in a small room does
/// not move it much.
const ASSUMED_DEPARTURES: f64 = 3.0;

/// Seconds over which [`Totals::per_second`] is measured.
const MEASURED_OVER: f64 = 60.0;

/// Shorter estimates are rounded up to this.
const MIN_WAIT_SECS: u64 = 5;

/// Bounds of the range, as factors of the estimate: with many measured departures, and with none.
const MEASURED: (f64, f64) = (0.8, 1.3);
const ASSUMED: (f64, f64) = (0.5, 3.0);

/// Input of a wait estimate.
///
/// A full room admits users as slots end, so the estimate rests on departures. Admissions that only
/// filled the room do not count: in the first minute of a sale they would promise a wait of
/// seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlook {
    threshold: f64,
    free: f64,
    /// Slots that ended since the room was opened.
    departed: f64,
    /// Slots that ended per second over the last minute, if that was measured.
    per_second: Option<f64>,
    batch: f64,
    slot_total: f64,
}

impl Outlook {
    pub(crate) fn of(totals: &Totals, limits: &Limits) -> Self {
        let (active, admitted) = (float(totals.active), float64(totals.admitted));
        let departed = (admitted - active).max(0.0);
        Self {
            threshold: f64::from(totals.threshold).max(1.0),
            free: (f64::from(totals.threshold) - active).max(0.0),
            departed,
            per_second: totals
                .per_second
                .filter(|_| departed > 0.0)
                .map(|admission_rate| admission_rate * departed / admitted),
            batch: float(limits.batch).max(1.0),
            slot_total: limits.slot_total.as_secs_f64().max(1.0),
        }
    }

    /// Slots that end per second, and the share of it that is measured rather than assumed, 0 to 1.
    fn departures(&self) -> (f64, f64) {
        let assumed = self.threshold / TYPICAL_STAY;
        // However slow users are, a slot ends after `slot_total`; however fast, `batch` users are
        // admitted per second.
        let bounded =
            |rate: f64| rate.min(self.batch).max((self.threshold / self.slot_total).min(self.batch));
        let Some(measured) = self.per_second else { return (bounded(assumed), 0.0) };
        let people = measured * MEASURED_OVER;
        let fading = TYPICAL_STAY * self.threshold / (self.threshold + self.departed);
        let prior = fading.max(ASSUMED_DEPARTURES / assumed);
        let rate = (assumed * prior + people) / (prior + MEASURED_OVER);
        let known = MEASURED_OVER / (MEASURED_OVER + prior) * people / (people + ASSUMED_DEPARTURES);
        (bounded(rate), known)
    }
}

/// The estimated wait at `position`, counted from one. The range narrows as departures are
/// measured.
pub(crate) fn wait(position: u64, outlook: &Outlook) -> Wait {
    let people = float64(position);
    let beyond = people - outlook.free;
    if beyond <= 0.0 {
        let secs = whole(people / outlook.batch).max(MIN_WAIT_SECS);
        return Wait { secs, from_secs: times(secs, MEASURED.0), to_secs: times(secs, ASSUMED.1) };
    }
    let (rate, known) = outlook.departures();
    let secs = whole(beyond / rate).max(MIN_WAIT_SECS);
    let between = |from: f64, to: f64| from + (to - from) * known;
    let longest = whole(beyond * outlook.slot_total / outlook.threshold).max(secs);
    Wait {
        secs,
        from_secs: times(secs, between(ASSUMED.0, MEASURED.0)),
        to_secs: times(secs, between(ASSUMED.1, MEASURED.1)).clamp(secs, longest),
    }
}

/// Seconds until the person at `position` is admitted at a measured pace.
pub(crate) fn at_pace(position: u64, per_second: f64) -> u64 {
    whole(float64(position) / per_second).max(MIN_WAIT_SECS)
}

fn times(secs: u64, factor: f64) -> u64 {
    whole(float64(secs) * factor)
}

fn float(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn float64(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and saturating is what we want"
)]
fn whole(secs: f64) -> u64 {
    secs.ceil() as u64
}

/// Shortest poll interval: admissions run once per second.
const MIN_POLL_SECS: u64 = 1;

/// Longest poll interval, unless the user's turn cannot come sooner even at full speed. A stopped
/// line may resume at any moment, and the first users should notice within seconds.
///
/// It also bounds recovery after Redis has lost a room: users have their position back before
/// [`crate::GRACE`] is over or before the line reaches them. In `t` seconds at most `batch × t`
/// users are admitted, and more than that many earlier ones are back by then.
const SURE_POLL_SECS: u64 = 3;

/// Upper bound of every poll interval: users ahead who give up shorten the line in a way that
/// cannot be predicted.
const MAX_POLL_SECS: u64 = 3_600;

/// A wait that starts in `shut_secs`, when the sale opens.
pub(crate) fn after(shut_secs: u64, wait: Wait) -> Wait {
    let [secs, from_secs, to_secs] =
        [wait.secs, wait.from_secs, wait.to_secs].map(|secs| secs.saturating_add(shut_secs));
    Wait { secs, from_secs, to_secs }
}

/// Seconds until the user at `position`, counted from one, should poll again. Two thirds of the
/// estimated wait, so that users near the front poll often and others rarely, but early enough not
/// to time out ([`Limits::silence`]). `shut_secs`: seconds until the sale opens.
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
    use urr_kernel::Timestamp;

    use super::*;
    use crate::admission_rate::AdmissionRate;

    const LONG_OPEN: Totals = Totals {
        waiting: 0,
        active: 100,
        threshold: 100,
        paused: false,
        epoch: 1,
        per_second: None,
        arrived: 0,
        admitted: 1_000_000,
    };

    /// A full room that has been open for long and admits `per_second` users per second.
    fn outlook(per_second: Option<f64>, limits: &Limits) -> Outlook {
        Outlook::of(&Totals { per_second, ..LONG_OPEN }, limits)
    }

    fn waits(position: u64, per_second: Option<f64>) -> Wait {
        wait(position, &outlook(per_second, &Limits::default()))
    }

    #[test]
    fn wait_is_position_divided_by_departure_rate() {
        let measured = waits(1_000, Some(10.0));
        assert!((100..=110).contains(&measured.secs), "{measured:?}");
        assert_eq!(waits(1_000, None).secs, 1_800, "a hundred slots of three minutes each");
        assert_eq!(waits(1, Some(100.0)).secs, MIN_WAIT_SECS);
        assert_eq!(at_pace(1_000, 10.0), 100);
        let far = waits(u64::MAX, Some(f64::MIN_POSITIVE));
        assert!(far.from_secs <= far.secs && far.secs <= far.to_secs);
    }

    #[test]
    fn free_slots_are_filled_at_full_speed() {
        let empty = Outlook::of(&Totals { active: 0, admitted: 0, ..LONG_OPEN }, &Limits::default());
        assert_eq!(wait(100, &empty).secs, MIN_WAIT_SECS);
        assert_eq!(wait(200, &empty).secs, 180, "the second hundred waits for the first to leave");
    }

    #[test]
    fn the_range_narrows_as_departures_are_measured() {
        let width = |wait: Wait| {
            f64::from(u32::try_from(wait.to_secs).unwrap())
                / f64::from(u32::try_from(wait.from_secs).unwrap())
        };
        assert!(width(waits(1_000, None)) > 4.0);
        assert!(width(waits(1_000, Some(10.0))) < 2.0);
    }

    /// Estimates for the 18th in line, once a second from the opening on, while users take two to
    /// five minutes.
    fn estimates(threshold: u32, secs: u64) -> Vec<Wait> {
        let start = Timestamp::from_micros(1_790_000_040_000_000);
        let limits = Limits::default();
        let stay = |nth: u64| 120 + nth * 67 % 180;
        let (mut admission_rate, mut ends, mut admitted) = (AdmissionRate::default(), Vec::new(), 0_u64);
        (0..secs)
            .map(|second| {
                let now = start.after(Duration::from_secs(second));
                ends.retain(|end| *end > second);
                while ends.len() < usize::try_from(threshold).unwrap() {
                    admission_rate.note(now);
                    ends.push(second + stay(admitted));
                    admitted += 1;
                }
                let totals = Totals {
                    threshold,
                    active: ends.len(),
                    admitted,
                    per_second: admission_rate.per_second(now),
                    ..LONG_OPEN
                };
                wait(18, &Outlook::of(&totals, &limits))
            })
            .collect()
    }

    #[test]
    fn an_estimate_does_not_jump() {
        for threshold in [1, 3, 20, 100] {
            let estimates = estimates(threshold, 1_800);
            assert_eq!(estimates[0].secs, estimates[100].secs, "filling the room measures nothing");
            for (second, pair) in estimates.windows(2).enumerate() {
                let [before, after] = [pair[0], pair[1]].map(|wait| u32::try_from(wait.secs).unwrap());
                let change = f64::from(before.max(after)) / f64::from(before.min(after));
                assert!(change < 1.4, "{threshold}: {before} s, then {after} s after {second} s");
            }
            let all = estimates.iter().map(|wait| wait.secs);
            let (least, most) = (all.clone().min().unwrap(), all.max().unwrap());
            assert!(most <= 3 * least.max(20), "{threshold}: between {least} s and {most} s");
        }
    }

    fn poll(position: u64, per_second: Option<f64>) -> u32 {
        next_poll_secs(position, &waits(position, per_second), 0, &Limits::default())
    }

    #[test]
    fn poll_interval_grows_with_the_position() {
        assert_eq!([1, 500, 5_000, 20_000].map(|at| poll(at, None)), [3, 4, 49, 199]);
        assert_eq!(poll(40_000, Some(50.0)), 300, "half of the idle timeout");
        assert_eq!(poll(100_001, Some(50.0)), 666, "the idle timeout is longer this far back");
        assert_eq!(poll(1_000_000, Some(50.0)), 3_600);
        let strict = Limits { waiting_idle: Duration::from_secs(5), ..Limits::default() };
        let strict = |at| next_poll_secs(at, &waits(at, None), 0, &strict);
        assert_eq!([1, 301, 100_001].map(strict), [2, 2, 666]);
    }

    #[test]
    fn polls_come_before_the_earliest_possible_turn() {
        assert_eq!(poll(1, Some(0.01)), 3, "the line may resume at any moment");
        assert_eq!(poll(5_000, Some(1.0)), 49, "at full speed it takes 50 seconds");
        assert_eq!(poll(20_000, Some(1.0)), 199, "at full speed it takes 200 seconds");
    }

    #[test]
    fn polls_resume_when_the_sale_opens() {
        let (limits, soon) = (Limits::default(), waits(1, Some(100.0)));
        assert_eq!(after(3_600, soon).secs, 3_600 + MIN_WAIT_SECS);
        let polls = [3_600, 60, 10, 1, 0].map(|shut| next_poll_secs(1, &soon, shut, &limits));
        assert_eq!(polls, [300, 43, 10, 3, 3], "soon after the sale opens");
    }

    /// Number of polls of a user who joins at `position`, at a rate of a million admissions in five
    /// hours.
    fn questions(position: u32, limits: &Limits) -> u32 {
        let (admission_rate, mut elapsed, mut questions) = (1_000_000.0 / 18_000.0, 0_u32, 0);
        loop {
            let left = (f64::from(position) - admission_rate * f64::from(elapsed)).ceil();
            if left < 1.0 {
                return questions;
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 1 and a million"
            )]
            let left = left as u64;
            elapsed += next_poll_secs(left, &wait(left, &outlook(Some(admission_rate), limits)), 0, limits);
            questions += 1;
        }
    }

    #[test]
    fn a_five_hour_line_costs_few_polls() {
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
        fn wait_estimate_is_monotonic_in_the_position(a in 0_u64..2_000_000, b in 0_u64..2_000_000, admission_rate in 0.1_f64..1_000.0) {
            let (near, far) = (a.min(b), a.max(b));
            prop_assert!(waits(near, Some(admission_rate)).secs <= waits(far, Some(admission_rate)).secs);
            prop_assert!(poll(near.max(1), Some(admission_rate)) <= poll(far.max(1), Some(admission_rate)));
        }

        /// A page may poll up to a tenth late, while the line moves at full speed.
        #[test]
        fn users_who_poll_on_time_do_not_time_out(
            ahead in 0_usize..2_000_000, batch in 1_usize..2_000, idle in 5_u64..7_200, admission_rate in 0.1_f64..1_000.0, shut in 0_u64..90_000,
        ) {
            let limits = Limits { batch, waiting_idle: Duration::from_secs(idle), ..Limits::default() };
            let position = u64::try_from(ahead).unwrap() + 1;
            let told = next_poll_secs(position, &wait(position, &outlook(Some(admission_rate), &limits)), shut, &limits);
            let silent = Duration::from_secs(told.into()).mul_f64(1.1);
            let let_in = batch.saturating_mul(usize::try_from(silent.as_secs()).unwrap() + 1);
            let at_the_end = limits.silence(ahead.saturating_sub(let_in));
            prop_assert!(silent < at_the_end, "polls after {told} s, times out after {at_the_end:?}");
        }
    }
}
