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
    CancelEvent, Catalog, CreateEvent, Error, EventDetail, EventOf, EventStatus, EventSummary, EventsPage,
    FindSeats, FoundSeats, Layouts, ListEvents, ListLayouts, Sale, SaleOf, SeatsOf, SeatsPage,
};
use urr_kernel::{CommonError, EventId, Timestamp};
use urr_rpc::Ctx;

#[derive(Default)]
pub(crate) struct HandMade {
    events: Mutex<HashMap<EventId, EventStatus>>,
    /// Whether it returns `Unavailable`.
    pub(crate) away: AtomicBool,
}

impl HandMade {
    pub(crate) fn put(&self, event: EventId, status: EventStatus) {
        self.events.lock().unwrap().insert(event, status);
    }
}

#[async_trait]
impl Catalog for HandMade {
    async fn event(&self, _: &Ctx, request: EventOf) -> Result<EventDetail, Error> {
        if self.away.load(Ordering::Relaxed) {
            return Err(Error::Common(CommonError::Unavailable));
        }
        let status = *self.events.lock().unwrap().get(&request.event).ok_or(Error::EventNotFound)?;
        let at = Timestamp::from_micros(1_790_000_000_000_000);
        let event = EventSummary {
            id: request.event,
            title: "A night in the crowd".into(),
            description: None,
            venue: "The big hall".into(),
            address: None,
            artist_name: Some("The Crowd".into()),
            event_at: at.after(Duration::from_hours(24)),
            sale_start_at: at,
            sale_end_at: at.after(Duration::from_hours(1)),
            poster_image_url: None,
            status,
            layout: None,
            min_price: None,
            max_price: None,
            ticket_type_count: 0,
            places: 0,
            places_reserved: 0,
        };
        Ok(EventDetail {
            event,
            max_seats_per_reservation: 4,
            max_seats_per_user: 4,
            ticket_types: Vec::new(),
            created_at: at,
            updated_at: at,
        })
    }

    async fn sale(&self, _: &Ctx, _: SaleOf) -> Result<Sale, Error> {
        unreachable!("the queue only reads single events")
    }

    async fn seats(&self, _: &Ctx, _: SeatsOf) -> Result<SeatsPage, Error> {
        unreachable!("the queue reads no seats")
    }

    async fn find_seats(&self, _: &Ctx, _: FindSeats) -> Result<FoundSeats, Error> {
        unreachable!("the queue reads no seats")
    }

    async fn events(&self, _: &Ctx, _: ListEvents) -> Result<EventsPage, Error> {
        unreachable!("the queue does not list events")
    }

    async fn layouts(&self, _: &Ctx, _: ListLayouts) -> Result<Layouts, Error> {
        unreachable!("the queue does not list layouts")
    }

    async fn create_event(&self, _: &Ctx, _: CreateEvent) -> Result<EventDetail, Error> {
        unreachable!("the queue does not create events")
    }

    async fn cancel_event(&self, _: &Ctx, _: CancelEvent) -> Result<EventDetail, Error> {
        unreachable!("the queue does not cancel events")
    }
}
