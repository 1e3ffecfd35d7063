//! A fake catalog.

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use urr_contracts::catalog::{
    self, CancelEvent, Catalog, CreateEvent, EventDetail, EventOf, EventsPage, FindSeats, FoundSeats,
    Layouts, ListEvents, ListLayouts, Sale, SaleOf, Seat, SeatsOf, SeatsPage,
};
use urr_kernel::{CommonError, EventId};
use urr_rpc::Ctx;

/// A catalog whose events are set by the tests.
#[derive(Default)]
pub(crate) struct HandMade {
    pub(super) events: Mutex<HashMap<EventId, (Sale, Vec<Seat>)>>,
    away: AtomicBool,
    /// Time left in the context of the last request for a sale.
    patience: Mutex<Duration>,
}

impl HandMade {
    /// Makes requests for a sale fail, or succeed again.
    pub(crate) fn away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    /// Returns the time that the last request for a sale had left.
    pub(crate) fn patience(&self) -> Duration {
        *self.patience.lock().unwrap()
    }

    pub(crate) fn cancel(&self, event: EventId) {
        self.events.lock().unwrap().get_mut(&event).unwrap().0.cancelled = true;
    }
}

#[async_trait]
impl Catalog for HandMade {
    async fn sale(&self, ctx: &Ctx, request: SaleOf) -> Result<Sale, catalog::Error> {
        *self.patience.lock().unwrap() = ctx.remaining();
        if self.away.load(Ordering::SeqCst) {
            return Err(catalog::Error::Common(CommonError::Unavailable));
        }
        let events = self.events.lock().unwrap();
        events.get(&request.event).map(|(sale, _)| sale.clone()).ok_or(catalog::Error::EventNotFound)
    }

    async fn seats(&self, _: &Ctx, request: SeatsOf) -> Result<SeatsPage, catalog::Error> {
        let events = self.events.lock().unwrap();
        let (_, seats) = events.get(&request.event).ok_or(catalog::Error::EventNotFound)?;
        // Two seats per page, so that every test reads several pages.
        let from = request.from as usize;
        let page: Vec<Seat> = seats.iter().skip(from).take(2).cloned().collect();
        let next = (from + page.len() < seats.len()).then(|| request.from + 2);
        Ok(SeatsPage { seats: page, next })
    }

    async fn find_seats(&self, _: &Ctx, request: FindSeats) -> Result<FoundSeats, catalog::Error> {
        let events = self.events.lock().unwrap();
        let known = events.iter().flat_map(|(event, (_, seats))| seats.iter().map(|seat| (seat.id, *event)));
        Ok(FoundSeats { seats: known.filter(|(seat, _)| request.seats.contains(seat)).collect() })
    }

    async fn events(&self, _: &Ctx, _: ListEvents) -> Result<EventsPage, catalog::Error> {
        unreachable!("tickets never lists events")
    }

    async fn event(&self, _: &Ctx, _: EventOf) -> Result<EventDetail, catalog::Error> {
        unreachable!("tickets never reads event details")
    }

    async fn layouts(&self, _: &Ctx, _: ListLayouts) -> Result<Layouts, catalog::Error> {
        unreachable!("tickets never lists layouts")
    }

    async fn create_event(&self, _: &Ctx, _: CreateEvent) -> Result<EventDetail, catalog::Error> {
        unreachable!("tickets never creates events")
    }

    async fn cancel_event(&self, _: &Ctx, _: CancelEvent) -> Result<EventDetail, catalog::Error> {
        unreachable!("tickets never cancels events")
    }
}
