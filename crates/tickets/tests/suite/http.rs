//! Public routes: bodies, status codes, and sign-in checks.

use axum::{
    body::{Body, to_bytes},
    http::{HeaderValue, Method, Request, StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use urr_http::EntryGuard;
use urr_kernel::{Actor, ReservationId, SeatId, limits::MAX_IDEMPOTENCY_KEY_LEN};

use crate::world::World;

/// Sends one request through the routes, as the edge would.
async fn send(world: &World, actor: Actor, method: Method, path: &str, body: &str) -> Response {
    pass_on(world, request(actor, method, path, body)).await
}

async fn pass_on(world: &World, request: Request<Body>) -> Response {
    axum::Router::from(urr_tickets::routes(&world.service)).oneshot(request).await.unwrap()
}

fn request(actor: Actor, method: Method, path: &str, body: &str) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .extension(actor)
        .extension(EntryGuard::new(None, None))
        .body(Body::from(body.to_owned()))
        .unwrap()
}

/// Requests seats, with an idempotency key in the header if given.
async fn reserve(world: &World, buyer: Actor, key: Option<&str>, body: &Value) -> (StatusCode, Value) {
    let mut request = request(buyer, Method::POST, "/api/seats/reserve", &body.to_string());
    if let Some(key) = key {
        request.headers_mut().insert("idempotency-key", HeaderValue::from_bytes(key.as_bytes()).unwrap());
    }
    let response = pass_on(world, request).await;
    (response.status(), json_of(response).await)
}

async fn json_of(response: Response) -> Value {
    let body = to_bytes(response.into_body(), 10_000_000).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

pub(crate) async fn a_reservation_has_the_documented_field_names(world: &World) {
    let (event, seats) = world.event(2);
    let buyer = world.buyer().actor;
    let body =
        json!({"eventId": event, "seatIds": [seats[0]], "idempotencyKey": "k", "unknown": 1}).to_string();
    let response = send(world, buyer, Method::POST, "/api/seats/reserve", &body).await;
    assert_eq!(response.status(), StatusCode::OK);
    let answer = json_of(response).await;
    let made = &answer["reservation"];
    for name in ["id", "reservationNumber", "totalAmount", "expiresAt", "seats", "fencingToken"] {
        assert!(!made[name].is_null(), "{name} is missing in {answer}");
    }
    assert_eq!((&made["status"], &made["totalAmount"]), (&json!("pending"), &json!(100_000)));

    let path = format!("/api/reservations/{}", made["id"].as_str().unwrap());
    let read = json_of(send(world, buyer, Method::GET, &path, "").await).await;
    let mine = json_of(send(world, buyer, Method::GET, "/api/reservations/my", "").await).await;
    assert_eq!(mine["reservations"][0], read["reservation"]);
    let read = &read["reservation"];
    for name in [
        "reservation_number",
        "total_amount",
        "payment_status",
        "expires_at",
        "created_at",
        "event_id",
        "event_date",
    ] {
        assert!(!read[name].is_null(), "{name} is missing in {read}");
    }
    assert_eq!((&read["id"], &read["event_title"]), (&made["id"], &json!("A night in the crowd")));
    assert_eq!((&read["venue"], &read["payment_method"]), (&json!("The big hall"), &Value::Null));
    let item = &read["items"][0];
    assert_eq!((&item["seatId"], &item["subtotal"]), (&json!(seats[0]), &json!(100_000)));
    let cancelled = json_of(send(world, buyer, Method::POST, &format!("{path}/cancel"), "").await).await;
    assert_eq!(cancelled["reservation"]["status"], "cancelled");
}

pub(crate) async fn a_key_in_the_header_equals_one_in_the_body(world: &World) {
    let (event, seats) = world.event(2);
    let buyer = world.buyer().actor;
    let wish = |seats: &[SeatId]| json!({"eventId": event, "seatIds": seats});
    let (status, first) = reserve(world, buyer, Some("k-1"), &wish(&seats[..1])).await;
    assert_eq!(status, StatusCode::OK, "{first}");
    let again = reserve(world, buyer, Some("k-1"), &wish(&seats[..1])).await;
    assert_eq!(again, (StatusCode::OK, first.clone()));
    let in_the_body = json!({"eventId": event, "seatIds": seats[..1], "idempotencyKey": "k-1"});
    assert_eq!(reserve(world, buyer, None, &in_the_body).await, (StatusCode::OK, first));

    let (status, refused) = reserve(world, buyer, Some("k-1"), &wish(&seats[1..])).await;
    assert_eq!(
        (status, refused["code"].as_str()),
        (StatusCode::UNPROCESSABLE_ENTITY, Some("tickets.idempotency_key_reused"))
    );
    assert!(
        world.hold(&world.buyer(), event, &seats[1..]).await.is_ok(),
        "the rejected request claimed nothing"
    );
}

pub(crate) async fn two_different_keys_are_rejected_without_a_change(world: &World) {
    let (event, seats) = world.event(1);
    let buyer = world.buyer().actor;
    let wish =
        |seats: &[SeatId], key: &str| json!({"eventId": event, "seatIds": seats, "idempotencyKey": key});
    let refused = |(status, body): (StatusCode, Value)| {
        let expected = (StatusCode::BAD_REQUEST, Some("tickets.idempotency_keys_differ"));
        assert_eq!((status, body["code"].as_str()), expected);
    };
    for other in ["body", "HEADER", "", "열쇠"] {
        refused(reserve(world, buyer, Some("header"), &wish(&seats, other)).await);
    }
    let twice = async |keys: [&'static str; 2]| {
        let body = json!({"eventId": event, "seatIds": seats}).to_string();
        let mut request = request(buyer, Method::POST, "/api/seats/reserve", &body);
        for key in keys {
            request.headers_mut().append("idempotency-key", HeaderValue::from_static(key));
        }
        let response = pass_on(world, request).await;
        (response.status(), json_of(response).await)
    };
    refused(twice(["one", "two"]).await);
    assert!(world.facts_of(event).await.is_empty());

    let (status, held) = twice(["one", "one"]).await;
    assert_eq!(status, StatusCode::OK, "the same key in body and header is accepted: {held}");
    assert_eq!(reserve(world, buyer, Some("one"), &wish(&seats, "one")).await, (StatusCode::OK, held));
}

pub(crate) async fn an_invalid_key_in_the_header_is_rejected_without_a_change(world: &World) {
    let (event, seats) = world.event(1);
    let buyer = world.buyer().actor;
    let (longest, too_long) = ("k".repeat(MAX_IDEMPOTENCY_KEY_LEN), "k".repeat(MAX_IDEMPOTENCY_KEY_LEN + 1));
    let wish = json!({"eventId": event, "seatIds": seats, "idempotencyKey": "good"});
    let before = world.map(event).await;
    for bad in ["열쇠", "schlüssel", "", "two words", "a\ttab", &too_long] {
        let (status, refused) = reserve(world, buyer, Some(bad), &wish).await;
        let expected = (StatusCode::BAD_REQUEST, Some("tickets.bad_idempotency_key"));
        assert_eq!((status, refused["code"].as_str()), expected, "{bad:?}");
    }
    assert_eq!(world.map(event).await, before);
    assert!(world.facts_of(event).await.is_empty());
    let mine = json_of(send(world, buyer, Method::GET, "/api/reservations/my", "").await).await;
    assert_eq!(mine["reservations"], json!([]));
    let wish = json!({"eventId": event, "seatIds": seats});
    let (status, held) = reserve(world, buyer, Some(&longest), &wish).await;
    assert_eq!(status, StatusCode::OK, "{held}");
}

#[test]
fn the_api_document_describes_valid_keys() {
    let routes = urr_tickets::described();
    let reserve = routes.iter().find(|route| route.path == "/api/seats/reserve").unwrap();
    let [(name, _, shape)] = reserve.about.headers[..] else { panic!("one header: {:?}", reserve.about) };
    let schema = shape.schema(&mut schemars::SchemaGenerator::default()).to_value();
    assert_eq!((name, &schema["type"]), ("Idempotency-Key", &json!("string")));
    assert_eq!(
        (&schema["minLength"], &schema["maxLength"]),
        (&json!(1), &json!(MAX_IDEMPOTENCY_KEY_LEN)),
        "{schema}"
    );
    // The pattern allows exactly the characters that the rules accept.
    assert_eq!(schema["pattern"], "^[!-~]+$");
    assert!((u8::MIN..=u8::MAX).all(|byte| byte.is_ascii_graphic() == (b'!'..=b'~').contains(&byte)));
}

pub(crate) async fn routes_that_need_a_user_reject_anonymous_requests(world: &World) {
    let (event, seats) = world.event(1);
    let reserve = json!({"eventId": event, "seatIds": seats}).to_string();
    let somebody: ReservationId = world.ids.next();
    for (method, path, body) in [
        (Method::POST, "/api/seats/reserve".to_owned(), reserve.as_str()),
        (Method::GET, "/api/reservations/my".to_owned(), ""),
        (Method::GET, format!("/api/reservations/{somebody}"), ""),
        (Method::POST, format!("/api/reservations/{somebody}/cancel"), ""),
    ] {
        let response = send(world, Actor::Anonymous, method, &path, body).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(json_of(response).await["code"], "auth.required", "{path}");
    }
}

pub(crate) async fn malformed_requests_are_a_400_with_an_error_code(world: &World) {
    let buyer = world.buyer().actor;
    for (method, path, body, code) in [
        (Method::POST, "/api/seats/reserve", "{", "http.bad_json"),
        (Method::POST, "/api/seats/reserve", r#"{"eventId":"x","seatIds":[]}"#, "http.bad_request"),
        (Method::POST, "/api/seats/reserve", r#"{"seatIds":[]}"#, "http.bad_request"),
        (Method::GET, "/api/seats/events/not-a-uuid", "", "http.bad_path"),
        (Method::GET, "/api/reservations/not-a-uuid", "", "http.bad_path"),
        (Method::GET, "/api/reservations/my?limit=many", "", "http.bad_query"),
        (Method::GET, "/api/reservations/my?limit=0", "", "tickets.bad_page"),
    ] {
        let response = send(world, buyer, method, path, body).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path} {body}");
        assert_eq!(json_of(response).await["code"], code, "{path} {body}");
    }
}

pub(crate) async fn an_unchanged_map_is_a_304(world: &World) {
    let (event, seats) = world.event(3);
    let path = format!("/api/seats/events/{event}");
    let first = send(world, Actor::Anonymous, Method::GET, &path, "").await;
    let etag = first.headers()[header::ETAG].clone();
    let map = json_of(first).await;
    assert_eq!(map["event"]["title"], "A night in the crowd");
    for name in ["id", "section", "row_number", "seat_number", "seat_label", "price", "status"] {
        assert!(!map["seats"][0][name].is_null(), "{name} is missing in {map}");
    }
    let again = async || {
        let request = Request::get(&path).header(header::IF_NONE_MATCH, &etag).body(Body::empty()).unwrap();
        axum::Router::from(urr_tickets::routes(&world.service)).oneshot(request).await.unwrap()
    };
    assert_eq!(again().await.status(), StatusCode::NOT_MODIFIED);
    world.hold(&world.buyer(), event, &seats[..1]).await.unwrap();
    world.pass(std::time::Duration::from_secs(1)).await;
    let changed = again().await;
    assert_eq!(changed.status(), StatusCode::OK);
    let statuses = json_of(changed).await;
    assert_eq!(statuses["seats"][0]["status"], "locked");
}
