//! Background work: every process refreshes its copy of the rooms, and the lease holder admits
//! visitors.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use urr_contracts::vwr::Room;
use urr_jobs::{BoxError, Outcome, Reconciler};
use urr_kernel::EventId;

use crate::{Failure, counters::LeaseOutcome, room_cache::REFRESH, service::Service};

/// Interval between admissions.
const TURN: Duration = Duration::from_secs(1);

/// Timeout of a refresh or an advance; the next one follows soon.
const PATIENCE: Duration = Duration::from_secs(3);

/// Rooms processed concurrently.
const AT_ONCE: usize = 16;

/// Refreshes the copy of every room.
pub(crate) struct Look(pub(crate) Arc<Service>);

#[async_trait]
impl Reconciler for Look {
    fn name(&self) -> &'static str {
        "vwr.look"
    }

    fn period(&self) -> Duration {
        REFRESH
    }

    fn time_limit(&self) -> Duration {
        PATIENCE
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        self.0.refresh().await?;
        Ok(Outcome::done(0))
    }
}

/// Admits visitors in every room whose lease this process holds.
pub(crate) struct Advance {
    service: Arc<Service>,
    /// Lease terms by room.
    terms: Mutex<HashMap<EventId, u64>>,
}

impl Advance {
    pub(crate) fn new(service: Arc<Service>) -> Self {
        Self { service, terms: Mutex::default() }
    }

    /// Admits visitors in one room. Returns their number.
    async fn turn(&self, room: Room) -> Result<u64, Failure> {
        let term = self.terms.lock().unwrap_or_else(PoisonError::into_inner).get(&room.event).copied();
        let turn = self.service.counters.advance(room.event, self.service.worker, term).await?;
        let mut terms = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
        match turn {
            LeaseOutcome::Ours { term, room: after } => {
                terms.insert(room.event, term);
                drop(terms);
                self.service.room_cache.put(after);
                Ok(after.serving.saturating_sub(room.serving))
            }
            LeaseOutcome::Theirs => {
                terms.remove(&room.event);
                Ok(0)
            }
        }
    }
}

#[async_trait]
impl Reconciler for Advance {
    fn name(&self) -> &'static str {
        "vwr.advance"
    }

    fn period(&self) -> Duration {
        TURN
    }

    fn time_limit(&self) -> Duration {
        PATIENCE
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        let open = self.service.room_cache.rooms().into_iter().filter(|room| room.active);
        let turns = stream::iter(open).map(|room| self.turn(room)).buffer_unordered(AT_ONCE);
        // A failing room does not delay the others.
        let turns: Vec<Result<u64, Failure>> = turns.collect().await;
        let mut let_on = 0;
        let mut failed = None;
        for turn in turns {
            match turn {
                Ok(count) => let_on += count,
                Err(trouble) => failed = Some(trouble),
            }
        }
        metrics::counter!("urr_vwr_served_total").increment(let_on);
        failed.map_or(Ok(Outcome::done(let_on)), |trouble| Err(trouble.into()))
    }
}
