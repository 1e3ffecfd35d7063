//! The service and its implementation of [`Catalog`]. Each method delegates to a slice.

use std::sync::Arc;

use async_trait::async_trait;
use axum::extract::FromRef;
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

/// State of the route handlers.
#[derive(Clone)]
pub(crate) struct Api(pub(crate) Arc<Service>);

impl FromRef<Api> for Clock {
    fn from_ref(api: &Api) -> Self {
        api.0.clock.clone()
    }
}

impl FromRef<Api> for Ids {
    fn from_ref(api: &Api) -> Self {
        api.0.ids.clone()
    }
}

/// Returns `AdminRequired` unless the caller is an admin. Every method that changes events calls
/// this first.
pub(crate) fn admin_only(ctx: &Ctx) -> Result<(), Error> {
    if ctx.actor.is_admin() { Ok(()) } else { Err(Error::AdminRequired) }
}

#[async_trait]
impl Catalog for Service {
    async fn sale(&self, ctx: &Ctx, request: SaleOf) -> Result<Sale, Error> {
        events::sale(self, request).await.map_err(|trouble| trouble.reveal(ctx, "sale"))
    }

    async fn seats(&self, ctx: &Ctx, request: SeatsOf) -> Result<SeatsPage, Error> {
        halls::seats(self, request).await.map_err(|trouble| trouble.reveal(ctx, "seats"))
    }

    async fn find_seats(&self, ctx: &Ctx, request: FindSeats) -> Result<FoundSeats, Error> {
        halls::find_seats(self, &request).await.map_err(|trouble| trouble.reveal(ctx, "find_seats"))
    }

    async fn events(&self, ctx: &Ctx, request: ListEvents) -> Result<EventsPage, Error> {
        events::list(self, &request).await.map_err(|trouble| trouble.reveal(ctx, "events"))
    }

    async fn event(&self, ctx: &Ctx, request: EventOf) -> Result<EventDetail, Error> {
        events::detail(self, request).await.map_err(|trouble| trouble.reveal(ctx, "event"))
    }

    async fn layouts(&self, ctx: &Ctx, _: ListLayouts) -> Result<Layouts, Error> {
        halls::layouts(self, ctx).await.map_err(|trouble| trouble.reveal(ctx, "layouts"))
    }

    async fn create_event(&self, ctx: &Ctx, request: CreateEvent) -> Result<EventDetail, Error> {
        events::create(self, ctx, request).await.map_err(|trouble| trouble.reveal(ctx, "create_event"))
    }

    async fn cancel_event(&self, ctx: &Ctx, request: CancelEvent) -> Result<EventDetail, Error> {
        events::cancel(self, ctx, request).await.map_err(|trouble| trouble.reveal(ctx, "cancel_event"))
    }
}
