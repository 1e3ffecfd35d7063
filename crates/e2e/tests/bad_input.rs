//! Bad input gets a 4xx with its own error code and changes nothing.

use std::collections::HashMap;

use serde_json::{Value, json};
use urr_e2e::{
    http::{Answer, Connection, Request},
    shop::{self, Buyer, NewEvent, Reservation},
    stage::Stage,
};
use urr_kernel::{Clock, EventId, Ids, SeatId};

/// The data of the cases.
struct Fixture {
    stage: Stage,
    connection: Connection,
    buyer: Buyer,
    open: (EventId, Vec<SeatId>),
    other: (EventId, Vec<SeatId>),
    closed: (EventId, Vec<SeatId>),
    over: (EventId, Vec<SeatId>),
    cancelled: EventId,
}

impl Fixture {
    async fn new(stage: Stage) -> anyhow::Result<Self> {
        let hour = 3_600;
        // `tickets` caches an event for a second, so this one is not requested before its
        // cancellation.
        let new = NewEvent { seats: 1, opens_in_secs: -60 };
        let cancelled = shop::create_event(&mut stage.connect(), &stage.admin, new).await?;
        let path = format!("/api/admin/events/{cancelled}/cancel");
        let token = Some(stage.admin.token.as_str());
        let request = Request { method: "POST", path: &path, token, ..Request::default() };
        assert_eq!(stage.connect().send(&request).await?.status, 200);
        Ok(Self {
            connection: stage.connect(),
            buyer: stage.buyer().await?,
            open: stage.event(-60).await?,
            other: stage.event(-60).await?,
            closed: stage.event(hour).await?,
            // The sale lasts 24 hours, so this one ended an hour ago.
            over: stage.event(-25 * hour).await?,
            cancelled,
            stage,
        })
    }

    async fn reserve(&mut self, body: Value) -> anyhow::Result<Answer> {
        Ok(self.connection.send(&Request::post("/api/seats/reserve", &body).by(&self.buyer.token)).await?)
    }

    async fn reserve_raw(&mut self, body: &[u8], content_type: &str) -> anyhow::Result<Answer> {
        let request = Request {
            method: "POST",
            path: "/api/seats/reserve",
            token: Some(&self.buyer.token),
            body: Some(body.to_vec()),
            headers: &[("content-type", content_type)],
        };
        Ok(self.connection.send(&request).await?)
    }

    async fn maps(&mut self) -> anyhow::Result<Vec<HashMap<SeatId, String>>> {
        let mut maps = Vec::new();
        for event in [self.open.0, self.other.0, self.closed.0, self.over.0] {
            maps.push(shop::seat_states(&mut self.connection, event).await?);
        }
        Ok(maps)
    }
}

fn seats_of(event: &(EventId, Vec<SeatId>), seats: &[SeatId]) -> Value {
    json!({ "eventId": event.0, "seatIds": seats })
}

/// One wrong request and its expected response.
struct Case {
    what: &'static str,
    answer: Answer,
    status: u16,
    code: &'static str,
}

/// Every wrong request for a hold, with the expected status and code.
async fn wrong_holds(scene: &mut Fixture) -> anyhow::Result<Vec<Case>> {
    let ids = Ids::random(Clock::system());
    let (event, seats) = scene.open.clone();
    let unknown: SeatId = ids.next();
    let long_key = "k".repeat(65);
    let bodies = [
        ("no seats", seats_of(&scene.open, &[]), 400, "tickets.no_seats"),
        ("five seats", seats_of(&scene.open, &seats[..5]), 400, "tickets.too_many_seats"),
        ("one seat twice", seats_of(&scene.open, &[seats[0], seats[0]]), 400, "tickets.duplicate_seats"),
        ("an unknown seat", seats_of(&scene.open, &[seats[0], unknown]), 404, "tickets.seats_not_found"),
        (
            "another event's seat",
            seats_of(&scene.open, &[seats[0], scene.other.1[0]]),
            400,
            "tickets.seats_of_another_event",
        ),
        (
            "an unknown event",
            json!({ "eventId": ids.next::<EventId>(), "seatIds": [seats[0]] }),
            404,
            "tickets.event_not_found",
        ),
        ("a sale not open", seats_of(&scene.closed, &scene.closed.1[..1]), 409, "tickets.sale_not_open"),
        ("a sale that is over", seats_of(&scene.over, &scene.over.1[..1]), 409, "tickets.sale_ended"),
        (
            "a cancelled event",
            json!({ "eventId": scene.cancelled, "seatIds": [unknown] }),
            409,
            "tickets.event_cancelled",
        ),
        (
            "a key that is too long",
            json!({ "eventId": event, "seatIds": [seats[0]], "idempotencyKey": long_key }),
            400,
            "tickets.bad_idempotency_key",
        ),
        ("a bad seat id", json!({ "eventId": event, "seatIds": ["A-1"] }), 400, "http.bad_request"),
        ("a bad event id", json!({ "eventId": "tonight", "seatIds": [seats[0]] }), 400, "http.bad_request"),
        ("no seat list", json!({ "eventId": event }), 400, "http.bad_request"),
        ("a number for a list", json!({ "eventId": event, "seatIds": 1 }), 400, "http.bad_request"),
        ("not an object", json!("seats please"), 400, "http.bad_request"),
    ];
    let mut answers = Vec::new();
    for (case, body, status, code) in bodies {
        answers.push(Case { what: case, answer: scene.reserve(body).await?, status, code });
    }
    let good = seats_of(&scene.open, &seats[..1]).to_string().into_bytes();
    let json = "application/json";
    let spaces = vec![b' '; 2 * 1024 * 1024];
    for (case, body, content_type, status, code) in [
        ("half a body", &good[..good.len() / 2], json, 400, "http.bad_json"),
        ("no body", b"", json, 400, "http.bad_json"),
        ("bytes that are no text", b"\xff\xfe{}", json, 400, "http.bad_json"),
        ("a form", &good, "text/plain", 415, "http.unsupported_media_type"),
        ("two megabytes", &spaces, json, 413, "http.body_too_large"),
    ] {
        answers.push(Case { what: case, answer: scene.reserve_raw(body, content_type).await?, status, code });
    }
    // A server that did not read a body to its end cannot reuse the connection.
    scene.connection = scene.stage.connect();
    Ok(answers)
}

