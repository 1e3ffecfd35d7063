//! Properties of the rules.

use proptest::prelude::*;
use urr_kernel::{EventId, OrderKey};
use uuid::Uuid;

use super::*;

fn room(serving: u64, tail: u64, rate: u32) -> Room {
    Room {
        event: EventId::from_uuid(Uuid::nil()),
        epoch: 1,
        opened_at: at(0),
        active: true,
        paused: false,
        rate,
        fail_open: false,
        tail,
        serving,
    }
}

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(i64::try_from(micros).unwrap())
}

#[test]
fn one_second_admits_as_many_as_the_rate() {
    assert_eq!(advance(&room(0, 1_000, 50), at(0), at(1_000_000)), (50, at(1_000_000)));
    assert_eq!(advance(&room(0, 1_000, 3), at(0), at(1_000_000)), (3, at(1_000_000)));
    assert_eq!(
        advance(&room(0, 1_000, 1), at(0), at(999_999)),
        (0, at(0)),
        "the fraction of a second is kept"
    );
}

#[test]
fn no_credit_accrues_while_stopped_or_empty() {
    let hour = at(3_600_000_000);
    for idle in [
        Room { paused: true, ..room(5, 100, 50) },
        Room { active: false, ..room(5, 100, 50) },
        room(5, 100, 0),
        room(100, 100, 50),
    ] {
        assert_eq!(advance(&idle, at(0), hour), (idle.serving, hour));
    }
    assert_eq!(
        advance(&room(0, 100_000, 50), at(0), hour).0,
        250,
        "a gap is made up for at most five seconds"
    );
}

#[test]
fn a_clock_set_back_neither_bursts_nor_stops_admissions() {
    let hour_back = advance(&room(7, 100, 50), at(3_601_000_000), at(1_000_000));
    assert_eq!(hour_back, (7, at(1_000_000)));
    assert_eq!(advance(&room(7, 100, 50), hour_back.1, at(2_000_000)), (57, at(2_000_000)));
}

proptest! {
    #[test]
    fn the_counter_is_monotonic_bounded_and_within_its_rate(
        rate in 0_u32..2_000,
        turns in prop::collection::vec((1_u64..2_500_000, 0_u64..500, any::<bool>()), 1..60),
    ) {
        let (mut now, mut moved) = (0, at(0));
        let mut line = room(0, 0, rate);
        for (elapsed, arrivals, paused) in turns {
            line.tail += arrivals;
            line.paused = paused;
            now += elapsed;
            let (serving, next) = advance(&line, moved, at(now));
            prop_assert!(serving >= line.serving && serving <= line.tail);
            prop_assert!(next >= moved && next <= at(now));
            line.serving = serving;
            moved = next;
            // Never more than the rate allows for the whole time.
            prop_assert!(serving * MICROS <= now * u64::from(rate));
        }
    }

    #[test]
    fn the_rate_is_exact_at_any_interval(
        rate in 1_u32..2_000,
        turns in prop::collection::vec(1_u64..1_000_000, 1..60),
    ) {
        let (mut now, mut moved) = (0, at(0));
        let mut line = room(0, u64::MAX / 2, rate);
        for elapsed in turns {
            now += elapsed;
            (line.serving, moved) = advance(&line, moved, at(now));
        }
        let exact = now * u64::from(rate) / MICROS;
        // Rounding to microseconds costs at most one position per call.
        prop_assert!(line.serving <= exact && line.serving + 60 >= exact, "{} of {exact}", line.serving);
    }

    #[test]
    fn poll_intervals_stay_within_their_bounds(position in 1_u64..2_000_000, serving in 0_u64..2_000_000, rate in 0_u32..5_000) {
        let place = place(&room(serving, 2_000_000, rate), position, None);
        let ladder = match place.ahead { 0..=500 => 2, 501..=2_000 => 5, 2_001..=10_000 => 10, _ => 15 };
        prop_assert!((2..=ladder).contains(&place.next_poll_secs), "{place:?}");
    }
}

#[test]
fn reopening_starts_an_epoch_and_a_repeated_open_does_not() {
    let open = Room { serving: 40, tail: 70, ..room(0, 0, 50) };
    let again = Order::Activate { rate: None, fail_open: None };
    assert_eq!(decide(&open, again, at(9)), open, "a repeated command keeps every position");
    let closed = decide(&open, Order::Deactivate, at(9));
    assert!(!closed.active && closed.serving == 40);
    let reopened = decide(&closed, again, at(9));
    assert_eq!((reopened.epoch, reopened.tail, reopened.serving, reopened.opened_at), (2, 0, 0, at(9)));
    assert_eq!(reopened.rate, 50, "the rate is kept");
}

#[test]
fn every_opening_begins_after_earlier_positions() {
    let last = Room { opened_at: at(1_000), ..room(40, 70, 50) };
    let [before, amid, later] = [at(400), at(1_070), at(1_071)];
    assert_eq!(opens_at(&last, later), later);
    for now in [before, amid] {
        let opened = opens_at(&last, now);
        assert!(OrderKey::counted(last.opened_at, 5_000_000) < OrderKey::at(opened), "the clock went back");
    }
}

#[test]
fn manual_admission_stops_at_the_tail() {
    let line = room(40, 70, 50);
    assert_eq!(decide(&line, Order::Advance { batch: 10 }, at(0)).serving, 50);
    assert_eq!(decide(&line, Order::Advance { batch: 500 }, at(0)).serving, 70);
    assert_eq!(check(Order::Advance { batch: 0 }), Err(Error::BadBatch { max: MAX_BATCH }));
    assert_eq!(check(Order::Rate { rate: MAX_RATE + 1 }), Err(Error::BadRate { max: MAX_RATE }));
    assert_eq!(check(Order::Rate { rate: 0 }), Ok(()));
}

#[test]
fn a_measured_wait_is_a_range() {
    let line = room(100, 10_000, 50);
    let guess = place(&line, 1_100, None);
    assert_eq!((guess.ahead, guess.wait_secs, guess.range), (999, 20, None));
    let measured = place(&line, 1_100, Some(Pace { slow: 25.0, quick: 50.0 }));
    assert_eq!(measured.range, Some(WaitRange { low: 20, high: 40 }));
    assert_eq!(measured.wait_secs, 30);
    let admitted = place(&line, 100, Some(Pace { slow: 25.0, quick: 50.0 }));
    assert_eq!((admitted.ahead, admitted.wait_secs, admitted.range), (0, 0, None));
    assert!(!measured.paused && !admitted.paused);
}

#[test]
fn the_wait_is_unknown_while_admissions_are_stopped() {
    let line = room(100, 10_000, 50);
    for stopped in [Room { rate: 0, ..line }, Room { paused: true, ..line }] {
        for pace in [None, Some(Pace { slow: 25.0, quick: 50.0 })] {
            let place = place(&stopped, 1_100, pace);
            assert_eq!((place.paused, place.wait_secs, place.range), (true, UNKNOWN_WAIT, None));
        }
        assert_eq!(place(&stopped, 100, None).wait_secs, 0, "no wait once admitted");
    }
}

#[test]
fn a_position_is_never_beyond_the_tail() {
    let place = place(&room(0, 0, 50), 1, None);
    assert_eq!((place.position, place.tail), (1, 1), "the copy of the room is older than the position");
}

#[test]
fn poll_times_of_neighbours_are_spread() {
    let line = room(0, 1_000_000, 50);
    let mut polls: Vec<u64> = (500_000..500_020).map(|at| place(&line, at, None).next_poll_secs).collect();
    polls.sort_unstable();
    polls.dedup();
    assert!(polls.len() > 2, "{polls:?}");
}
