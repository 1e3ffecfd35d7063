//! What is held: events with seats enough, buyers with tokens, requests written out beforehand so that the load costs little.

use std::{collections::BTreeSet, time::Duration};

use urr_contracts::{
    catalog::{Catalog, CreateEvent, ListLayouts, SeatsOf},
    tickets::HoldSeats,
};
use urr_jobs::Tasks;
use urr_kernel::{Clock, EventId, Ids, LayoutId, Role, SeatId, Timestamp, UserId};
use urr_passes::access::{self, Access, Signer};
use urr_rpc::Ctx;

use super::noop;
use crate::{config::Config, failure::Failure, stores::Databases, wire::Domains};

/// Seats of one hold.
const SEATS: usize = 2;

/// Events prepared at most. Tickets remembers the seats of so many of the largest hall, and a benchmark that makes it
/// forget would measure something else: 7 × 50,000 seats are 175,000 holds, or 35,000 per second for 5 s.
const MAX_EVENTS: usize = 7;

/// One hold to be asked for: a buyer of its own and two seats that nobody else wants.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    /// The buyer.
    pub(super) user: UserId,
    /// What the buyer asks for.
    pub(super) hold: HoldSeats,
}

/// Makes events in a database that nobody serves yet, with seats for at least `holds` holds if there is room.
pub(super) async fn wishes(
    config: &Config,
    holds: usize,
    clock: &Clock,
    ids: &Ids,
) -> Result<Vec<Wish>, Failure> {
    let databases = Databases::open(config)?;
    for (_, db) in databases.iter() {
        db.migrate().await.map_err(|error| Failure::because(db.domain().name, &error))?;
    }
    let domains = Domains::build(config, &databases, clock, ids, &Tasks::new())?;
    let catalog = domains.catalog.as_ref().expect("the benchmark runs every role");
    let ctx = Ctx::system(ids, clock);
    let failed = |error| Failure::because("an event cannot be made", &error);
    let layouts = catalog.layouts(&ctx, ListLayouts {}).await.map_err(failed)?.layouts;
    let largest = layouts.into_iter().max_by_key(|layout| layout.total_seats);
    let largest = largest.ok_or_else(|| Failure::new("there is no hall to make events for"))?;
    let events = (holds * SEATS).div_ceil(largest.total_seats as usize).clamp(1, MAX_EVENTS);
    let mut wishes = Vec::new();
    for number in 0..events {
        let new = event(number, largest.id, clock.now());
        let made = catalog.create_event(&Ctx::system(ids, clock), new).await.map_err(failed)?;
        let seats = seats(&**catalog, made.event.id, clock, ids).await.map_err(failed)?;
        wishes.extend(seats.chunks_exact(SEATS).map(|seats| Wish {
            user: ids.next(),
            hold: HoldSeats { event: made.event.id, seats: seats.to_vec(), idempotency_key: None },
        }));
    }
    Ok(wishes)
}

/// Events on sale, in the smallest hall: for what stands before the seats.
pub(super) async fn events(
    catalog: &dyn Catalog,
    count: usize,
    clock: &Clock,
    ids: &Ids,
) -> Result<Vec<EventId>, Failure> {
    let failed = |error| Failure::because("an event cannot be made", &error);
    let ctx = || Ctx::system(ids, clock);
    let layouts = catalog.layouts(&ctx(), ListLayouts {}).await.map_err(failed)?.layouts;
    let smallest = layouts.into_iter().min_by_key(|layout| layout.total_seats);
    let smallest = smallest.ok_or_else(|| Failure::new("there is no hall to make events for"))?;
    let mut events = Vec::with_capacity(count);
    for number in 0..count {
        let new = event(number, smallest.id, clock.now());
        events.push(catalog.create_event(&ctx(), new).await.map_err(failed)?.event.id);
    }
    Ok(events)
}

fn event(number: usize, layout: LayoutId, now: Timestamp) -> CreateEvent {
    const HOUR: Duration = Duration::from_hours(1);
    CreateEvent {
        title: format!("Benchmark {number}"),
        description: None,
        venue: "Loopback".to_owned(),
        address: None,
        artist_name: None,
        event_at: now.after(HOUR * 48),
        sale_start_at: now.before(HOUR),
        sale_end_at: now.after(HOUR * 24),
        poster_image_url: None,
        layout: Some(layout),
        ticket_types: Vec::new(),
        max_seats_per_reservation: None,
        max_seats_per_user: None,
    }
}

