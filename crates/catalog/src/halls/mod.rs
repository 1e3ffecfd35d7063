//! Halls and the seats that are made from them.

pub(crate) mod routes;
pub(crate) mod rules;
pub(crate) mod store;

use urr_contracts::catalog::{
    Error, FindSeats, FoundSeats, Layouts, MAX_SEATS_PER_LOOKUP, MAX_SEATS_PER_PAGE, Seat, SeatsOf, SeatsPage,
};
use urr_db::Tx;
use urr_kernel::LayoutId;
use urr_rpc::Ctx;

use crate::{
    events,
    service::{Service, admin_only},
    trouble::Trouble,
};

/// Halls one answer lists. An organiser chooses from a list that fits on a screen.
const MAX_LAYOUTS: u32 = 200;

/// The halls an event can be made for, smallest first.
pub(crate) async fn layouts(service: &Service, ctx: &Ctx) -> Result<Layouts, Trouble> {
    admin_only(ctx)?;
    let stored = service.db.read("catalog.layouts", async |tx: &mut Tx<'_>| {
        Ok::<_, Trouble>(store::layouts(tx, MAX_LAYOUTS).await?)
    });
    // A plan from which no seats can be made is of no use to an organiser.
    let mut layouts: Vec<_> = stored
        .await?
        .into_iter()
        .filter_map(|layout| rules::count(&layout.sections).ok().map(|total| layout.with_total(total)))
        .collect();
    layouts.sort_by(|a, b| (a.total_seats, &a.name).cmp(&(b.total_seats, &b.name)));
    Ok(Layouts { layouts })
}

/// New seats for one event, in the order of the hall.
pub(crate) async fn make_seats(service: &Service, layout: LayoutId) -> Result<Vec<Seat>, Trouble> {
    let sections = service.db.read("catalog.sections", async |tx: &mut Tx<'_>| {
        Ok::<_, Trouble>(store::sections(tx, layout).await?)
    });
    let sections = sections.await?.ok_or(Error::LayoutNotFound)?;
    let seats = rules::seats(&sections, || service.ids.next());
    Ok(seats.map_err(|bad| Error::Invalid { field: "seatLayoutId".to_owned(), reason: bad.to_string() })?)
}

/// A page of an event's seats. They never change, so pages read at different times fit together.
pub(crate) async fn seats(service: &Service, request: SeatsOf) -> Result<SeatsPage, Trouble> {
    let SeatsOf { event, from } = request;
    let page = service.db.read("catalog.seats", async |tx: &mut Tx<'_>| {
        let total = events::store::sale(tx, event).await?.ok_or(Error::EventNotFound)?.seats;
        Ok::<_, Trouble>((store::seats(tx, event, from, MAX_SEATS_PER_PAGE).await?, total))
    });
    let (seats, total) = page.await?;
    let next = from.saturating_add(MAX_SEATS_PER_PAGE);
    Ok(SeatsPage { seats, next: (next < total).then_some(next) })
}

/// Which events the named seats belong to. Unknown seats are left out.
pub(crate) async fn find_seats(service: &Service, request: &FindSeats) -> Result<FoundSeats, Trouble> {
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
        Ok::<_, Trouble>(seats)
    });
    Ok(FoundSeats { seats: found.await? })
}