/// Wrong tokens, paths and methods.
async fn wrong_tokens_and_paths(scene: &mut Fixture) -> anyhow::Result<Vec<Case>> {
    let body = seats_of(&scene.open, &scene.open.1[..1]);
    let reserve = Request::post("/api/seats/reserve", &body);
    let stranger = scene.stage.buyer().await?;
    let tampered = format!("{}x", stranger.token);
    let wrong_method = Request { method: "DELETE", path: "/api/seats/reserve", ..Request::default() };
    let mut answers = Vec::new();
    for (case, request, status, code) in [
        ("no token", reserve.clone(), 401, "auth.required"),
        ("a token that was changed", reserve.clone().by(&tampered), 401, "auth.token_invalid"),
        ("no token but a word", reserve.by("please"), 401, "auth.token_invalid"),
        ("a bad id in the path", Request::get("/api/seats/events/tonight"), 400, "http.bad_path"),
        ("an unknown path", Request::get("/api/seats/free"), 404, "http.not_found"),
        ("a wrong method", wrong_method, 405, "http.method_not_allowed"),
        (
            "an operator's page",
            Request::get("/api/admin/seat-layouts").by(&stranger.token),
            403,
            "auth.admin_required",
        ),
    ] {
        answers.push(Case { what: case, answer: scene.connection.send(&request).await?, status, code });
    }
    Ok(answers)
}

async fn bad_input_is_refused(stage: Stage) -> anyhow::Result<()> {
    let mut scene = Fixture::new(stage).await?;
    let before = scene.maps().await?;
    let mut answers = wrong_holds(&mut scene).await?;
    answers.extend(wrong_tokens_and_paths(&mut scene).await?);
    for Case { what: case, answer, status, code } in &answers {
        assert_eq!((answer.status, answer.code().as_str()), (*status, *code), "{case}: {}", answer.show());
        let body = answer.json();
        assert_eq!(body["status"], *status, "{case}: {}", answer.show());
        assert!(body["requestId"].is_string() && body["message"].is_string(), "{case}: {}", answer.show());
    }
    assert_eq!(scene.maps().await?, before, "no seat map changed");
    let live = shop::live_reservations(&mut scene.connection, &scene.buyer.token).await?;
    assert_eq!(live, vec![], "no seat is held");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_with_its_own_code_and_changes_nothing() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    bad_input_is_refused(Stage::embedded(dir.path()).await?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn idempotency_key_is_per_request_and_reservation_per_buyer() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let stage = Stage::embedded(dir.path()).await?;
    let (event, seats) = stage.event(-60).await?;
    let (ann, bob) = (stage.buyer().await?, stage.buyer().await?);
    let mut connection = stage.connect();

    let first = shop::hold(&mut connection, &ann.token, event, &seats[..2], "one").await?;
    let held = Reservation::from_answer(&first)?;
    let again = shop::hold(&mut connection, &ann.token, event, &seats[..2], "one").await?;
    assert_eq!(Reservation::from_answer(&again)?, held, "the same key gets the same response");
    let other = shop::hold(&mut connection, &ann.token, event, &seats[2..4], "one").await?;
    assert_eq!((other.status, other.code().as_str()), (422, "tickets.idempotency_key_reused"));
    let third = shop::hold(&mut connection, &ann.token, event, &seats[2..5], "three").await?;
    assert_eq!((third.status, third.code().as_str()), (409, "tickets.user_limit"), "four seats per buyer");

    let taken = shop::hold(&mut connection, &bob.token, event, &seats[1..3], "one").await?;
    assert_eq!((taken.status, taken.code().as_str()), (409, "tickets.seats_taken"), "keys are per user");
    for answer in [
        shop::reservation(&mut connection, &bob.token, held.id).await?,
        shop::release(&mut connection, &bob.token, held.id).await?,
    ] {
        assert_eq!((answer.status, answer.code().as_str()), (404, "tickets.reservation_not_found"));
    }
    let found = shop::reservation(&mut connection, &ann.token, held.id).await?;
    assert_eq!(Reservation::from_answer(&found)?, held, "the refused release changed nothing");

    let released = shop::release(&mut connection, &ann.token, held.id).await?;
    assert_eq!(Reservation::from_answer(&released)?.status, "cancelled");
    let bobs = shop::hold(&mut connection, &bob.token, event, &seats[1..3], "two").await?;
    let bobs = Reservation::from_answer(&bobs)?;
    let before = held.seats.iter().find(|seat| seat.id == seats[1]).map(|seat| seat.fencing_token);
    let after = bobs.seats.iter().find(|seat| seat.id == seats[1]).map(|seat| seat.fencing_token);
    assert!(before < after, "the fence grows: {before:?} {after:?}");
    Ok(())
}
