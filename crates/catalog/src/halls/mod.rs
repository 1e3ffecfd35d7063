//! Halls: their seat plans, and the seats of an event generated from them.

pub(crate) mod routes;
pub(crate) mod rules;
pub(crate) mod store;

use urr_contracts::catalog::{
    Error, FindSeats, FoundSeats, Layouts, MAX_SEATS_PER_LOOKUP, MAX_SEATS_PER_PAGE, Seat, SeatsOf, SeatsPage,
};
use urr_db::Tx;
use urr_kernel::LayoutId;
use urr_rpc::Ctx;

use crate::{Failure, events, service::Service};

/// Halls in one response: as many as an organiser can choose from in one list.
const MAX_LAYOUTS: u32 = 200;

/// Halls an event can be created in, smallest first.
pub(crate) async fn layouts(service: &Service, ctx: &Ctx) -> Result<Layouts, Failure> {
    ctx.require_admin()?;
    let stored = service.db.read("catalog.layouts", async |tx: &mut Tx<'_>| {
        Ok::<_, Failure>(store::layouts(tx, MAX_LAYOUTS).await?)
    });
    // A seat plan that fails validation cannot be used for an event, so it is not offered.
    let mut layouts: Vec<_> = stored
        .await?
        .into_iter()
        .filter_map(|layout| rules::count(&layout.sections).ok().map(|total| layout.with_total(total)))
        .collect();
    layouts.sort_by(|a, b| (a.total_seats, &a.name).cmp(&(b.total_seats, &b.name)));
    Ok(Layouts { layouts })
}

/// Generates the seats of a new event, in the order of the seat plan.
pub(crate) async fn make_seats(service: &Service, layout: LayoutId) -> Result<Vec<Seat>, Failure> {
    let sections = service.db.read("catalog.sections", async |tx: &mut Tx<'_>| {
        Ok::<_, Failure>(store::sections(tx, layout).await?)
    });
    let sections = sections.await?.ok_or(Error::LayoutNotFound)?;
    let seats = rules::seats(&sections, || service.ids.next());
    Ok(seats.map_err(|bad| Error::Invalid { field: "seatLayoutId".to_owned(), reason: bad.to_string() })?)
}

/// Returns one page of an event's seats. Seats never change, so pages read at different times are
/// consistent.
pub(crate) async fn seats(service: &Service, request: SeatsOf) -> Result<SeatsPage, Failure> {
    let SeatsOf { event, from } = request;
    let page = service.db.read("catalog.seats", async |tx: &mut Tx<'_>| {
        let total = events::store::sale(tx, event).await?.ok_or(Error::EventNotFound)?.seats;
        Ok::<_, Failure>((store::seats(tx, event, from, MAX_SEATS_PER_PAGE).await?, total))
    });
    let (seats, total) = page.await?;
    let next = from.saturating_add(MAX_SEATS_PER_PAGE);
    Ok(SeatsPage { seats, next: (next < total).then_some(next) })
}

/// Returns the event of each given seat. Unknown seats are omitted.
pub(crate) async fn find_seats(service: &Service, request: &FindSeats) -> Result<FoundSeats, Failure> {
    if request.seats.len() > MAX_SEATS_PER_LOOKUP {
        let reason = format!("at most {MAX_SEATS_PER_LOOKUP} seats can be looked up together");
        return Err(Error::Invalid { field: "seats".to_owned(), reason }.into());
    }
    let found = service.db.read("catalog.find_seats", async |tx: &mut Tx<'_>| {
        let mut seats = Vec::with_capacity(request.seats.len());
        for seat in &request.seats {
            if let Some(event) = store::event_of(tx, *seat).await? {
                seats.push((*seat, event));
            }
        }
        Ok::<_, Failure>(seats)
    });
    Ok(FoundSeats { seats: found.await? })
}
