//! Clocks that are set back.

use std::time::Duration;

use urr_testkit::{STORY_LIMIT, until};

use super::Trial;
use crate::counters::Turn;

pub(super) async fn a_clock_set_back_does_not_stop_admissions(trial: Trial) {
    trial.open(1_000).await;
    trial.add(100).await;
    trial.clock_went_back(Duration::from_mins(10)).await;
    let (worker, mut term) = (trial.ids.next(), None);
    until(STORY_LIMIT, async || match trial.turn(worker, term).await {
        Turn::Ours { term: ours, room } => {
            term = Some(ours);
            room.serving > 0
        }
        Turn::Theirs => panic!("a lease from before the clock went back must not count"),
    })
    .await;
}
