//! What the journal records about positions.

use urr_kernel::OrderKey;

use super::fixture::Fixture;
use crate::journal::{
    Source, Step, Why,
    verify::{Fault, Verifier},
};

/// With the source, the verifier finds a newcomer who got an earlier position.
pub(super) async fn the_journal_records_the_source_of_positions(fixture: Fixture) {
    let [inside, stays, back, passed, late] = fixture.people(5)[..] else { panic!() };
    let early = OrderKey::new(7).unwrap();
    fixture.arrive(&[inside, stays, back]).await;
    let place = fixture.place(back).await;
    fixture.room.leave(fixture.event, back, Why::Idle).await.unwrap();
    fixture.come_with(back, place, Some(1)).await;
    fixture.come_with(passed, early, None).await;
    fixture.come_with(late, early, Some(9)).await;
    fixture.room.leave(fixture.event, inside, Why::Left).await.unwrap();
    assert_eq!(fixture.room.admit(fixture.event).await, Ok(1));
    let report = fixture.assert_fair().await;
    assert_eq!(report.unproven, 0);

    let mut entries = fixture.entries().await;
    let came = entries.iter().filter_map(|entry| match entry.step {
        Step::Joined { user, source, .. } | Step::Admitted { user, source, .. } => Some((user, source)),
        _ => None,
    });
    let expected = [
        (inside, Some(Source::New)),
        (stays, Some(Source::New)),
        (back, Some(Source::New)),
        (back, Some(Source::Ticket)),
        (passed, Some(Source::Pass)),
        // A ticket of another epoch is ignored.
        (late, Some(Source::New)),
        (passed, None),
    ];
    assert_eq!(came.collect::<Vec<_>>(), expected);

    let mut verifier = Verifier::new(fixture.limits.threshold);
    for entry in &mut entries {
        if let Step::Joined { user, order, .. } = &mut entry.step
            && *user == late
        {
            *order = early.next();
        }
        verifier.read(entry);
    }
    let faults: Vec<Fault> = verifier.finish().findings.into_iter().map(|finding| finding.fault).collect();
    assert_eq!(faults, [Fault::TooEarly { user: late }]);
}
