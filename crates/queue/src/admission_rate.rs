//! Admission rate over the last minute.

use urr_kernel::Timestamp;

const MINUTE: i64 = 60_000_000;

/// Seconds needed before a rate is reported.
const ENOUGH: f64 = 5.0;

/// Admissions of the current and the previous minute. The weight of the previous one shrinks as the
/// current one passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AdmissionRate {
    first: Option<Timestamp>,
    minute: i64,
    current: u32,
    previous: u32,
}

impl AdmissionRate {
    /// Restores the counters from Redis. `first` is the Unix epoch before the first admission.
    pub(crate) fn restored(first: Timestamp, minute: i64, current: u32, previous: u32) -> Self {
        let first = (first.as_micros() > 0).then_some(first);
        Self { first, minute, current, previous }
    }

    pub(crate) fn note(&mut self, now: Timestamp) {
        *self = self.at(now);
        self.first.get_or_insert(now);
        self.current = self.current.saturating_add(1);
    }

    /// Admissions per second, once there is enough data.
    pub(crate) fn per_second(&self, now: Timestamp) -> Option<f64> {
        let since = now.since(self.first?).as_secs_f64();
        let Self { current, previous, .. } = self.at(now);
        let into = now.as_micros().rem_euclid(MINUTE);
        let share = 1.0 - seconds(into) / 60.0;
        let people = f64::from(current) + f64::from(previous) * share;
        let rate = people / since.min(60.0);
        (since >= ENOUGH && people > 0.0).then_some(rate)
    }

    fn at(self, now: Timestamp) -> Self {
        let minute = now.as_micros().div_euclid(MINUTE);
        match minute - self.minute {
            ..=0 => self,
            1 => Self { minute, previous: self.current, current: 0, ..self },
            _ => Self { minute, previous: 0, current: 0, ..self },
        }
    }
}

fn seconds(micros: i64) -> f64 {
    f64::from(u32::try_from(micros / 1_000).unwrap_or(u32::MAX)) / 1_000.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_minute() {
        let start = Timestamp::from_micros(1_790_000_040_000_000);
        let mut admission_rate = AdmissionRate::default();
        assert_eq!(admission_rate.per_second(start), None, "no admissions yet");
        for second in 0..120 {
            for _ in 0..10 {
                admission_rate.note(start.after(Duration::from_secs(second)));
            }
        }
        let rate = admission_rate.per_second(start.after(Duration::from_mins(2))).unwrap();
        assert!((8.0..=12.0).contains(&rate), "{rate}");
        assert_eq!(
            admission_rate.per_second(start.after(Duration::from_mins(5))),
            None,
            "admissions have stopped"
        );
    }

    #[test]
    fn no_rate_before_five_seconds() {
        let start = Timestamp::from_micros(1_790_000_040_000_000);
        let mut admission_rate = AdmissionRate::default();
        admission_rate.note(start);
        assert_eq!(admission_rate.per_second(start.after(Duration::from_secs(1))), None);
        assert!(admission_rate.per_second(start.after(Duration::from_secs(6))).is_some());
    }
}
