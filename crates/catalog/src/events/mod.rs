//! Events: putting them on the calendar, finding them, calling them off.

pub(crate) mod routes;
pub(crate) mod rules;
pub(crate) mod store;

use urr_contracts::catalog::{
    CancelEvent, CreateEvent, Error, EventDetail, EventOf, EventsPage, ListEvents, NewTicketType, Sale,
    SaleOf, TicketType,
};
use urr_db::{Tx, transaction};
use urr_kernel::{EventId, Ids};
use urr_rpc::Ctx;

use crate::{
    halls,
    service::{Service, admin_only},
    trouble::Trouble,
};
use rules::Admission;
use store::NewEvent;

/// What a sale must know about an event before it claims anything.
pub(crate) async fn sale(service: &Service, request: SaleOf) -> Result<Sale, Trouble> {
    let sale = service.db.read("catalog.sale", async |tx: &mut Tx<'_>| {
        Ok::<_, Trouble>(store::sale(tx, request.event).await?)
    });
    Ok(sale.await?.ok_or(Error::EventNotFound)?)
}

/// A page of events, next sale first.
pub(crate) async fn list(service: &Service, request: &ListEvents) -> Result<EventsPage, Trouble> {
    let listing = rules::listing(request)?;
    let now = service.clock.now();
    let found = service.db.read("catalog.events", async |tx: &mut Tx<'_>| {
        Ok::<_, Trouble>(store::list(tx, &listing, now).await?)
    });
    let (events, total) = found.await?;
    Ok(EventsPage { events, page: request.page, limit: request.limit, total })
}

/// One event.
pub(crate) async fn detail(service: &Service, request: EventOf) -> Result<EventDetail, Trouble> {
    let now = service.clock.now();
    let found = service.db.read("catalog.event", async |tx: &mut Tx<'_>| {
        Ok::<_, Trouble>(store::detail(tx, request.event, now).await?)
    });
    Ok(found.await?.ok_or(Error::EventNotFound)?)
}

/// Puts an event on the calendar with every seat of its hall, or not at all.
pub(crate) async fn create(
    service: &Service,
    ctx: &Ctx,
    request: CreateEvent,
) -> Result<EventDetail, Trouble> {
    admin_only(ctx)?;
    let new = plan(service, service.ids.next(), request).await?;
    let created = transaction!(service.db, "catalog.create_event", async |tx: &mut Tx<'_>| {
        store::insert(tx, &new).await?;
        Ok::<_, Trouble>(store::detail(tx, new.id, new.at).await?)
    })?;
    Ok(created.ok_or(Error::Internal)?)
}

/// Everything that is stored for a new event, made before the transaction so that a second attempt writes the same.
pub(crate) async fn plan(service: &Service, id: EventId, request: CreateEvent) -> Result<NewEvent, Trouble> {
    let (draft, admission) = rules::draft(request)?;
    let at = service.clock.now();
    Ok(match admission {
        Admission::Seated(layout) => {
            let seats = halls::make_seats(service, layout).await?;
            NewEvent { id, draft, layout: Some(layout), seats, ticket_types: Vec::new(), at }
        }
        Admission::Standing(types) => {
            let ticket_types = types.into_iter().map(|new| named(new, &service.ids)).collect();
            NewEvent { id, draft, layout: None, seats: Vec::new(), ticket_types, at }
        }
    })
}

fn named(new: NewTicketType, ids: &Ids) -> TicketType {
    let NewTicketType { name, price, total_quantity, description } = new;
    TicketType { id: ids.next(), name, price, total_quantity, description }
}

/// Takes an event off sale for good. Asking twice is as good as asking once.
pub(crate) async fn cancel(
    service: &Service,
    ctx: &Ctx,
    request: CancelEvent,
) -> Result<EventDetail, Trouble> {
    admin_only(ctx)?;
    let now = service.clock.now();
    let found = transaction!(service.db, "catalog.cancel_event", async |tx: &mut Tx<'_>| {
        store::cancel(tx, request.event, now).await?;
        Ok::<_, Trouble>(store::detail(tx, request.event, now).await?)
    })?;
    Ok(found.ok_or(Error::EventNotFound)?)
}
