//! Live view for operators: one sample per second and room, shared by all watchers.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::timeout;
use urr_contracts::queue::Error;
use urr_http::{Counts, Live, Rates, Tally};
use urr_kernel::{EventId, Timestamp};
use urr_rpc::{Kind, ServiceError as _};

use super::{routes::RoomJson, state};
use crate::{
    positions::{count, rules},
    room::Order,
    room_model::Totals,
    service::Service,
};

/// Timeout of a sample; the next one follows soon.
const PATIENCE: Duration = Duration::from_secs(2);

/// A sample of a room.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "QueueSample")]
pub(crate) struct Sample {
    /// Time of the sample.
    at: Timestamp,
    /// The state of the room. Null if its store did not answer; admissions stop then.
    room: Option<RoomJson>,
    /// Seconds that a user who joins now will wait, at the rate of the last minute. Null if unknown
    /// or while admissions are stopped.
    wait: Option<u64>,
    #[serde(flatten)]
    rates: Rates,
}

/// Watched rooms and their watchers.
#[derive(Default)]
pub(crate) struct Watched {
    pub(crate) live: Live<EventId>,
    tally: Tally<EventId>,
}

impl Watched {
    /// Counts a failed request. Errors of the client do not count.
    pub(crate) fn failed(&self, event: EventId, error: &Error) {
        if matches!(error.kind(), Kind::Unavailable | Kind::Internal) {
            self.tally.failed(event);
        }
    }

    /// The rooms to sample.
    pub(crate) fn wanted(&self) -> Vec<EventId> {
        let wanted = self.live.wanted();
        self.tally.keep_only(&wanted);
        wanted
    }
}

/// Estimated wait of a user who joins now.
fn wait(totals: &Totals) -> Option<u64> {
    let waiting = count(totals.waiting);
    if waiting == 0 && !totals.paused && count(totals.active) < u64::from(totals.threshold) {
        return Some(0);
    }
    let admission_rate = totals.per_second.filter(|_| !totals.paused)?;
    Some(rules::at_pace(waiting + 1, admission_rate))
}

/// Samples a room and sends the result to its watchers.
pub(crate) async fn sample(service: &Service, event: EventId) {
    let look = async {
        let room = service.rooms().ok()?;
        room.order(event, Order::Look).await.ok()
    };
    let totals = timeout(PATIENCE, look).await.ok().flatten();
    let (watched, at) = (&service.watched, service.clock.now());
    let counts = totals.as_ref().map(|totals| Counts { arrived: totals.arrived, admitted: totals.admitted });
    let sample = Sample {
        at,
        room: totals.as_ref().map(|totals| state(event, totals).into()),
        wait: totals.as_ref().and_then(wait),
        rates: watched.tally.look(event, service.clock.ticks(), counts),
    };
    watched.live.publish(event, at, &sample);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTALS: Totals = Totals {
        waiting: 100,
        active: 10,
        threshold: 10,
        paused: false,
        epoch: 1,
        per_second: Some(4.0),
        arrived: 1_000,
        admitted: 900,
    };

    #[test]
    fn wait_estimate_is_null_when_unknown() {
        assert_eq!(wait(&TOTALS), Some(26), "101 users at four per second");
        assert_eq!(wait(&Totals { paused: true, ..TOTALS }), None);
        assert_eq!(wait(&Totals { per_second: None, ..TOTALS }), None);
        assert_eq!(
            wait(&Totals { waiting: 0, active: 9, per_second: None, ..TOTALS }),
            Some(0),
            "slots are free"
        );
        assert_eq!(wait(&Totals { waiting: 0, ..TOTALS }), Some(5), "the room is full");
    }
}
