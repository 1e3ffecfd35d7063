//! What the line knows of the catalog: what an event is called and whether there is anything to wait for.

use std::{sync::Arc, time::Duration};

use urr_contracts::{
    catalog::{Catalog, Error, EventDetail, EventOf, EventStatus},
    queue::{self, EventInfo},
};
use urr_kernel::{Clock, EventId, Timestamp};
use urr_rpc::{Ctx, Loading};

/// How old what we know of an event may be.
const MAX_AGE: Duration = Duration::from_secs(1);

/// Events, or their absence, that are remembered.
const MAX_EVENTS: usize = 10_000;

/// An event as the line sees it.
pub(crate) struct Known {
    pub(crate) info: EventInfo,
    pub(crate) status: EventStatus,
    pub(crate) sale_start_at: Timestamp,
}

impl Known {
    /// When the sale begins, if it has not.
    pub(crate) fn opens_at(&self) -> Option<Timestamp> {
        (self.status == EventStatus::Upcoming).then_some(self.sale_start_at)
    }

    /// Why there is nothing to wait for, if there is not.
    pub(crate) fn is_over(&self) -> Option<queue::Error> {
        match self.status {
            EventStatus::Cancelled => Some(queue::Error::EventCancelled),
            EventStatus::Ended => Some(queue::Error::SaleEnded),
            EventStatus::Upcoming | EventStatus::OnSale => None,
        }
    }
}

impl From<EventDetail> for Known {
    fn from(detail: EventDetail) -> Self {
        let event = detail.event;
        let info = EventInfo { title: event.title, artist: event.artist_name };
        Self { info, status: event.status, sale_start_at: event.sale_start_at }
    }
}

/// The catalog as the line sees it.
pub(crate) struct Events {
    catalog: Arc<dyn Catalog>,
    known: Loading<EventId, Known, Error>,
}

impl Events {
    pub(crate) fn new(catalog: Arc<dyn Catalog>, clock: Clock) -> Self {
        let no_event = |failure: &Error| *failure == Error::EventNotFound;
        Self { catalog, known: Loading::new(clock, MAX_AGE, (MAX_EVENTS, |_| 1), no_event) }
    }

    /// What the catalog says of an event, at most a second ago. `None`: it cannot be asked, which is no reason to lose a place.
    pub(crate) async fn get(&self, ctx: &Ctx, event: EventId) -> Result<Option<Arc<Known>>, Error> {
        let load = async { self.catalog.event(ctx, EventOf { event }).await.map(Known::from) };
        match self.known.get(ctx, event, Error::Unavailable, load).await {
            Ok(known) => Ok(Some(known)),
            Err(Error::EventNotFound) => Err(Error::EventNotFound),
            Err(error) => {
                tracing::warn!(%event, %error, "the catalog cannot be asked about an event");
                Ok(None)
            }
        }
    }
}
