//! The queue's view of the catalog: titles, and whether a sale is open, upcoming or over.

use std::{sync::Arc, time::Duration};

use urr_contracts::{
    catalog::{Catalog, Error, EventDetail, EventOf, EventStatus},
    queue::{self, EventInfo},
};
use urr_kernel::{Clock, CommonError, EventId, Timestamp};
use urr_rpc::{Ctx, SingleFlightCache};

/// Longest time for which an event is cached.
const MAX_AGE: Duration = Duration::from_secs(1);

/// Most events cached, including ones that do not exist.
const MAX_EVENTS: usize = 10_000;

/// An event as cached here.
pub(crate) struct CachedEvent {
    pub(crate) info: EventInfo,
    pub(crate) status: EventStatus,
    pub(crate) sale_start_at: Timestamp,
}

impl CachedEvent {
    /// When the sale begins, if it has not.
    pub(crate) fn opens_at(&self) -> Option<Timestamp> {
        (self.status == EventStatus::Upcoming).then_some(self.sale_start_at)
    }

    /// The error to return if the sale is over or cancelled.
    pub(crate) fn is_over(&self) -> Option<queue::Error> {
        match self.status {
            EventStatus::Cancelled => Some(queue::Error::EventCancelled),
            EventStatus::Ended => Some(queue::Error::SaleEnded),
            EventStatus::Upcoming | EventStatus::OnSale => None,
        }
    }
}

impl From<EventDetail> for CachedEvent {
    fn from(detail: EventDetail) -> Self {
        let event = detail.event;
        let info = EventInfo { title: event.title, artist: event.artist_name };
        Self { info, status: event.status, sale_start_at: event.sale_start_at }
    }
}

/// Cache in front of the catalog.
pub(crate) struct Events {
    catalog: Arc<dyn Catalog>,
    known: SingleFlightCache<EventId, CachedEvent, Error>,
}

impl Events {
    pub(crate) fn new(catalog: Arc<dyn Catalog>, clock: Clock) -> Self {
        let no_event = |failure: &Error| *failure == Error::EventNotFound;
        Self { catalog, known: SingleFlightCache::new(clock, MAX_AGE, (MAX_EVENTS, |_| 1), no_event) }
    }

    /// The event, at most a second old. `None` if the catalog is unreachable, which must not cost
    /// users their position.
    pub(crate) async fn get(
        &self,
        ctx: &Ctx,
        event: EventId,
    ) -> Result<Option<Arc<CachedEvent>>, queue::Error> {
        let load = async { self.catalog.event(ctx, EventOf { event }).await.map(CachedEvent::from) };
        match self.known.get(ctx, event, Error::Common(CommonError::Unavailable), load).await {
            Ok(known) => Ok(Some(known)),
            Err(Error::EventNotFound) => Err(queue::Error::EventNotFound),
            Err(error) => {
                tracing::warn!(%event, %error, "catalog unreachable: waiting users keep their positions, newcomers get 503, admissions for this event stop");
                Ok(None)
            }
        }
    }
}
