//! SQL for events, and the mapping of their rows.

use urr_contracts::catalog::{EventCard, EventDetail, EventSummary, Sale, Seat, TicketType};
use urr_db::{Error, Row, Tx, statements};
use urr_kernel::{EventId, Krw, LayoutId, Timestamp};

use super::rules::{self, Draft, Listing};
use crate::halls;

statements! {
    /// Returns a row if the table is not empty.
    ANY = "select 1 from events limit 1";

    /// Sale window and limits of an event.
    SALE = "
        select title, cancelled_at, sale_start_at, sale_end_at, max_seats_per_reservation, max_seats_per_user, seats,
               venue, address, event_at
          from events where id = $1";

    /// One event.
    GET = "
        select id, title, description, venue, address, artist_name, event_at, sale_start_at, sale_end_at,
               poster_image_url, cancelled_at, layout_id, min_price_krw, max_price_krw, ticket_type_count, places,
               reserved, max_seats_per_reservation, max_seats_per_user, created_at, updated_at
          from events join event_places on event_places.event_id = events.id
         where id = $1";

    /// One page of events, earliest sale start first. The CASE duplicates `rules::status`; the test
    /// suite compares them.
    LIST = "
        select id, title, description, venue, address, artist_name, event_at, sale_start_at, sale_end_at,
               poster_image_url, cancelled_at, layout_id, min_price_krw, max_price_krw, ticket_type_count, places,
               reserved, max_seats_per_reservation, max_seats_per_user, created_at, updated_at
          from events join event_places on event_places.event_id = events.id
         where (cast($1 as text) is null or search_text like $1 escape '\\')
           and (cast($2 as text) is null or $2 = case when cancelled_at is not null then 'cancelled'
                                                      when $3 < sale_start_at then 'upcoming'
                                                      when $3 < sale_end_at then 'on_sale'
                                                      else 'ended' end)
         order by sale_start_at, id limit $4 offset $5";

    /// Number of events on all pages of the same list.
    COUNT = "
        select count(*) from events
         where (cast($1 as text) is null or search_text like $1 escape '\\')
           and (cast($2 as text) is null or $2 = case when cancelled_at is not null then 'cancelled'
                                                      when $3 < sale_start_at then 'upcoming'
                                                      when $3 < sale_end_at then 'on_sale'
                                                      else 'ended' end)";

    /// Ticket types of an event, most expensive first.
    TICKET_TYPES = "
        select id, name, price_krw, total_quantity, description from ticket_types
         where event_id = $1 order by price_krw desc, name";

    /// Inserts an event.
    INSERT = "
        insert into events (id, title, description, venue, address, artist_name, poster_image_url, event_at,
                            sale_start_at, sale_end_at, layout_id, max_seats_per_reservation, max_seats_per_user,
                            seats, places, ticket_type_count, min_price_krw, max_price_krw, search_text,
                            created_at, updated_at)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $20)";

    /// Inserts a ticket type.
    INSERT_TICKET_TYPE = "
        insert into ticket_types (id, event_id, name, price_krw, total_quantity, description)
        values ($1, $2, $3, $4, $5, $6)";

    /// Inserts the reserved count of a new event.
    INSERT_PLACES = "insert into event_places (event_id, reserved) values ($1, 0)";

    /// Cancels an event unless it is already cancelled.
    CANCEL = "update events set cancelled_at = $2, updated_at = $2 where id = $1 and cancelled_at is null";
}

/// A new event with its seats or ticket types.
#[derive(Clone, Debug)]
pub(crate) struct NewEvent {
    pub(crate) id: EventId,
    pub(crate) draft: Draft,
    pub(crate) layout: Option<LayoutId>,
    pub(crate) seats: Vec<Seat>,
    pub(crate) ticket_types: Vec<TicketType>,
    pub(crate) at: Timestamp,
}

impl NewEvent {
    fn prices(&self) -> impl Iterator<Item = Krw> {
        self.seats.iter().map(|seat| seat.price).chain(self.ticket_types.iter().map(|kind| kind.price))
    }

    fn places(&self) -> u32 {
        count(self.seats.len()) + self.ticket_types.iter().map(|kind| kind.total_quantity).sum::<u32>()
    }
}

fn count(things: usize) -> u32 {
    u32::try_from(things).expect("validation allows at most 100,000 places")
}

