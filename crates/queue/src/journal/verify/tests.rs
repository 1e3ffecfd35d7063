//! The verifier finds every kind of unfairness, and reports no fair journal.

use uuid::Uuid;

use super::*;

fn user(number: u128) -> UserId {
    UserId::from_uuid(Uuid::from_u128(number))
}

fn came(number: u64, order: u64, source: impl Into<Option<Source>>) -> Step {
    let (user, order) = (user(number.into()), OrderKey::new(order).unwrap());
    Step::Joined { user, order, source: source.into() }
}

fn joined(number: u64) -> Step {
    came(number, number, None)
}

fn admitted(number: u64) -> Step {
    let order = OrderKey::new(number).unwrap();
    Step::Admitted { user: user(number.into()), order, slot: Uuid::nil(), source: None }
}

fn gone(number: u64) -> Step {
    Step::Gone { user: user(number.into()), why: Why::Left }
}

fn silent(number: u64) -> Step {
    Step::Gone { user: user(number.into()), why: Why::Idle }
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
fn a_given_up_position_cannot_be_restored() {
    let back = |source| came(3, 3, source);
    let reused = [Fault::Reused { user: user(3) }];
    assert_eq!(faults(&[joined(3), gone(3), back(Source::Ticket)]), reused);
    assert_eq!(
        faults(&[joined(3), silent(3), back(Source::Ticket)]),
        [],
        "an idle timeout gives up no position"
    );
    assert_eq!(faults(&[joined(3), gone(3), back(Source::Pass)]), [], "Tier 1 has its own order");
    let other = [joined(3), silent(3), came(3, 5, Source::New), gone(3), back(Source::Ticket)];
    assert_eq!(faults(&other), reused, "earlier tickets are given up too");
}

#[test]
fn every_kind_of_unfairness_is_found() {
    let overtook = Fault::Overtook { user: user(4), first: user(3) };
    assert_eq!(faults(&[joined(3), joined(4), admitted(4)]), std::slice::from_ref(&overtook));
    assert_eq!(faults(&[joined(3), admitted(4)]), [overtook], "admitted without waiting");
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
    assert_eq!(faults(&[admitted(1), gone(1), came(1, 2, None)]), []);
    // A user who joined twice and kept both tickets has one turn.
    let [new, ticket] = [Some(Source::New), Some(Source::Ticket)];
    let stocked =
        [came(1, 1, new), silent(1), came(1, 2, new), silent(1), came(1, 1, ticket), admitted(1), gone(1)];
    assert_eq!(faults(&stocked), []);
    let second = [&stocked[..], &[came(1, 2, ticket)]].concat();
    assert_eq!(faults(&second), std::slice::from_ref(&reused));
    let returned = Step::Returned { user: user(1), order: OrderKey::new(1).unwrap() };
    assert_eq!(
        faults(&[admitted(1), returned, silent(1), joined(1), admitted(1)]),
        [],
        "the slot was never used"
    );
    let elsewhere = Step::Returned { user: user(1), order: OrderKey::new(7).unwrap() };
    assert_eq!(faults(&[admitted(1), elsewhere]), [Fault::NotThere { user: user(1) }]);
}

#[test]
fn newcomers_join_behind_earlier_users() {
    let too_early = |number: u128| [Fault::TooEarly { user: user(number) }];
    assert_eq!(faults(&[came(1, 10, Source::New), came(2, 11, Source::New)]), []);
    assert_eq!(faults(&[came(1, 10, Source::New), came(2, 9, Source::New)]), too_early(2));
    assert_eq!(faults(&[came(1, 10, Source::New), came(2, 10, Source::New)]), too_early(2));
    assert_eq!(faults(&[came(1, 10, Source::New), came(2, 9, Source::Pass)]), [], "Tier 1 has its own order");
    assert_eq!(faults(&[came(1, 10, Source::Pass), came(2, 9, Source::New)]), too_early(2));
    assert_eq!(faults(&[came(1, 10, None), came(2, 9, None)]), [], "old journals have no source");
    let straight_in = |source| {
        let order = OrderKey::new(9).unwrap();
        Step::Admitted { user: user(2), order, slot: Uuid::nil(), source: Some(source) }
    };
    assert_eq!(faults(&[came(1, 10, Source::New), gone(1), straight_in(Source::New)]), too_early(2));
    assert_eq!(faults(&[came(1, 10, Source::New), gone(1), straight_in(Source::Pass)]), []);
    // The clock of Tier 1 is an hour ahead: newcomers need not have a higher key than that.
    assert_eq!(faults(&[came(1, 3_600_000_000, Source::Pass), came(2, 2_000_000, Source::New)]), []);
    // A user who waited keeps their position when admitted.
    assert_eq!(faults(&[came(1, 10, Source::New), came(2, 11, Source::New), admitted_at(1, 10)]), []);
}

fn admitted_at(number: u64, order: u64) -> Step {
    let order = OrderKey::new(order).unwrap();
    Step::Admitted { user: user(number.into()), order, slot: Uuid::nil(), source: None }
}

#[test]
fn a_ticket_restores_only_a_position_its_owner_was_given() {
    let (new, ticket) = (Source::New, Source::Ticket);
    let twice = [came(1, 10, new), silent(1), came(1, 20, new), silent(1), came(1, 10, ticket)];
    assert_eq!(faults(&twice), []);
    assert_eq!(faults(&[came(1, 10, Source::Pass), silent(1), came(1, 10, ticket)]), []);
    assert_eq!(faults(&[came(1, 10, None), silent(1), came(1, 10, ticket)]), []);
    let never = [Fault::NeverGiven { user: user(1) }];
    assert_eq!(faults(&[came(1, 10, new), gone(1), came(1, 9, ticket)]), never);
    assert_eq!(faults(&[came(2, 10, new), gone(2), came(1, 10, ticket)]), never, "another user's position");
    let cleared = Step::Cleared { epoch: 2 };
    assert_eq!(faults(&[came(1, 10, new), cleared, came(1, 10, ticket)]), never, "the ticket is void");
}

#[test]
fn a_new_generation_tolerates_lost_steps_and_clock_differences() {
    let second = 1_000_000;
    let read = |generations: &[&[Step]]| {
        let mut verifier = Verifier::new(0);
        for (generation, steps) in (1..).zip(generations) {
            for (seq, step) in (1..).zip(*steps) {
                let at = Timestamp::from_micros(60_000_000);
                verifier.read(&Entry { generation, seq, at, step: *step });
            }
        }
        let report = verifier.finish();
        (report.unproven, report.findings.into_iter().map(|finding| finding.fault).collect::<Vec<_>>())
    };
    let (new, ticket, cleared) = (Source::New, Source::Ticket, Step::Cleared { epoch: 2 });
    let before: &[Step] = &[cleared, came(1, 10 * second, new)];
    assert_eq!(read(&[before, &[cleared, came(1, 10 * second, ticket)]]), (0, vec![]), "the same epoch");
    assert_eq!(read(&[before, &[came(2, 11 * second, ticket)]]), (1, vec![]));
    assert_eq!(read(&[before, &[came(2, 9 * second, new)]]), (0, vec![]), "its clock is a second behind");
    let too_early = vec![Fault::TooEarly { user: user(2) }];
    assert_eq!(read(&[before, &[came(2, 8 * second, new)]]), (0, too_early));
}

#[test]
fn a_slot_is_restored_once_in_the_next_generation() {
    let read = |generations: &[&[Step]]| {
        let mut verifier = Verifier::new(2);
        for (generation, steps) in (1..).zip(generations) {
            for (seq, step) in (1..).zip(*steps) {
                // A restored slot keeps its original time.
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
    assert!(found.contains(&Fault::Reused { user: user(1) }), "the slot had ended: {found:?}");
    let both: &[Step] = &[admitted(1), admitted(2)];
    assert_eq!(read(&[both, &[admitted(1)], both]), (2, vec![]), "a generation that was lost while it began");
    let (_, found) = read(&[both, &[admitted(1), joined(2), gone(2)], both]);
    assert!(found.contains(&Fault::Reused { user: user(2) }), "this slot had ended: {found:?}");
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
    let report = verifier.finish();
    let faults: Vec<_> = report.findings.into_iter().map(|finding| finding.fault).collect();
    assert_eq!((faults, report.clock_back), (vec![Fault::Gap { expected: 2 }], 1));
}

#[test]
fn mass_idle_timeouts_are_reported() {
    let silence = |gone: u64, why: fn(u64) -> Step| {
        let mut verifier = Verifier::new(0);
        let steps = (1..=20).map(joined).chain((1..=gone).map(why));
        for (index, step) in (1..).zip(steps) {
            // The sweep is quick, after ten minutes without any step.
            let second = if index <= 20 { index } else { 620 };
            let at = Timestamp::from_micros(i64::try_from(second * 1_000_000 + index).unwrap());
            verifier.read(&Entry { generation: 1, seq: index, at, step });
        }
        let report = verifier.finish();
        assert!(report.is_fair(), "{report:?}");
        report.silence.map(|silence| (silence.gone, silence.waiting))
    };
    assert_eq!(silence(20, silent), Some((20, 20)));
    assert_eq!(silence(9, silent), None, "too few to report");
    assert_eq!(silence(20, gone), None, "these users left");
}
