//! What tickets remembers of the catalog: a sale's rules for a second, a hall's seats for as long as there is room.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use tokio::sync::Mutex;
use urr_contracts::catalog::{Catalog, Sale, SaleOf, Seat, SeatsOf};
use urr_kernel::{Clock, EventId, SeatId, limits::MAX_SEATS_PER_EVENT};
use urr_rpc::Ctx;

use crate::trouble::Trouble;

/// How old a sale's rules may be. An organiser who cancels an event stops its sale within this time.
const SALE_MAX_AGE: Duration = Duration::from_secs(1);

/// Seats of all remembered halls together: four of the largest, at about 250 bytes a seat 100 MB.
const MAX_REMEMBERED_SEATS: usize = 4 * MAX_SEATS_PER_EVENT;

/// Events whose rules are remembered. Past it the memory starts afresh.
const MAX_REMEMBERED_SALES: usize = 10_000;

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
    clock: Clock,
    rules: RwLock<HashMap<EventId, (Duration, Arc<Sale>)>>,
    halls: RwLock<HashMap<EventId, Arc<Hall>>>,
    /// One question at a time: when a thousand buyers find an entry missing, one of them asks.
    asking: Mutex<()>,
}

impl Sales {
    pub(crate) fn new(catalog: Arc<dyn Catalog>, clock: Clock) -> Self {
        Self { catalog, clock, rules: RwLock::default(), halls: RwLock::default(), asking: Mutex::new(()) }
    }

    /// The rules of a sale, at most [`SALE_MAX_AGE`] old.
    pub(crate) async fn rules(&self, ctx: &Ctx, event: EventId) -> Result<Arc<Sale>, Trouble> {
        if let Some(sale) = self.remembered_rules(event) {
            return Ok(sale);
        }
        let _turn = self.asking.lock().await;
        if let Some(sale) = self.remembered_rules(event) {
            return Ok(sale);
        }
        let sale = Arc::new(self.catalog.sale(ctx, SaleOf { event }).await?);
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        if rules.len() >= MAX_REMEMBERED_SALES {
            rules.clear();
        }
        rules.insert(event, (self.clock.ticks(), Arc::clone(&sale)));
        Ok(sale)
    }

    /// The seats of an event.
    pub(crate) async fn hall(&self, ctx: &Ctx, sale: &Sale) -> Result<Arc<Hall>, Trouble> {
        if let Some(hall) = self.remembered_hall(sale.event) {
            return Ok(hall);
        }
        let _turn = self.asking.lock().await;
        if let Some(hall) = self.remembered_hall(sale.event) {
            return Ok(hall);
        }
        let mut seats: Vec<Seat> = Vec::with_capacity(sale.seats as usize);
        let mut from = Some(0);
        while let Some(start) = from {
            let page = self.catalog.seats(ctx, SeatsOf { event: sale.event, from: start }).await?;
            // A page that does not move on would be asked for ever.
            from = page.next.filter(|next| *next > start && seats.len() <= MAX_SEATS_PER_EVENT);
            seats.extend(page.seats);
        }
        let hall = Arc::new(Hall::new(seats));
        self.remember_hall(sale.event, &hall);
        Ok(hall)
    }

    /// Which of `seats` belong to some other event than `event`.
    pub(crate) async fn elsewhere(
        &self,
        ctx: &Ctx,
        event: EventId,
        seats: &[SeatId],
    ) -> Result<Vec<SeatId>, Trouble> {
        let request = urr_contracts::catalog::FindSeats { seats: seats.to_vec() };
        let found = self.catalog.find_seats(ctx, request).await?;
        Ok(found.seats.into_iter().filter(|(_, of)| *of != event).map(|(seat, _)| seat).collect())
    }

    fn remembered_rules(&self, event: EventId) -> Option<Arc<Sale>> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        let (at, sale) = rules.get(&event)?;
        (self.clock.ticks().saturating_sub(*at) < SALE_MAX_AGE).then(|| Arc::clone(sale))
    }

    fn remembered_hall(&self, event: EventId) -> Option<Arc<Hall>> {
        self.halls.read().unwrap_or_else(PoisonError::into_inner).get(&event).cloned()
    }

    fn remember_hall(&self, event: EventId, hall: &Arc<Hall>) {
        let mut halls = self.halls.write().unwrap_or_else(PoisonError::into_inner);
        let remembered: usize = halls.values().map(|hall| hall.seats.len()).sum();
        if remembered + hall.seats.len() > MAX_REMEMBERED_SEATS {
            halls.clear();
        }
        halls.insert(event, Arc::clone(hall));
    }
}
