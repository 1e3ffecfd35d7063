//! What the line knows of the catalog: what an event is called and whether there is anything to wait for.

use std::{sync::Arc, time::Duration};

use urr_contracts::{
    catalog::{Catalog, Error, EventDetail, EventOf, EventStatus},
    queue::EventInfo,
};
use urr_kernel::{Clock, EventId};
use urr_rpc::{Ctx, Loading};

/// How old what we know of an event may be.
const MAX_AGE: Duration = Duration::from_secs(1);

/// Events, or their absence, that are remembered.
const MAX_EVENTS: usize = 10_000;

/// An event as the line sees it.
pub(crate) struct Known {
    pub(crate) info: EventInfo,
    pub(crate) status: EventStatus,
}

impl From<EventDetail> for Known {
    fn from(detail: EventDetail) -> Self {
        let event = detail.event;
        Self { info: EventInfo { title: event.title, artist: event.artist_name }, status: event.status }
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
