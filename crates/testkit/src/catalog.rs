//! A catalog whose events the test sets.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use urr_contracts::catalog::{
    CancelEvent, Catalog, CreateEvent, Error, EventCard, EventDetail, EventOf, EventStatus, EventSummary,
    EventsPage, FindSeats, FoundSeats, Layouts, ListEvents, ListLayouts, Sale, SaleOf, Seat, SeatsOf,
    SeatsPage,
};
use urr_kernel::{
    CommonError, EventId, Timestamp,
    limits::{MAX_SEATS_PER_RESERVATION, MAX_SEATS_PER_USER},
};
use urr_rpc::Ctx;

/// A catalog in memory. It serves single events, sales and seats; other methods return `Internal`.
#[derive(Default)]
pub struct FakeCatalog {
    events: Mutex<HashMap<EventId, Event>>,
    is_down: AtomicBool,
    time_left: Mutex<Duration>,
}

struct Event {
    sale: Sale,
    seats: Vec<Seat>,
    status: EventStatus,
}

impl FakeCatalog {
    /// Adds or replaces an event on sale between these times, with these seats.
    pub fn put(&self, event: EventId, (from, until): (Timestamp, Timestamp), seats: Vec<Seat>) {
        let sale = Sale {
            event,
            card: EventCard {
                title: "A night in the crowd".into(),
                venue: "The big hall".into(),
                address: Some("1 Crowd Street, Seoul".into()),
                event_at: until.after(Duration::from_hours(1)),
            },
            cancelled: false,
            sale_start_at: from,
            sale_end_at: until,
            max_seats_per_reservation: MAX_SEATS_PER_RESERVATION,
            max_seats_per_user: MAX_SEATS_PER_USER,
            seats: u32::try_from(seats.len()).expect("a test has few seats"),
        };
        self.events().insert(event, Event { sale, seats, status: EventStatus::OnSale });
    }

    /// Sets the status of an event, and adds it if it is missing.
    pub fn set_status(&self, event: EventId, status: EventStatus) {
        let now = Timestamp::from_micros(1_790_000_000_000_000);
        if !self.events().contains_key(&event) {
            self.put(event, (now, now.after(Duration::from_hours(1))), Vec::new());
        }
        self.change(event, |known| known.status = status);
    }

    /// Changes what is sold.
    ///
    /// # Panics
    ///
    /// If the event is unknown.
    pub fn change_sale(&self, event: EventId, change: impl FnOnce(&mut Sale)) {
        self.change(event, |known| change(&mut known.sale));
    }

    /// Cancels an event.
    ///
    /// # Panics
    ///
    /// If the event is unknown.
    pub fn cancel(&self, event: EventId) {
        self.change_sale(event, |sale| sale.cancelled = true);
    }

    /// Makes requests for an event or its sale fail, or succeed again.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    /// The time that the last request for a sale had left.
    pub fn time_left(&self) -> Duration {
        *self.time_left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn events(&self) -> MutexGuard<'_, HashMap<EventId, Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, event: EventId, change: impl FnOnce(&mut Event)) {
        change(self.events().get_mut(&event).expect("the event is known"));
    }

    fn read<T>(&self, event: EventId, read: impl FnOnce(&Event) -> T) -> Result<T, Error> {
        if self.is_down.load(Ordering::SeqCst) {
            return Err(Error::Common(CommonError::Unavailable));
        }
        self.events().get(&event).map(read).ok_or(Error::EventNotFound)
    }
}

#[async_trait]
impl Catalog for FakeCatalog {
    async fn sale(&self, ctx: &Ctx, request: SaleOf) -> Result<Sale, Error> {
        *self.time_left.lock().unwrap_or_else(PoisonError::into_inner) = ctx.remaining();
        self.read(request.event, |known| known.sale.clone())
    }

    async fn event(&self, _: &Ctx, request: EventOf) -> Result<EventDetail, Error> {
        self.read(request.event, |known| detail(&known.sale, known.status))
    }

    async fn seats(&self, _: &Ctx, request: SeatsOf) -> Result<SeatsPage, Error> {
        let events = self.events();
        let seats = &events.get(&request.event).ok_or(Error::EventNotFound)?.seats;
        // Two seats per page, so that every test reads several pages.
        let from = request.from as usize;
        let page: Vec<Seat> = seats.iter().skip(from).take(2).cloned().collect();
        let next = (from + page.len() < seats.len()).then(|| request.from + 2);
        Ok(SeatsPage { seats: page, next })
    }

    async fn find_seats(&self, _: &Ctx, request: FindSeats) -> Result<FoundSeats, Error> {
        let events = self.events();
        let known = events.iter().flat_map(|(event, known)| known.seats.iter().map(|seat| (seat.id, *event)));
        Ok(FoundSeats { seats: known.filter(|(seat, _)| request.seats.contains(seat)).collect() })
    }

    async fn events(&self, _: &Ctx, _: ListEvents) -> Result<EventsPage, Error> {
        Err(Error::Common(CommonError::Internal))
    }

    async fn layouts(&self, _: &Ctx, _: ListLayouts) -> Result<Layouts, Error> {
        Err(Error::Common(CommonError::Internal))
    }

    async fn create_event(&self, _: &Ctx, _: CreateEvent) -> Result<EventDetail, Error> {
        Err(Error::Common(CommonError::Internal))
    }

    async fn cancel_event(&self, _: &Ctx, _: CancelEvent) -> Result<EventDetail, Error> {
        Err(Error::Common(CommonError::Internal))
    }
}

fn detail(sale: &Sale, status: EventStatus) -> EventDetail {
    let Sale { card, .. } = sale;
    let event = EventSummary {
        id: sale.event,
        title: card.title.clone(),
        description: None,
        venue: card.venue.clone(),
        address: card.address.clone(),
        artist_name: Some("The Crowd".into()),
        event_at: card.event_at,
        sale_start_at: sale.sale_start_at,
        sale_end_at: sale.sale_end_at,
        poster_image_url: None,
        status,
        layout: None,
        min_price: None,
        max_price: None,
        ticket_type_count: 0,
        places: 0,
        places_reserved: 0,
    };
    EventDetail {
        event,
        max_seats_per_reservation: sale.max_seats_per_reservation,
        max_seats_per_user: sale.max_seats_per_user,
        ticket_types: Vec::new(),
        created_at: sale.sale_start_at,
        updated_at: sale.sale_start_at,
    }
}
