//! What operators see as it happens: one look a second at each room, shared by everybody who watches it. It costs the store nothing:
//! every process has a copy of every room.

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
    routes::Api,
    rules::{self, Pace},
    service::Service,
};

/// One look at a room.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VwrSample")]
pub(crate) struct Sample {
    /// When.
    at: Timestamp,
    /// The room. Nothing: there never was one.
    room: Option<Facts>,
    /// Whether the store has answered of late. If not, the room is shown as it was, and whoever waits keeps waiting.
    reachable: bool,
    /// Seconds that somebody who comes now will wait. Nothing: nobody is let on.
    wait: Option<u64>,
    #[serde(flatten)]
    rates: Rates,
}

/// Rooms that are watched, and those who watch.
#[derive(Default)]
pub(crate) struct Watched {
    live: Live<EventId>,
    tally: Tally<EventId>,
}

impl Watched {
    /// Notes what somebody who asked for a place was told. What a visitor does wrong is no error.
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

/// Looks at every room that is watched or open.
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
        for room in self.0.board.rooms().into_iter().filter(|room| room.active) {
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
        let known = vwr.board.room(event).ok().flatten();
        let counts = known.map(|(room, _)| Counts { arrived: room.tail, admitted: room.serving });
        let sample = Sample {
            at,
            room: known.map(|(room, _)| room.into()),
            reachable: vwr.board.is_fresh(),
            wait: known.and_then(|(room, pace)| wait(&room, pace)),
            rates: vwr.watched.tally.look(event, vwr.clock.ticks(), counts),
        };
        vwr.watched.live.publish(event, at, &sample);
    }
}

/// How long somebody who comes now will wait.
fn wait(room: &Room, pace: Option<Pace>) -> Option<u64> {
    if !room.active {
        return Some(0);
    }
    let moves = !room.paused && room.rate > 0;
    moves.then(|| rules::place(room, room.tail + 1, pace).wait_secs)
}
