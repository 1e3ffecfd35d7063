//! Clocks that are set back.

use std::time::Duration;

use urr_testkit::{STORY_LIMIT, until};

use super::Fixture;
use crate::counters::LeaseOutcome;

pub(super) async fn a_clock_set_back_does_not_stop_admissions(fixture: Fixture) {
    fixture.open(1_000).await;
    fixture.add(100).await;
    fixture.clock_went_back(Duration::from_mins(10)).await;
    let (worker, mut term) = (fixture.ids.next(), None);
    until(STORY_LIMIT, async || match fixture.turn(worker, term).await {
        LeaseOutcome::Ours { term: ours, room } => {
            term = Some(ours);
            room.serving > 0
        }
        LeaseOutcome::Theirs => panic!("a lease from before the clock went back must not count"),
    })
    .await;
}
