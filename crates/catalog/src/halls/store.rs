//! SQL for halls and seats, and the mapping of their rows.

use urr_contracts::catalog::{Layout, Seat, Section};
use urr_db::{Error, Json, JsonText, Row, Tx, statements};
use urr_kernel::{EventId, LayoutId, SeatId};

/// Seats per statement. A seat is about 100 bytes of JSON, so a statement stays near 100 kB, and
/// the largest hall takes 100 statements instead of 100,000.
const SEATS_PER_INSERT: usize = 1_000;

statements! {
    /// Sections of one hall.
    SECTIONS = "select sections from layouts where id = $1";

    /// Halls an event can be created in.
    LAYOUTS = "select id, name, description, sections from layouts order by name limit $1";

    /// Inserts many seats of one event from one JSON array. One text per engine: they have
    /// different functions to expand an array, and SQLite stores a UUID as 16 bytes.
    INSERT_SEATS =
        sqlite "
        insert into seats (event_id, id, ordinal, section, grade, row_number, seat_number, label, price_krw)
        select $1, unhex(value ->> 0), value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
               value ->> 7
          from json_each($2)"
        postgres "
        insert into seats (event_id, id, ordinal, section, grade, row_number, seat_number, label, price_krw)
        select $1, (value ->> 0)::uuid, (value ->> 1)::bigint, value ->> 2, value ->> 3, (value ->> 4)::bigint,
               (value ->> 5)::bigint, value ->> 6, (value ->> 7)::bigint
          from jsonb_array_elements($2) as seat (value)";

    /// One page of an event's seats, in primary key order.
    SEATS = "
        select id, section, grade, row_number, seat_number, label, price_krw from seats
         where event_id = $1 and ordinal >= $2 order by ordinal limit $3";

    /// Event of a seat.
    EVENT_OF_SEAT = "select event_id from seats where id = $1";
}

/// Returns the sections of a hall, or `None` if it does not exist.
pub(crate) async fn sections(tx: &mut Tx<'_>, layout: LayoutId) -> Result<Option<Vec<Section>>, Error> {
    let sections = tx.optional(&SECTIONS, &[&layout], |row| row.get::<Json<Vec<Section>>>(0)).await?;
    Ok(sections.map(|sections| sections.0))
}

/// A stored hall. The total number of seats is computed, not stored.
pub(crate) struct StoredLayout {
    pub(crate) id: LayoutId,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) sections: Vec<Section>,
}

impl StoredLayout {
    pub(crate) fn with_total(self, total_seats: u32) -> Layout {
        let Self { id, name, description, sections } = self;
        Layout { id, name, description, total_seats, sections }
    }
}

/// Returns the first `limit` halls by name.
pub(crate) async fn layouts(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<StoredLayout>, Error> {
    tx.all(&LAYOUTS, &[&limit], |row| {
        Ok(StoredLayout {
            id: row.get(0)?,
            name: row.get(1)?,
            description: row.get(2)?,
            sections: row.get::<Json<Vec<Section>>>(3)?.0,
        })
    })
    .await
}

/// Inserts the seats of an event, in the given order.
pub(crate) async fn insert_seats(tx: &mut Tx<'_>, event: EventId, seats: &[Seat]) -> Result<(), Error> {
    for (chunk, part) in seats.chunks(SEATS_PER_INSERT).enumerate() {
        let rows: Vec<_> = (chunk * SEATS_PER_INSERT..).zip(part).map(row_of).collect();
        tx.execute(&INSERT_SEATS, &[&event, &JsonText::of(&rows)]).await?;
        // SQLite executes inside this poll. Yield between chunks: a large hall would block the
        // thread for half a second.
        tokio::task::yield_now().await;
    }
    Ok(())
}

type SeatRow<'s> = (String, usize, &'s str, &'s str, u32, u32, &'s str, i64);

fn row_of((ordinal, seat): (usize, &Seat)) -> SeatRow<'_> {
    let Seat { id, section, grade, row, number, label, price } = seat;
    (id.as_uuid().simple().to_string(), ordinal, section, grade, *row, *number, label, price.won())
}

/// Returns at most `limit` seats of an event, starting at ordinal `from`.
pub(crate) async fn seats(
    tx: &mut Tx<'_>,
    event: EventId,
    from: u32,
    limit: u32,
) -> Result<Vec<Seat>, Error> {
    tx.all(&SEATS, &[&event, &from, &limit], seat).await
}

fn seat(row: &Row<'_>) -> Result<Seat, Error> {
    Ok(Seat {
        id: row.get(0)?,
        section: row.get(1)?,
        grade: row.get(2)?,
        row: row.get(3)?,
        number: row.get(4)?,
        label: row.get(5)?,
        price: row.get(6)?,
    })
}

/// Returns the event of a seat, or `None` if the seat does not exist.
pub(crate) async fn event_of(tx: &mut Tx<'_>, seat: SeatId) -> Result<Option<EventId>, Error> {
    tx.optional(&EVENT_OF_SEAT, &[&seat], |row| row.get(0)).await
}
