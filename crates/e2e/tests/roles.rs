//! Two processes: `catalog` and `tickets`, with calls over HTTP and messages over Kafka.

use std::{path::Path, time::Duration};

use urr_e2e::{
    collector::Collector,
    http::{Connection, Request},
    program::{self, Launch, Running, Signal, free_address},
    shop::{self, Buyer, NewEvent, Reservation},
};
use urr_kernel::{Clock, EventId, SeatId};
use urr_testkit::{fresh_database, services, until};

/// Time limit until a process reconnects to the other or a message arrives: two periods of a
/// circuit breaker, or the time Kafka takes to assign partitions to a restarted consumer.
const PATIENCE: Duration = Duration::from_mins(1);

/// A hold that cannot load the event's rules is refused after two seconds; the rest is for a busy
/// machine.
const PROMPT: Duration = Duration::from_millis(3_500);

/// The shared `security.secret`. Only tests use it, so it need not be secret.
const SECRET: &str = "7f3a9c51e8d24b06af1790c3d65e82b47f3a9c51e8d24b06af1790c3d65e82b4";
const TOKEN: &str = "between-processes-0f6b1c9d";

/// The two processes.
struct Pair {
    collector: Collector,
    catalog: Launch,
    catalog_running: Running,
    tickets: Launch,
    tickets_running: Running,
}

impl Pair {
    /// Starts both, each with its own files in `dir`, or both on `postgres`.
    async fn up(dir: &Path, kafka: &str, postgres: Option<&str>) -> anyhow::Result<Self> {
        let (internal, collector) = (free_address(), Collector::start().await?);
        let launch = |role: &str| -> anyhow::Result<Launch> {
            let launch = program::launch(&dir.join(role))?
                .set("security.secret", SECRET)
                .set("internal.token", TOKEN)
                .set("bus.kind", "kafka")
                .set("bus.brokers", kafka)
                .set("bus.replication", "1")
                .set("log.otlp_url", collector.url())
                .set("log.otlp_percent", "0");
            Ok(match postgres {
                Some(url) => launch.set("storage.kind", "postgres").set("storage.url", url),
                None => launch,
            })
        };
        let catalog = launch("catalog")?.set("roles", "catalog").set("internal.listen", internal.to_string());
        let tickets = launch("tickets")?
            .set("roles", "tickets,gateway")
            .set("remote.catalog", format!("http://{internal}"));
        if postgres.is_some() {
            catalog.run(&["migrate"]).await?;
            tickets.run(&["migrate"]).await?;
        }
        let catalog_running = catalog.up().await?;
        let tickets_running = tickets.up().await?;
        Ok(Self { collector, catalog, catalog_running, tickets, tickets_running })
    }

    fn at_catalog(&self) -> Connection {
        Connection::to(self.catalog_running.address)
    }

    fn at_tickets(&self) -> Connection {
        Connection::to(self.tickets_running.address)
    }

    async fn buyer(&self) -> anyhow::Result<Buyer> {
        Buyer::new(&self.tickets, "user").await
    }
}

/// A seat is held, refused to another buyer, released, and held by the other.
async fn one_seat_changes_hands(pair: &Pair, event: EventId, seats: &[SeatId]) -> anyhow::Result<()> {
    let (ann, bob) = (pair.buyer().await?, pair.buyer().await?);
    let mut connection = pair.at_tickets();
    let held = shop::hold(&mut connection, &ann.token, event, &seats[..2], "a").await?;
    let held = Reservation::from_answer(&held)?;
    let taken = shop::hold(&mut connection, &bob.token, event, &seats[1..3], "b").await?;
    assert_eq!((taken.status, taken.code().as_str()), (409, "tickets.seats_taken"), "{}", taken.show());
    let released = shop::release(&mut connection, &ann.token, held.id).await?;
    assert_eq!(released.status, 200, "{}", released.show());
    let bobs = shop::hold(&mut connection, &bob.token, event, &seats[1..3], "c").await?;
    assert_eq!(bobs.status, 200, "{}", bobs.show());
    Ok(())
}

