//! Every kind of unfairness is found, and nothing else is.

use uuid::Uuid;

use super::*;

fn user(number: u128) -> UserId {
    UserId::from_uuid(Uuid::from_u128(number))
}

fn joined(number: u64) -> Step {
    Step::Joined { user: user(number.into()), order: OrderKey::new(number).unwrap() }
}

fn admitted(number: u64) -> Step {
    let order = OrderKey::new(number).unwrap();
    Step::Admitted { user: user(number.into()), order, slot: Uuid::nil() }
}

fn gone(number: u64) -> Step {
    Step::Gone { user: user(number.into()), why: Why::Left }
}

fn read(steps: &[Step]) -> Report {
    let mut verifier = Verifier::new(2);
    for (index, step) in (1..).zip(steps) {
        let at = Timestamp::from_micros(i64::try_from(index).unwrap() * 1_000_000);
        verifier.read(&Entry { generation: 1, seq: index, at, step: *step });
    }
    verifier.finish()
}

fn faults(steps: &[Step]) -> Vec<Fault> {
    read(steps).findings.into_iter().map(|finding| finding.fault).collect()
}

#[test]
fn a_fair_room_has_no_findings() {
    let report = read(&[admitted(1), admitted(2), joined(3), joined(4), gone(1), admitted(3), gone(4)]);
    assert!(report.is_fair(), "{report:?}");
    assert_eq!((report.joined, report.admitted, report.gone), (2, 3, 2));
    assert_eq!((report.most_waiting, report.most_active), (2, 2));
}

#[test]
fn every_kind_of_unfairness_is_found() {
    let overtook = Fault::Overtook { user: user(4), first: user(3) };
    assert_eq!(faults(&[joined(3), joined(4), admitted(4)]), std::slice::from_ref(&overtook));
    assert_eq!(faults(&[joined(3), admitted(4)]), [overtook], "without waiting at all");
    let full = Fault::OverThreshold { active: 3, threshold: 2 };
    assert_eq!(faults(&[admitted(1), admitted(2), admitted(3)]), [full]);
    let lowered = [admitted(1), Step::Threshold { threshold: 1 }, admitted(2)];
    assert_eq!(faults(&lowered), [Fault::OverThreshold { active: 2, threshold: 1 }]);
    assert_eq!(faults(&[joined(1), joined(1)]), [Fault::TwoPlaces { user: user(1) }]);
    assert_eq!(faults(&[admitted(1), joined(1)]), [Fault::TwoPlaces { user: user(1) }]);
    assert_eq!(faults(&[admitted(1), admitted(1)]), [Fault::TwoPlaces { user: user(1) }]);
    assert_eq!(faults(&[gone(1)]), [Fault::NotThere { user: user(1) }]);
    assert_eq!(faults(&[Step::Paused, admitted(1)]), [Fault::WhilePaused]);
    assert_eq!(faults(&[Step::Paused, Step::Resumed, admitted(1)]), []);
    assert_eq!(faults(&[admitted(1), admitted(2), Step::Cleared { epoch: 2 }, admitted(3)]), []);
    let reused = Fault::Reused { user: user(1) };
    for again in [joined(1), admitted(1)] {
        assert_eq!(faults(&[admitted(1), gone(1), again]), std::slice::from_ref(&reused));
        assert_eq!(faults(&[admitted(1), Step::Cleared { epoch: 2 }, again]), std::slice::from_ref(&reused));
    }
    let later = Step::Joined { user: user(1), order: OrderKey::new(2).unwrap() };
    assert_eq!(faults(&[admitted(1), gone(1), later]), []);
    let returned = Step::Returned { user: user(1), order: OrderKey::new(1).unwrap() };
    assert_eq!(faults(&[admitted(1), returned, gone(1), joined(1), admitted(1)]), [], "never used");
}

#[test]
fn a_slot_goes_on_in_the_next_life_of_a_room_and_only_once() {
    let read = |lives: &[&[Step]]| {
        let mut verifier = Verifier::new(1);
        for (generation, steps) in (1..).zip(lives) {
            for (seq, step) in (1..).zip(*steps) {
                // The slot keeps the time at which it was given.
                let at = Timestamp::from_micros(if seq == 1 { 1 } else { 9_000_000 * generation });
                verifier.read(&Entry { generation: generation.unsigned_abs(), seq, at, step: *step });
            }
        }
        let report = verifier.finish();
        let found: Vec<Fault> = report.findings.into_iter().map(|finding| finding.fault).collect();
        (report.admitted, found)
    };
    assert_eq!(read(&[&[admitted(1), joined(2)], &[admitted(1), gone(1), admitted(2)]]), (2, vec![]));
    let (_, found) = read(&[&[admitted(1), joined(2)], &[admitted(1), gone(1), admitted(1)]]);
    assert_eq!(found, [Fault::Reused { user: user(1) }]);
    let (_, found) = read(&[&[admitted(1), gone(1)], &[admitted(1)]]);
    assert!(found.contains(&Fault::Reused { user: user(1) }), "it was over: {found:?}");
}

#[test]
fn missing_steps_and_a_clock_that_goes_back_are_found() {
    let mut verifier = Verifier::new(2);
    let entry = |generation, seq, at| Entry {
        generation,
        seq,
        at: Timestamp::from_micros(at),
        step: joined(seq + 100 * generation),
    };
    for entry in [entry(1, 1, 9_000_000), entry(1, 3, 9_000_000), entry(2, 1, 9_000_000)] {
        verifier.read(&entry);
    }
    verifier.read(&entry(2, 2, 1_000_000));
    let faults: Vec<_> = verifier.finish().findings.into_iter().map(|finding| finding.fault).collect();
    assert_eq!(faults, [Fault::Gap { expected: 2 }, Fault::Backwards]);
}

#[test]
fn half_a_line_that_falls_silent_at_once_is_told() {
    let idle = |number: u64| Step::Gone { user: user(number.into()), why: Why::Idle };
    let silence = |gone: u64, why: fn(u64) -> Step| {
        let mut verifier = Verifier::new(0);
        let steps = (1..=20).map(joined).chain((1..=gone).map(why));
        for (index, step) in (1..).zip(steps) {
            // The sweep is quick; nobody did anything for ten minutes before it.
            let second = if index <= 20 { index } else { 620 };
            let at = Timestamp::from_micros(i64::try_from(second * 1_000_000 + index).unwrap());
            verifier.read(&Entry { generation: 1, seq: index, at, step });
        }
        let report = verifier.finish();
        assert!(report.is_fair(), "{report:?}");
        report.silence.map(|silence| (silence.gone, silence.waiting))
    };
    assert_eq!(silence(20, idle), Some((20, 20)));
    assert_eq!(silence(9, idle), None, "a few go home");
    assert_eq!(silence(20, gone), None, "these left");
}
