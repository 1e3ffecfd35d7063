//! The seat map: seats from the catalog with their state from the database, rebuilt at most twice a
//! second.

pub(crate) mod routes;
pub(crate) mod store;

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

use axum::body::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use urr_contracts::{
    catalog::Sale,
    tickets::{Error, MapSeat, SeatMap, SeatStatus},
};
use urr_db::Tx;
use urr_kernel::{Clock, CommonError, EventId, SeatId, limits::MAX_SEATS_PER_EVENT};
use urr_rpc::{Ctx, SingleFlightCache};

use crate::{Failure, sales::EventSeats, service::Service};

/// Maximum age of a cached map. If a seat looks free for up to this long after it is taken, the
/// claim is rejected.
const MAP_MAX_AGE: Duration = Duration::from_millis(500);

/// Seats of all cached maps together: four stadiums. With its JSON a seat takes about 450 bytes, so
/// 180 MB in total.
const MAX_SEATS: usize = 4 * MAX_SEATS_PER_EVENT;

/// A map with its serialised JSON, shared by all requests.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) map: SeatMap,
    pub(crate) json: Bytes,
    /// Version of the map, as an entity tag.
    pub(crate) etag: String,
}

/// Cache of recent maps.
pub(crate) type Maps = SingleFlightCache<EventId, Drawn, Error>;

pub(crate) fn maps(clock: Clock) -> Maps {
    SingleFlightCache::new(clock, MAP_MAX_AGE, (MAX_SEATS, |drawn| drawn.map.seats.len()), |_| false)
}

/// Returns the state of every seat of an event. Only the request that rebuilds the map logs a
/// failure.
pub(crate) async fn seat_map(service: &Service, ctx: &Ctx, event: EventId) -> Result<Arc<Drawn>, Error> {
    let reveal = |failure: Failure| ctx.reveal("seat_map", failure);
    let sale = service.sales.rules(ctx, event).await.map_err(reveal)?;
    if sale.seats == 0 {
        return Err(Error::NoSeatMap);
    }
    let draw = async { draw_now(service, ctx, &sale).await.map_err(reveal) };
    service.maps.get(ctx, event, Error::Common(CommonError::Unavailable), draw).await
}

async fn draw_now(service: &Service, ctx: &Ctx, sale: &Sale) -> Result<Drawn, Failure> {
    let hall = service.sales.hall(ctx, sale).await?;
    let now = service.clock.now();
    let claimed = service.db.read("tickets.map", async |tx: &mut Tx<'_>| {
        Ok::<_, Failure>(store::claimed(tx, sale.event, now).await?)
    });
    Ok(draw(sale, &hall, &claimed.await?))
}

fn draw(sale: &Sale, hall: &EventSeats, claimed: &HashMap<SeatId, SeatStatus>) -> Drawn {
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
    let map = SeatMap { event: sale.event, title: sale.card.title.clone(), version, seats };
    let json = serde_json::to_vec(&Public::from(&map))
        .expect("a map of strings and numbers serialises without error");
    Drawn { etag: format!("\"{}\"", map.version), json: json.into(), map }
}

/// Body of the public seat map.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SeatMap")]
struct Public<'m> {
    event: PublicEvent<'m>,
    version: &'m str,
    seats: &'m [MapSeat],
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SeatMapEvent")]
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
