//! What operators see as it happens: one look a second at each room, shared by everybody who watches it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::timeout;
use urr_contracts::queue::Error;
use urr_http::{Counts, Live, Rates, Tally};
use urr_kernel::{EventId, Timestamp};
use urr_rpc::{Kind, ServiceError as _};

use super::{routes::Shown, state};
use crate::{
    hall::Totals,
    places::{count, rules},
    room::Order,
    service::Service,
};

/// A look that takes longer found nothing: the next one comes soon.
const PATIENCE: Duration = Duration::from_secs(2);

/// One look at a room.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "QueueSample")]
pub(crate) struct Sample {
    /// When.
    at: Timestamp,
    /// What the room held. Nothing: its store did not answer, and nobody is let in.
    room: Option<Shown>,
    /// Seconds that somebody who comes now will wait, at the pace of the last minute. Nothing: it cannot be told, or nobody is
    /// let in.
    wait: Option<u64>,
    #[serde(flatten)]
    rates: Rates,
}

/// Rooms that are watched, and those who watch.
#[derive(Default)]
pub(crate) struct Watched {
    pub(crate) live: Live<EventId>,
    tally: Tally<EventId>,
}

impl Watched {
    /// Notes what somebody who asked about a room was told. What a visitor does wrong is no error.
    pub(crate) fn failed(&self, event: EventId, error: &Error) {
        if matches!(error.kind(), Kind::Unavailable | Kind::Internal) {
            self.tally.failed(event);
        }
    }

    /// The rooms to look at.
    pub(crate) fn wanted(&self) -> Vec<EventId> {
        let wanted = self.live.wanted();
        self.tally.keep_only(&wanted);
        wanted
    }
}

/// How long somebody who comes now will wait.
fn wait(totals: &Totals) -> Option<u64> {
    let waiting = count(totals.waiting);
    if waiting == 0 && !totals.paused && count(totals.active) < u64::from(totals.threshold) {
        return Some(0);
    }
    let pace = totals.per_second.filter(|_| !totals.paused)?;
    Some(rules::at_pace(waiting + 1, pace))
}

/// Looks at a room and tells whoever watches it.
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
    fn the_wait_is_told_only_where_it_is_known() {
        assert_eq!(wait(&TOTALS), Some(26), "101 people at four a second");
        assert_eq!(wait(&Totals { paused: true, ..TOTALS }), None);
        assert_eq!(wait(&Totals { per_second: None, ..TOTALS }), None);
        assert_eq!(
            wait(&Totals { waiting: 0, active: 9, per_second: None, ..TOTALS }),
            Some(0),
            "there is room"
        );
        assert_eq!(wait(&Totals { waiting: 0, ..TOTALS }), Some(5), "the room is full");
    }
}
