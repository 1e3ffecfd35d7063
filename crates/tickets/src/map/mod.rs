//! The seat map: the hall from the catalog, coloured with what the database says, drawn at most twice a second.

pub(crate) mod routes;
pub(crate) mod store;

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::body::Bytes;
use serde::Serialize;
use urr_contracts::{
    catalog::Sale,
    tickets::{Error, MapSeat, SeatMap, SeatStatus},
};
use urr_db::Tx;
use urr_kernel::{Clock, EventId, SeatId};
use urr_rpc::Ctx;

use crate::{sales::Hall, service::Service, trouble::Trouble};

/// How old a map may be. A seat that looks free for half a second longer is refused by the claim.
const MAP_MAX_AGE: Duration = Duration::from_millis(500);

/// Maps kept at a time. The largest is about 15 MB, so a busy night stays under 500 MB; past it the memory starts afresh.
const MAX_MAPS: usize = 32;

/// A map with its JSON, made once for everyone who asks.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) map: SeatMap,
    pub(crate) json: Bytes,
    /// The map's version as an entity tag.
    pub(crate) etag: String,
}

/// One event's map, and the turn to draw it again.
#[derive(Default)]
struct Slot {
    drawn: Mutex<Option<(Duration, Arc<Drawn>)>>,
    drawing: tokio::sync::Mutex<()>,
}

/// Maps drawn lately.
pub(crate) struct Maps {
    clock: Clock,
    slots: Mutex<HashMap<EventId, Arc<Slot>>>,
}

impl Maps {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, slots: Mutex::default() }
    }

    fn slot(&self, event: EventId) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MAX_MAPS && !slots.contains_key(&event) {
            slots.clear();
        }
        Arc::clone(slots.entry(event).or_default())
    }

    fn fresh(&self, slot: &Slot) -> Option<Arc<Drawn>> {
        let drawn = slot.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, map) = drawn.as_ref()?;
        (self.clock.ticks().saturating_sub(*at) < MAP_MAX_AGE).then(|| Arc::clone(map))
    }
}

/// The state of every seat of an event.
pub(crate) async fn seat_map(service: &Service, ctx: &Ctx, event: EventId) -> Result<Arc<Drawn>, Trouble> {
    let sale = service.sales.rules(ctx, event).await?;
    if sale.seats == 0 {
        return Err(Error::NoSeatMap.into());
    }
    let slot = service.maps.slot(event);
    if let Some(map) = service.maps.fresh(&slot) {
        return Ok(map);
    }
    let _turn = slot.drawing.lock().await;
    if let Some(map) = service.maps.fresh(&slot) {
        return Ok(map);
    }
    let hall = service.sales.hall(ctx, &sale).await?;
    let (at, now) = (service.clock.ticks(), service.clock.now());
    let claimed = service
        .db
        .read("tickets.map", async |tx: &mut Tx<'_>| Ok::<_, Trouble>(store::claimed(tx, event, now).await?));
    let drawn = Arc::new(draw(&sale, &hall, &claimed.await?));
    *slot.drawn.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, Arc::clone(&drawn)));
    Ok(drawn)
}

fn draw(sale: &Sale, hall: &Hall, claimed: &HashMap<SeatId, SeatStatus>) -> Drawn {
    let mut hash = DefaultHasher::new();
    let seats: Vec<MapSeat> = hall
        .seats
        .iter()
        .map(|seat| {
            let status = claimed.get(&seat.id).copied().unwrap_or(SeatStatus::Available);
            (seat.id, status).hash(&mut hash);
            MapSeat {
                id: seat.id,
                section: seat.section.clone(),
                grade: seat.grade.clone(),
                row_number: seat.row,
                seat_number: seat.number,
                seat_label: seat.label.clone(),
                price: seat.price,
                status,
            }
        })
        .collect();
    let version = format!("{:016x}", hash.finish());
    let map = SeatMap { event: sale.event, title: sale.title.clone(), version, seats };
    let json = serde_json::to_vec(&Public::from(&map)).expect("a map is plain data and always serialises");
    Drawn { etag: format!("\"{}\"", map.version), json: json.into(), map }
}

/// The map as the public API shows it.
#[derive(Serialize)]
struct Public<'m> {
    event: PublicEvent<'m>,
    version: &'m str,
    seats: &'m [MapSeat],
}

#[derive(Serialize)]
struct PublicEvent<'m> {
    id: EventId,
    title: &'m str,
}

impl<'m> From<&'m SeatMap> for Public<'m> {
    fn from(map: &'m SeatMap) -> Self {
        Self {
            event: PublicEvent { id: map.event, title: &map.title },
            version: &map.version,
            seats: &map.seats,
        }
    }
}
