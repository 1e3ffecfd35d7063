//! Combines concurrent arrivals: one call to the store gives positions to all that wait, and while
//! it is in progress the next ones gather. Within a process the order of arrival is kept, and the
//! store keeps the order of calls.

use std::{sync::Arc, time::Duration};

use urr_contracts::vwr::{Error, Room};
use urr_jobs::{BatchError, Batcher, Work};
use urr_kernel::EventId;

use crate::{Counters, Failure, counters::AssignedPositions};

/// A position that was given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) position: u64,
    pub(crate) room: Room,
}

/// Combines arrivals.
pub(crate) type PositionBatcher = Batcher<Counting>;

/// One call to the store for a batch.
pub(crate) struct Counting(pub(crate) Arc<Counters>);

impl Work for Counting {
    type Key = EventId;
    type Job = ();
    type Answer = Result<Counted, Error>;

    const NAME: &'static str = "vwr.count";
    /// At a hundred bytes each, ten megabytes.
    const MAX_WAITING: usize = 100_000;
    /// Two concurrent calls could complete in either order.
    const LANES: usize = 1;
    const PATIENCE: Duration = Duration::from_secs(5);

    async fn run(&self, event: EventId, arrivals: Vec<()>) -> Vec<Result<Counted, Error>> {
        let count = u64::try_from(arrivals.len()).unwrap_or(u64::MAX);
        match self.0.add(event, count).await {
            // A client that disconnects now leaves an unused position.
            Ok(AssignedPositions { first, room }) => {
                (first..).zip(arrivals).map(|(position, ())| Ok(Counted { position, room })).collect()
            }
            Err(failure) => {
                let error = refusal(failure, event);
                arrivals.iter().map(|()| Err(error.clone())).collect()
            }
        }
    }
}

/// The next position in line.
pub(crate) async fn next(batcher: &PositionBatcher, event: EventId) -> Result<Counted, Failure> {
    match batcher.ask(event, ()).await {
        Ok(counted) => Ok(counted?),
        Err(BatchError::Full) => Err(Failure::unavailable("too many arrivals are waiting for a position")),
        Err(BatchError::Late) => Err(Failure::unavailable("the counters take too long")),
        Err(BatchError::Aborted) => Err(Failure::unavailable("the call to the counters was aborted")),
    }
}

/// Logged once per batch.
fn refusal(failure: Failure, event: EventId) -> Error {
    match failure {
        Failure::Refused(error) => error,
        Failure::Failed { answer, cause } => {
            tracing::error!(%event, error = urr_telemetry::chain(&*cause), "cannot give positions: the counter store failed; arrivals get 503 and retry");
            answer
        }
    }
}
