//! Test fixture: a catalog on the chosen database and transport, with a fixed clock.

use std::{sync::Arc, time::Duration};

use urr_catalog::{Parts, Service};
use urr_contracts::catalog::{
    self, Catalog, CreateEvent, EventDetail, EventOf, EventStatus, EventsPage, Layout, ListEvents,
    ListLayouts, NewTicketType,
};
use urr_db::Db;
use urr_kernel::{Actor, Clock, EventId, Ids, Krw, Role, Timestamp};
use urr_rpc::{Ctx, REQUEST_BUDGET};
use urr_testkit::{DbKind, STORY_LIMIT, Transport, fixed, serve_internal, within};

pub(crate) const HOUR: Duration = Duration::from_hours(1);

pub(crate) struct World {
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) service: Arc<Service>,
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    _dir: Option<tempfile::TempDir>,
}

impl World {
    /// Runs a story. Skips it, with a warning from testkit, if a store it needs is not available.
    pub(crate) async fn run(kinds: (DbKind, Transport), story: impl AsyncFnOnce(&World)) {
        if let Some(world) = Self::new(kinds).await {
            within(STORY_LIMIT, story(&world)).await;
        }
    }

    async fn new((db, transport): (DbKind, Transport)) -> Option<Self> {
        let (clock, ids) = fixed();
        let (dir, db) = db.open(&urr_catalog::DOMAIN).await?;
        let service = urr_catalog::build(Parts { db: db.clone(), clock: clock.clone(), ids: ids.clone() });
        let local = Arc::clone(&service) as Arc<dyn Catalog>;
        let catalog: Arc<dyn Catalog> = match transport {
            Transport::Local => local,
            Transport::Remote => {
                let routes = catalog::internal_routes(local, clock.clone(), ids.clone());
                Arc::new(serve_internal(routes, &clock).await)
            }
        };
        Some(Self { catalog, service, db, clock, ids, _dir: dir })
    }

    pub(crate) fn admin(&self) -> Ctx {
        self.ctx(Actor::User { id: self.ids.next(), role: Role::Admin })
    }

    pub(crate) fn buyer(&self) -> Ctx {
        self.ctx(Actor::User { id: self.ids.next(), role: Role::User })
    }

    pub(crate) fn anonymous(&self) -> Ctx {
        self.ctx(Actor::Anonymous)
    }

    fn ctx(&self, actor: Actor) -> Ctx {
        Ctx::new(self.ids.next(), actor, self.clock.clone(), REQUEST_BUDGET)
    }

    /// A hall inserted by the first migration, by name.
    pub(crate) async fn hall(&self, name: &str) -> Layout {
        let halls = self.catalog.layouts(&self.admin(), ListLayouts {}).await.unwrap().layouts;
        halls.into_iter().find(|hall| hall.name == name).unwrap()
    }

    /// A standing event. Its sale started an hour ago and ends in an hour; the performance is in
    /// two hours.
    pub(crate) fn standing(&self, title: &str) -> CreateEvent {
        let now = self.clock.now();
        CreateEvent {
            title: title.to_owned(),
            description: None,
            venue: "차고지 라이브홀".to_owned(),
            address: None,
            artist_name: None,
            event_at: now.after(2 * HOUR),
            sale_start_at: now.before(HOUR),
            sale_end_at: now.after(HOUR),
            poster_image_url: None,
            layout: None,
            ticket_types: vec![ticket_type("스탠딩", 88_000, 500)],
            max_seats_per_reservation: None,
            max_seats_per_user: None,
        }
    }

    /// The same event in a hall with seats.
    pub(crate) async fn seated(&self, title: &str, hall: &str) -> CreateEvent {
        let layout = Some(self.hall(hall).await.id);
        CreateEvent { layout, ticket_types: Vec::new(), ..self.standing(title) }
    }

    pub(crate) async fn create(&self, request: CreateEvent) -> EventDetail {
        self.catalog.create_event(&self.admin(), request).await.unwrap()
    }

    pub(crate) async fn event(&self, event: EventId) -> EventDetail {
        self.catalog.event(&self.anonymous(), EventOf { event }).await.unwrap()
    }

    pub(crate) async fn list(&self, request: ListEvents) -> Result<EventsPage, catalog::Error> {
        self.catalog.events(&self.anonymous(), request).await
    }

    /// Titles of the first 100 matching events.
    pub(crate) async fn titles(&self, status: Option<EventStatus>, search: Option<&str>) -> Vec<String> {
        let request = ListEvents { status, search: search.map(str::to_owned), page: 1, limit: 100 };
        self.list(request).await.unwrap().events.into_iter().map(|event| event.title).collect()
    }

    pub(crate) async fn count(&self) -> u32 {
        self.list(ListEvents { page: 1, limit: 1, ..ListEvents::default() }).await.unwrap().total
    }

    /// Advances the clock to `at`.
    pub(crate) fn go_to(&self, at: Timestamp) {
        self.clock.advance(at.since(self.clock.now()));
    }
}

pub(crate) fn ticket_type(name: &str, won: i64, total_quantity: u32) -> NewTicketType {
    let description = String::new();
    NewTicketType { name: name.to_owned(), price: Krw::new(won).unwrap(), total_quantity, description }
}