async fn seats(
    catalog: &dyn Catalog,
    event: EventId,
    clock: &Clock,
    ids: &Ids,
) -> Result<Vec<SeatId>, urr_contracts::catalog::Error> {
    let (mut seats, mut from) = (Vec::new(), Some(0));
    while let Some(start) = from {
        let page = catalog.seats(&Ctx::system(ids, clock), SeatsOf { event, from: start }).await?;
        from = page.next;
        seats.extend(page.seats.into_iter().map(|seat| seat.id));
    }
    Ok(seats)
}

/// A wish in every event for a seat that is in none. Whoever refuses it has looked at the hall, as people make it do who look at the
/// map before they buy: what is measured is a sale and not the reading of halls.
pub(super) fn strangers(wishes: &[Wish], ids: &Ids) -> Vec<Wish> {
    let events: BTreeSet<EventId> = wishes.iter().map(|wish| wish.hold.event).collect();
    let stranger = |event| Wish {
        user: ids.next(),
        hold: HoldSeats { event, seats: vec![ids.next()], idempotency_key: None },
    };
    events.into_iter().map(stranger).collect()
}

/// Brings seats and buyers out of order, each for itself.
pub(super) fn scatter(wishes: &mut [Wish], ids: &Ids) {
    let mut users: Vec<UserId> = wishes.iter().map(|wish| wish.user).collect();
    shuffle(&mut users, ids);
    shuffle(wishes, ids);
    for (wish, user) in wishes.iter_mut().zip(users) {
        wish.user = user;
    }
}

pub(super) fn shuffle<T>(items: &mut [T], ids: &Ids) {
    for last in (1..items.len()).rev() {
        let other = u64::from_le_bytes(ids.bytes()) % (last as u64 + 1);
        items.swap(last, usize::try_from(other).expect("a number up to an index is one"));
    }
}

/// Signs people in, as accounts would.
pub(super) struct Tokens {
    signer: Signer,
    clock: Clock,
    ids: Ids,
}

impl Tokens {
    /// With the keys of an installation.
    pub(super) fn new(config: &Config, clock: &Clock, ids: &Ids) -> Self {
        let secret = config.secrets().next().expect("the benchmark configures a secret");
        let signer = Signer::new(access::key(&secret.0), Duration::from_hours(1));
        Self { signer, clock: clock.clone(), ids: ids.clone() }
    }

    /// An access token of a user.
    pub(super) fn of(&self, user: UserId) -> String {
        let access = Access { user, role: Role::User, email: None, session: self.ids.next() };
        self.signer.sign(&access, self.ids.next(), self.clock.now())
    }
}

/// The wishes as requests over HTTP, whole and signed.
pub(super) fn requests(
    wishes: &[Wish],
    path: &str,
    config: &Config,
    clock: &Clock,
    ids: &Ids,
) -> Vec<Vec<u8>> {
    let tokens = Tokens::new(config, clock, ids);
    let request = |wish: &Wish| {
        let token = tokens.of(wish.user);
        let body = serde_json::json!({
            "eventId": wish.hold.event,
            "seatIds": wish.hold.seats,
            "idempotencyKey": wish.user.to_string(),
        })
        .to_string();
        format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    };
    wishes.iter().map(request).collect()
}

/// Wishes for things that do not exist, for a handler that does not look.
pub(super) fn made_up(count: usize, config: &Config, clock: &Clock, ids: &Ids) -> Vec<Vec<u8>> {
    let wish = |_| Wish {
        user: ids.next(),
        hold: HoldSeats { event: ids.next(), seats: vec![ids.next(), ids.next()], idempotency_key: None },
    };
    let wishes: Vec<Wish> = (0..count).map(wish).collect();
    requests(&wishes, noop::PATH, config, clock, ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattering_loses_nobody_and_no_seat() {
        let ids = Ids::seeded(Clock::fixed(Timestamp::from_micros(0)), 1);
        let wish = |_| Wish {
            user: ids.next(),
            hold: HoldSeats { event: ids.next(), seats: vec![ids.next()], idempotency_key: None },
        };
        let before: Vec<Wish> = (0..100).map(wish).collect();
        let mut after = before.clone();
        scatter(&mut after, &ids);
        let users = |wishes: &[Wish]| wishes.iter().map(|wish| wish.user).collect::<BTreeSet<_>>();
        let seats = |wishes: &[Wish]| wishes.iter().map(|wish| wish.hold.seats[0]).collect::<BTreeSet<_>>();
        assert_eq!((users(&before), seats(&before)), (users(&after), seats(&after)));
        let moved = before.iter().zip(&after).filter(|(before, after)| before.hold.seats != after.hold.seats);
        assert!(moved.count() > 80);
    }
}