/// Inserts an event with its seats or ticket types. The caller's transaction makes this atomic.
pub(crate) async fn insert(tx: &mut Tx<'_>, new: &NewEvent) -> Result<(), Error> {
    let NewEvent { id, draft, layout, seats, ticket_types, at } = new;
    tx.execute(
        &INSERT,
        &[
            id,
            &draft.title,
            &draft.description,
            &draft.venue,
            &draft.address,
            &draft.artist_name,
            &draft.poster_image_url,
            &draft.event_at,
            &draft.sale_start_at,
            &draft.sale_end_at,
            layout,
            &draft.max_seats_per_reservation,
            &draft.max_seats_per_user,
            &count(seats.len()),
            &new.places(),
            &count(ticket_types.len()),
            &new.prices().min(),
            &new.prices().max(),
            &rules::search_text(draft),
            at,
        ],
    )
    .await?;
    tx.execute(&INSERT_PLACES, &[id]).await?;
    for kind in ticket_types {
        let TicketType { id: kind_id, name, price, total_quantity, description } = kind;
        tx.execute(&INSERT_TICKET_TYPE, &[kind_id, id, name, price, total_quantity, description]).await?;
    }
    halls::store::insert_seats(tx, *id, seats).await
}

/// Returns whether any event exists.
pub(crate) async fn any(tx: &mut Tx<'_>) -> Result<bool, Error> {
    Ok(tx.optional(&ANY, &[], |row| row.get::<i64>(0)).await?.is_some())
}

/// Returns the sale window and limits of an event, or `None` if it does not exist.
pub(crate) async fn sale(tx: &mut Tx<'_>, event: EventId) -> Result<Option<Sale>, Error> {
    tx.optional(&SALE, &[&event], |row| {
        Ok(Sale {
            event,
            card: EventCard {
                title: row.get(0)?,
                venue: row.get(7)?,
                address: row.get(8)?,
                event_at: row.get(9)?,
            },
            cancelled: row.get::<Option<Timestamp>>(1)?.is_some(),
            sale_start_at: row.get(2)?,
            sale_end_at: row.get(3)?,
            max_seats_per_reservation: row.get(4)?,
            max_seats_per_user: row.get(5)?,
            seats: row.get(6)?,
        })
    })
    .await
}

/// Returns one event with its ticket types; its status is the one at `now`.
pub(crate) async fn detail(
    tx: &mut Tx<'_>,
    event: EventId,
    now: Timestamp,
) -> Result<Option<EventDetail>, Error> {
    let found = tx.optional(&GET, &[&event], |row| detail_of(row, now)).await?;
    let Some(mut detail) = found else { return Ok(None) };
    detail.ticket_types = tx.all(&TICKET_TYPES, &[&event], ticket_type).await?;
    Ok(Some(detail))
}

/// Returns one page of events with their status at `now`, and the number of events on all pages.
pub(crate) async fn list(
    tx: &mut Tx<'_>,
    listing: &Listing,
    now: Timestamp,
) -> Result<(Vec<EventSummary>, u32), Error> {
    let Listing { status, pattern, limit, offset } = listing;
    let total = tx.one(&COUNT, &[pattern, status, &now], |row| row.get(0)).await?;
    let page = tx.all(&LIST, &[pattern, status, &now, limit, offset], |row| summary(row, now)).await?;
    Ok((page, total))
}

/// Cancels an event. Returns `false` if it is already cancelled or does not exist.
pub(crate) async fn cancel(tx: &mut Tx<'_>, event: EventId, now: Timestamp) -> Result<bool, Error> {
    Ok(tx.execute(&CANCEL, &[&event, &now]).await? == 1)
}

/// Maps columns 0 to 16 of GET and LIST.
fn summary(row: &Row<'_>, now: Timestamp) -> Result<EventSummary, Error> {
    let (sale_start_at, sale_end_at) = (row.get(7)?, row.get(8)?);
    Ok(EventSummary {
        id: row.get(0)?,
        title: row.get(1)?,
        description: row.get(2)?,
        venue: row.get(3)?,
        address: row.get(4)?,
        artist_name: row.get(5)?,
        event_at: row.get(6)?,
        sale_start_at,
        sale_end_at,
        poster_image_url: row.get(9)?,
        status: rules::status(row.get(10)?, sale_start_at, sale_end_at, now),
        layout: row.get(11)?,
        min_price: row.get(12)?,
        max_price: row.get(13)?,
        ticket_type_count: row.get(14)?,
        places: row.get(15)?,
        places_reserved: row.get(16)?,
    })
}

/// All columns of GET. Ticket types are rows of their own.
fn detail_of(row: &Row<'_>, now: Timestamp) -> Result<EventDetail, Error> {
    Ok(EventDetail {
        event: summary(row, now)?,
        max_seats_per_reservation: row.get(17)?,
        max_seats_per_user: row.get(18)?,
        ticket_types: Vec::new(),
        created_at: row.get(19)?,
        updated_at: row.get(20)?,
    })
}

fn ticket_type(row: &Row<'_>) -> Result<TicketType, Error> {
    Ok(TicketType {
        id: row.get(0)?,
        name: row.get(1)?,
        price: row.get(2)?,
        total_quantity: row.get(3)?,
        description: row.get(4)?,
    })
}
