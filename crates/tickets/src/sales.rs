//! What tickets remembers of the catalog: a sale's rules for a second, a hall's seats for as long as there is room.

use std::{collections::HashMap, sync::Arc, time::Duration};

use urr_contracts::catalog::{Catalog, Error, FindSeats, Sale, SaleOf, Seat, SeatsOf};
use urr_kernel::{Clock, EventId, SeatId, limits::MAX_SEATS_PER_EVENT};
use urr_rpc::{Ctx, Loading};

/// How old a sale's rules may be. An organiser who cancels an event stops its sale within this time and what a hold that has begun may take.
const SALE_MAX_AGE: Duration = Duration::from_secs(1);

/// Events whose rules, or whose absence, are remembered.
const MAX_SALES: usize = 10_000;

/// Seats never change once made; a day keeps the memory to what is asked for.
const HALL_MAX_AGE: Duration = Duration::from_hours(24);

/// Seats of all remembered halls together: four of the largest, at about 250 bytes a seat 100 MB.
const MAX_SEATS: usize = 4 * MAX_SEATS_PER_EVENT;

/// The seats of one event. They never change once made.
#[derive(Debug)]
pub(crate) struct Hall {
    /// In the order of the hall.
    pub(crate) seats: Vec<Seat>,
    places: HashMap<SeatId, usize>,
}

impl Hall {
    pub(crate) fn new(seats: Vec<Seat>) -> Self {
        let places = seats.iter().enumerate().map(|(place, seat)| (seat.id, place)).collect();
        Self { seats, places }
    }

    pub(crate) fn seat(&self, id: SeatId) -> Option<&Seat> {
        self.places.get(&id).map(|place| &self.seats[*place])
    }
}

/// The catalog as tickets sees it.
pub(crate) struct Sales {
    catalog: Arc<dyn Catalog>,
    rules: Loading<EventId, Sale, Error>,
    halls: Loading<EventId, Hall, Error>,
}

impl Sales {
    pub(crate) fn new(catalog: Arc<dyn Catalog>, clock: Clock) -> Self {
        let no_event = |failure: &Error| *failure == Error::EventNotFound;
        Self {
            catalog,
            rules: Loading::new(clock.clone(), SALE_MAX_AGE, (MAX_SALES, |_| 1), no_event),
            halls: Loading::new(clock, HALL_MAX_AGE, (MAX_SEATS, |hall| hall.seats.len()), |_| false),
        }
    }

    /// The rules of a sale, at most [`SALE_MAX_AGE`] old.
    pub(crate) async fn rules(&self, ctx: &Ctx, event: EventId) -> Result<Arc<Sale>, Error> {
        let load = self.catalog.sale(ctx, SaleOf { event });
        self.rules.get(ctx, event, Error::Unavailable, load).await
    }

    /// The seats of an event.
    pub(crate) async fn hall(&self, ctx: &Ctx, sale: &Sale) -> Result<Arc<Hall>, Error> {
        self.halls.get(ctx, sale.event, Error::Unavailable, self.walk(ctx, sale)).await
    }

    async fn walk(&self, ctx: &Ctx, sale: &Sale) -> Result<Hall, Error> {
        let mut seats: Vec<Seat> = Vec::with_capacity(sale.seats as usize);
        let mut from = Some(0);
        while let Some(start) = from {
            let page = self.catalog.seats(ctx, SeatsOf { event: sale.event, from: start }).await?;
            // A page that does not move on would be asked for ever.
            from = page.next.filter(|next| *next > start && seats.len() <= MAX_SEATS_PER_EVENT);
            seats.extend(page.seats);
        }
        Ok(Hall::new(seats))
    }

    /// Which of `seats` belong to some other event than `event`.
    pub(crate) async fn elsewhere(
        &self,
        ctx: &Ctx,
        event: EventId,
        seats: &[SeatId],
    ) -> Result<Vec<SeatId>, Error> {
        let found = self.catalog.find_seats(ctx, FindSeats { seats: seats.to_vec() }).await?;
        Ok(found.seats.into_iter().filter(|(_, of)| *of != event).map(|(seat, _)| seat).collect())
    }
}
