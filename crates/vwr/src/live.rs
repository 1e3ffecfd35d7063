//! Live view for operators: one sample per second and room, shared by all watchers. It is taken
//! from the process's copy and costs the store nothing.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use axum::{extract::State, http::HeaderMap, response::Response};
use schemars::JsonSchema;
use serde::Serialize;
use urr_contracts::vwr::{Error, Room};
use urr_http::{Caller, Counts, Live, Path, Problem, Rates, Tally};
use urr_jobs::{BoxError, Outcome, Reconciler};
use urr_kernel::{EventId, Timestamp};
use urr_rpc::{Kind, ServiceError as _};

use crate::{
    admin::Facts,
    api::Api,
    rules::{self, Pace},
    service::Service,
};

/// A sample of a room.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VwrSample")]
pub(crate) struct Sample {
    /// Time of the sample.
    at: Timestamp,
    /// The room. Null if there never was one.
    room: Option<Facts>,
    /// Whether the store has answered recently. If not, the room is shown as last seen, and
    /// visitors keep waiting.
    reachable: bool,
    /// Seconds that a visitor who arrives now will wait. Null while admissions are stopped.
    wait: Option<u64>,
    #[serde(flatten)]
    rates: Rates,
}

/// Watched rooms and their watchers.
#[derive(Default)]
pub(crate) struct Watched {
    live: Live<EventId>,
    tally: Tally<EventId>,
}

impl Watched {
    /// Counts a failed request. Errors of the client do not count.
    pub(crate) fn failed(&self, event: EventId, error: &Error) {
        if matches!(error.kind(), Kind::Unavailable | Kind::Internal) {
            self.tally.failed(event);
        }
    }
}

/// The stream of one room.
pub(crate) async fn listen(
    State(Api(vwr)): State<Api>,
    caller: Caller,
    Path(event): Path<EventId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.admin()?;
    vwr.watched.live.listen(event, &headers)
}

/// Samples every room that is watched or open.
pub(crate) struct Sampling(pub(crate) Arc<Service>);

#[async_trait]
impl Reconciler for Sampling {
    fn name(&self) -> &'static str {
        "vwr.sampling"
    }

    fn period(&self) -> Duration {
        Duration::from_secs(1)
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        let Watched { live, tally } = &self.0.watched;
        for room in self.0.room_cache.rooms().into_iter().filter(|room| room.active) {
            live.open(room.event);
        }
        let wanted = live.wanted();
        tally.keep_only(&wanted);
        for event in wanted {
            self.sample(event);
        }
        Ok(Outcome::done(0))
    }
}

impl Sampling {
    fn sample(&self, event: EventId) {
        let (vwr, at) = (&self.0, self.0.clock.now());
        let known = vwr.room_cache.room(event).ok().flatten();
        let counts = known.map(|(room, _)| Counts { arrived: room.tail, admitted: room.serving });
        let sample = Sample {
            at,
            room: known.map(|(room, _)| room.into()),
            reachable: vwr.room_cache.is_fresh(),
            wait: known.and_then(|(room, pace)| wait(&room, pace)),
            rates: vwr.watched.tally.look(event, vwr.clock.ticks(), counts),
        };
        vwr.watched.live.publish(event, at, &sample);
    }
}

/// Estimated wait of a visitor who arrives now.
fn wait(room: &Room, pace: Option<Pace>) -> Option<u64> {
    if !room.active {
        return Some(0);
    }
    let moves = !room.paused && room.rate > 0;
    moves.then(|| rules::place(room, room.tail + 1, pace).wait_secs)
}
