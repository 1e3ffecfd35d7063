//! The service and its implementation of [`Catalog`]. Each method delegates to a slice.

use async_trait::async_trait;
use urr_contracts::catalog::{
    CancelEvent, Catalog, CreateEvent, Error, EventDetail, EventOf, EventsPage, FindSeats, FoundSeats,
    Layouts, ListEvents, ListLayouts, Sale, SaleOf, SeatsOf, SeatsPage,
};
use urr_db::Db;
use urr_kernel::{Clock, Ids};
use urr_rpc::Ctx;

use crate::{events, halls};

/// Dependencies of the service.
pub struct Parts {
    /// Database of the catalog; no other domain uses it.
    pub db: Db,
    /// The clock.
    pub clock: Clock,
    /// Generator of new ids.
    pub ids: Ids,
}

/// The catalog service running in this process.
pub struct Service {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
}

impl Service {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { db, clock, ids } = parts;
        Self { db, clock, ids }
    }
}

#[async_trait]
impl Catalog for Service {
    async fn sale(&self, ctx: &Ctx, request: SaleOf) -> Result<Sale, Error> {
        ctx.answer("sale", events::sale(self, request).await)
    }

    async fn seats(&self, ctx: &Ctx, request: SeatsOf) -> Result<SeatsPage, Error> {
        ctx.answer("seats", halls::seats(self, request).await)
    }

    async fn find_seats(&self, ctx: &Ctx, request: FindSeats) -> Result<FoundSeats, Error> {
        ctx.answer("find_seats", halls::find_seats(self, &request).await)
    }

    async fn events(&self, ctx: &Ctx, request: ListEvents) -> Result<EventsPage, Error> {
        ctx.answer("events", events::list(self, &request).await)
    }

    async fn event(&self, ctx: &Ctx, request: EventOf) -> Result<EventDetail, Error> {
        ctx.answer("event", events::detail(self, request).await)
    }

    async fn layouts(&self, ctx: &Ctx, _: ListLayouts) -> Result<Layouts, Error> {
        ctx.answer("layouts", halls::layouts(self, ctx).await)
    }

    async fn create_event(&self, ctx: &Ctx, request: CreateEvent) -> Result<EventDetail, Error> {
        ctx.answer("create_event", events::create(self, ctx, request).await)
    }

    async fn cancel_event(&self, ctx: &Ctx, request: CancelEvent) -> Result<EventDetail, Error> {
        ctx.answer("cancel_event", events::cancel(self, ctx, request).await)
    }
}
