//! Events: create, list, look up, cancel.

pub(crate) mod routes;
pub(crate) mod rules;
pub(crate) mod store;

use urr_contracts::catalog::{
    CancelEvent, CreateEvent, Error, EventDetail, EventOf, EventsPage, ListEvents, NewTicketType, Sale,
    SaleOf, TicketType,
};
use urr_db::{Tx, transaction};
use urr_kernel::{CommonError, EventId, Ids};
use urr_rpc::Ctx;

use crate::{Failure, halls, service::Service};
use rules::Admission;
use store::NewEvent;

/// Sale window and limits of an event, for the domains that sell its seats.
pub(crate) async fn sale(service: &Service, request: SaleOf) -> Result<Sale, Failure> {
    let sale = service.db.read("catalog.sale", async |tx: &mut Tx<'_>| {
        Ok::<_, Failure>(store::sale(tx, request.event).await?)
    });
    Ok(sale.await?.ok_or(Error::EventNotFound)?)
}

/// One page of events, earliest sale start first.
pub(crate) async fn list(service: &Service, request: &ListEvents) -> Result<EventsPage, Failure> {
    let listing = rules::listing(request)?;
    let now = service.clock.now();
    let found = service.db.read("catalog.events", async |tx: &mut Tx<'_>| {
        Ok::<_, Failure>(store::list(tx, &listing, now).await?)
    });
    let (events, total) = found.await?;
    Ok(EventsPage { events, page: request.page, limit: request.limit, total })
}

/// One event with its ticket types.
pub(crate) async fn detail(service: &Service, request: EventOf) -> Result<EventDetail, Failure> {
    let now = service.clock.now();
    let found = service.db.read("catalog.event", async |tx: &mut Tx<'_>| {
        Ok::<_, Failure>(store::detail(tx, request.event, now).await?)
    });
    Ok(found.await?.ok_or(Error::EventNotFound)?)
}

/// Creates an event with all of its seats or ticket types in one transaction.
pub(crate) async fn create(
    service: &Service,
    ctx: &Ctx,
    request: CreateEvent,
) -> Result<EventDetail, Failure> {
    ctx.require_admin()?;
    let new = plan(service, service.ids.next(), request).await?;
    let created = transaction!(service.db, "catalog.create_event", async |tx: &mut Tx<'_>| {
        store::insert(tx, &new).await?;
        Ok::<_, Failure>(store::detail(tx, new.id, new.at).await?)
    })?;
    Ok(created.ok_or(CommonError::Internal)?)
}

/// Builds all rows of a new event before the transaction starts, so that a retried transaction
/// writes the same rows.
pub(crate) async fn plan(service: &Service, id: EventId, request: CreateEvent) -> Result<NewEvent, Failure> {
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

/// Cancels an event permanently. Idempotent.
pub(crate) async fn cancel(
    service: &Service,
    ctx: &Ctx,
    request: CancelEvent,
) -> Result<EventDetail, Failure> {
    ctx.require_admin()?;
    let now = service.clock.now();
    let found = transaction!(service.db, "catalog.cancel_event", async |tx: &mut Tx<'_>| {
        store::cancel(tx, request.event, now).await?;
        Ok::<_, Failure>(store::detail(tx, request.event, now).await?)
    })?;
    Ok(found.ok_or(Error::EventNotFound)?)
}
