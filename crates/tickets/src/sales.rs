//! Cache of catalog data: sale rules for one second, seats of a hall while there is room.

use std::{collections::HashMap, sync::Arc, time::Duration};

use urr_contracts::{
    catalog::{Catalog, Error, FindSeats, Sale, SaleOf, Seat, SeatsOf},
    tickets,
};
use urr_kernel::{Clock, CommonError, EventId, SeatId, limits::MAX_SEATS_PER_EVENT};
use urr_rpc::{Ctx, SingleFlightCache};

use crate::Failure;

/// Maximum age of cached sale rules. A cancelled event stops selling within this time, plus the
/// time of holds already in progress.
const SALE_MAX_AGE: Duration = Duration::from_secs(1);

/// Events whose rules, or whose absence, are cached.
const MAX_SALES: usize = 10_000;

/// Seats never change, so this only evicts halls that are no longer requested.
const HALL_MAX_AGE: Duration = Duration::from_hours(24);

/// Seats of all cached halls together: four of the largest. At about 250 bytes a seat this is 100
/// MB.
const MAX_SEATS: usize = 4 * MAX_SEATS_PER_EVENT;

/// The seats of one event. They never change.
#[derive(Debug)]
pub(crate) struct EventSeats {
    /// In the order of the seat plan.
    pub(crate) seats: Vec<Seat>,
    index: HashMap<SeatId, usize>,
}

impl EventSeats {
    pub(crate) fn new(seats: Vec<Seat>) -> Self {
        let index = seats.iter().enumerate().map(|(at, seat)| (seat.id, at)).collect();
        Self { seats, index }
    }

    pub(crate) fn seat(&self, id: SeatId) -> Option<&Seat> {
        self.index.get(&id).map(|at| &self.seats[*at])
    }
}

/// Cached access to the catalog.
pub(crate) struct Sales {
    catalog: Arc<dyn Catalog>,
    rules: SingleFlightCache<EventId, Sale, Error>,
    halls: SingleFlightCache<EventId, EventSeats, Error>,
}

impl Sales {
    pub(crate) fn new(catalog: Arc<dyn Catalog>, clock: Clock) -> Self {
        let no_event = |failure: &Error| *failure == Error::EventNotFound;
        Self {
            catalog,
            rules: SingleFlightCache::new(clock.clone(), SALE_MAX_AGE, (MAX_SALES, |_| 1), no_event),
            halls: SingleFlightCache::new(clock, HALL_MAX_AGE, (MAX_SEATS, |hall| hall.seats.len()), |_| {
                false
            }),
        }
    }

    /// Returns the rules of a sale, at most [`SALE_MAX_AGE`] old.
    pub(crate) async fn rules(&self, ctx: &Ctx, event: EventId) -> Result<Arc<Sale>, Failure> {
        let load = self.catalog.sale(ctx, SaleOf { event });
        self.rules.get(ctx, event, Error::Common(CommonError::Unavailable), load).await.map_err(failure)
    }

    /// Returns the seats of an event.
    pub(crate) async fn hall(&self, ctx: &Ctx, sale: &Sale) -> Result<Arc<EventSeats>, Failure> {
        let hall =
            self.halls.get(ctx, sale.event, Error::Common(CommonError::Unavailable), self.walk(ctx, sale));
        hall.await.map_err(failure)
    }

    async fn walk(&self, ctx: &Ctx, sale: &Sale) -> Result<EventSeats, Error> {
        let mut seats: Vec<Seat> = Vec::with_capacity(sale.seats as usize);
        let mut from = Some(0);
        while let Some(start) = from {
            let page = self.catalog.seats(ctx, SeatsOf { event: sale.event, from: start }).await?;
            // Stop if the catalog returns a page that does not advance; otherwise this would loop
            // forever.
            from = page.next.filter(|next| *next > start && seats.len() <= MAX_SEATS_PER_EVENT);
            seats.extend(page.seats);
        }
        Ok(EventSeats::new(seats))
    }

    /// Returns those of `seats` that belong to an event other than `event`.
    pub(crate) async fn elsewhere(
        &self,
        ctx: &Ctx,
        event: EventId,
        seats: &[SeatId],
    ) -> Result<Vec<SeatId>, Failure> {
        let found =
            self.catalog.find_seats(ctx, FindSeats { seats: seats.to_vec() }).await.map_err(failure)?;
        Ok(found.seats.into_iter().filter(|(_, of)| *of != event).map(|(seat, _)| seat).collect())
    }
}

fn failure(error: Error) -> Failure {
    error.into_failure(tickets::Error::EventNotFound)
}