async fn the_story(pair: &mut Pair) -> anyhow::Result<()> {
    let admin = Buyer::new(&pair.catalog, "admin").await?;
    let new = NewEvent { seats: 1, opens_in_secs: -60 };
    let event = shop::create_event(&mut pair.at_catalog(), &admin, new).await?;
    one_trace_goes_through_both(pair, event).await?;
    let map = shop::seat_map(&mut pair.at_tickets(), event).await?;
    let seats: Vec<SeatId> = map.into_iter().map(|(seat, _)| seat).collect();
    one_seat_changes_hands(pair, event, &seats).await?;
    // Error details are preserved between processes.
    let buyer = pair.buyer().await?;
    let nowhere = shop::hold(
        &mut pair.at_tickets(),
        &buyer.token,
        EventId::from_uuid(admin.user.as_uuid()),
        &seats[..1],
        "k",
    )
    .await?;
    assert_eq!(
        (nowhere.status, nowhere.code().as_str()),
        (404, "tickets.event_not_found"),
        "{}",
        nowhere.show()
    );
    // Two seats are held; the catalog counts them through Kafka.
    let connection = &mut pair.at_catalog();
    until(PATIENCE, async || shop::places_reserved(connection, event).await.is_ok_and(|places| places == 2))
        .await;
    the_catalog_hangs_and_goes_on(pair, &admin).await?;
    the_catalog_goes_and_comes_back(pair, &admin).await
}

/// A caller's trace continues in every process that works for it, whatever the sampling rate.
async fn one_trace_goes_through_both(pair: &Pair, event: EventId) -> anyhow::Result<()> {
    let trace = *b"one trace of two";
    let hex = format!("{:032x}", u128::from_be_bytes(trace));
    let parent = format!("00-{hex}-00f067aa0ba902b7-01");
    let path = format!("/api/seats/events/{event}");
    let request = Request { headers: &[("traceparent", &parent)], ..Request::get(&path) };
    // The first request for this map, so `tickets` calls the catalog for the seats.
    let answer = pair.at_tickets().send(&request).await?;
    assert_eq!(answer.status, 200, "{}", answer.show());
    let has = |route: &str| pair.collector.has(&[&trace, route.as_bytes()]);
    until(PATIENCE, async || has("/api/seats/events/{") && has("/internal/catalog/")).await;
    Ok(())
}

/// A hold that needs the catalog is refused within the time limit.
async fn is_refused_in_time(pair: &Pair, event: EventId) -> anyhow::Result<()> {
    let buyer = pair.buyer().await?;
    let some_seat = SeatId::from_uuid(buyer.user.as_uuid());
    let mut connection = pair.at_tickets();
    let clock = Clock::system();
    let refused = shop::hold(&mut connection, &buyer.token, event, &[some_seat], "k").await?;
    let took = clock.ticks();
    assert_eq!(refused.status, 503, "{}", refused.show());
    assert!(refused.header("retry-after").is_some(), "{:?}", refused.headers);
    assert!(took < PROMPT, "it took {took:?}");
    Ok(())
}

/// A hanging catalog accepts connections and sends no response, which is worse than a stopped one.
async fn the_catalog_hangs_and_goes_on(pair: &Pair, admin: &Buyer) -> anyhow::Result<()> {
    let new = NewEvent { seats: 1, opens_in_secs: -60 };
    let event = shop::create_event(&mut pair.at_catalog(), admin, new).await?;
    pair.catalog_running.signal(Signal::STOP)?;
    let refused = is_refused_in_time(pair, event).await;
    pair.catalog_running.signal(Signal::CONT)?;
    refused?;
    until(PATIENCE, async || shop::seat_map(&mut pair.at_tickets(), event).await.is_ok()).await;
    Ok(())
}

/// Without the catalog, holds of an event that `tickets` has not cached are refused in time; they
/// work again once it is back.
async fn the_catalog_goes_and_comes_back(pair: &mut Pair, admin: &Buyer) -> anyhow::Result<()> {
    let new = NewEvent { seats: 1, opens_in_secs: -60 };
    let event = shop::create_event(&mut pair.at_catalog(), admin, new).await?;
    pair.catalog_running.kill().await?;
    is_refused_in_time(pair, event).await?;

    pair.catalog_running = pair.catalog.up().await?;
    let mut connection = pair.at_tickets();
    let mut seats = Vec::new();
    until(PATIENCE, async || {
        let map = shop::seat_map(&mut connection, event).await;
        seats = map.unwrap_or_default().into_iter().map(|(seat, _)| seat).collect();
        !seats.is_empty()
    })
    .await;
    let ready = pair.at_tickets().send(&Request::get("/health/ready")).await?;
    assert_eq!(ready.status, 200, "{}", ready.show());
    one_seat_changes_hands(pair, event, &seats).await
}

/// One test and not two: both pairs would join the same consumer group and take each other's
/// messages.
#[tokio::test(flavor = "multi_thread")]
async fn tickets_and_catalog_work_in_two_processes() -> anyhow::Result<()> {
    let Some(kafka) = services::kafka() else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    the_story(&mut Pair::up(&dir.path().join("sqlite"), &kafka, None).await?).await?;
    let Some(postgres) = fresh_database(&[]).await else { return Ok(()) };
    the_story(&mut Pair::up(&dir.path().join("postgres"), &kafka, Some(&postgres.url)).await?).await
}
