//! Public routes: field names, status codes and permissions.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Router,
    body::Body,
    http::{Method, Request},
};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use urr_contracts::catalog::{Catalog, CreateEvent, internal_routes};
use urr_http::StatusCode;
use urr_kernel::{Actor, EventId, Role};
use urr_rpc::internal_guard;
use urr_testkit::INTERNAL_TOKEN;

use crate::world::{HOUR, World, ticket_type};

impl World {
    fn as_admin(&self) -> Actor {
        Actor::User { id: self.ids.next(), role: Role::Admin }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        actor: Actor,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let mut request = Request::builder().method(method).uri(path).extension(actor);
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        answer(urr_catalog::routes(&self.service).into(), request.body(body).unwrap()).await
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.ask(Method::GET, path, Actor::Anonymous, None).await
    }

    fn new_event(&self) -> Value {
        let now = self.clock.now();
        json!({
            "title": "막차까지",
            "description": null,
            "venue": "차고지 라이브홀",
            "eventDate": now.after(2 * HOUR),
            "saleStartDate": now.before(HOUR),
            "saleEndDate": now.after(HOUR),
            "posterImageUrl": "",
            "seatLayoutId": null,
            "ticketTypes": [{ "name": "스탠딩", "price": 88_000, "totalQuantity": 500, "description": null }],
            "status": "on_sale",
        })
    }
}

async fn answer(routes: Router, request: Request<Body>) -> (StatusCode, Value) {
    let response = routes.oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{status}: not JSON: {body:?}")))
}

fn keys(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

const ROW: [&str; 17] = [
    "id",
    "title",
    "description",
    "venue",
    "address",
    "event_date",
    "sale_start_date",
    "sale_end_date",
    "poster_image_url",
    "status",
    "seat_layout_id",
    "artist_name",
    "ticket_type_count",
    "min_price",
    "max_price",
    "places",
    "places_reserved",
];

const FULL: [&str; 7] = [
    "max_seats_per_reservation",
    "max_seats_per_user",
    "created_at",
    "updated_at",
    "artist_id",
    "created_by",
    "pre_scaled",
];

fn full_keys() -> BTreeSet<&'static str> {
    ROW.into_iter().chain(FULL).collect()
}

pub(crate) async fn the_list_has_all_documented_fields_and_pagination(world: &World) {
    for title in ["가", "나", "다"] {
        world.create(CreateEvent { artist_name: Some("네온까치".to_owned()), ..world.standing(title) }).await;
        world.clock.advance(HOUR / 60);
    }
    let (status, body) = world.get("/api/events?limit=2").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body["pagination"], json!({ "page": 1, "limit": 2, "total": 3, "totalPages": 2 }));
    assert_eq!(keys(&body["events"][0]), BTreeSet::from(ROW));
    assert_eq!(body["events"][0]["title"], "가");
    assert_eq!(body["events"][0]["status"], "on_sale");
    assert_eq!(body["events"][0]["min_price"], 88_000);
    assert_eq!(body["events"][0]["address"], Value::Null);
    assert_eq!(body["events"][0]["sale_start_date"], "2026-06-01T02:00:00Z");

    let (_, body) = world.get("/api/events?page=2&limit=2&status=on_sale").await;
    assert_eq!(body["events"].as_array().unwrap().len(), 1);
    let (_, body) = world.get("/api/events").await;
    assert_eq!(body["pagination"], json!({ "page": 1, "limit": 10, "total": 3, "totalPages": 1 }));
    let (_, body) = world.get("/api/events?q=%EA%B0%80&status=").await;
    assert_eq!(body["pagination"]["total"], 1);
    let (_, body) = world.get("/api/events?status=cancelled").await;
    assert_eq!(
        body,
        json!({ "events": [], "pagination": { "page": 1, "limit": 10, "total": 0, "totalPages": 0 } })
    );
}

pub(crate) async fn an_invalid_query_is_a_400_with_an_error_code(world: &World) {
    for (path, code) in [
        ("/api/events?page=0", "catalog.invalid"),
        ("/api/events?limit=0", "catalog.invalid"),
        ("/api/events?limit=101", "catalog.invalid"),
        ("/api/events?q=a%00b", "catalog.invalid"),
        ("/api/events?page=-1", "http.bad_query"),
        ("/api/events?page=one", "http.bad_query"),
        ("/api/events?status=sold_out", "http.bad_query"),
        ("/api/events/not-a-uuid", "http.bad_path"),
    ] {
        let (status, body) = world.get(path).await;
        assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!(code)), "{path}");
        assert_eq!(body["error"], body["message"], "{path}");
    }
    let (status, body) = world.get(&format!("/api/events/{}", world.ids.next::<EventId>())).await;
    assert_eq!((status, &body["code"]), (StatusCode::NOT_FOUND, &json!("catalog.event_not_found")));
    assert_eq!(body["error"], "There is no such event");
}

pub(crate) async fn one_event_has_every_documented_field(world: &World) {
    let ticket_types = vec![ticket_type("스탠딩", 88_000, 500), ticket_type("발코니", 99_000, 60)];
    let made = world.create(CreateEvent { ticket_types, ..world.standing("막차까지") }).await;
    let (status, body) = world.get(&format!("/api/events/{}", made.event.id)).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(keys(&body), BTreeSet::from(["event", "ticketTypes"]));
    assert_eq!(keys(&body["event"]), full_keys());
    assert_eq!(body["event"]["seat_layout_id"], Value::Null, "a standing event has no layout");
    let types = body["ticketTypes"].as_array().unwrap();
    assert_eq!(types.len(), 2);
    let balcony = json!({
        "id": made.ticket_types[0].id, "name": "발코니", "price": 99_000, "total_quantity": 60,
        "available_quantity": 60, "description": "",
    });
    assert_eq!(types[0], balcony);

    let seated = world.create(world.seated("궤도", "small_theater").await).await.event;
    let (_, body) = world.get(&format!("/api/events/{}", seated.id)).await;
    assert_eq!(body["event"]["seat_layout_id"], json!(seated.layout));
    assert_eq!(body["ticketTypes"], json!([]));
}

pub(crate) async fn an_admin_creates_and_cancels_an_event(world: &World) {
    let post =
        async |path: &str, body: Option<&Value>| world.ask(Method::POST, path, world.as_admin(), body).await;
    let (status, body) = post("/api/admin/events", Some(&world.new_event())).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    assert_eq!(body["message"], "Event created successfully");
    assert_eq!(keys(&body["event"]), full_keys());
    assert_eq!(
        (&body["event"]["title"], &body["event"]["poster_image_url"]),
        (&json!("막차까지"), &Value::Null)
    );

    let id = body["event"]["id"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        let (status, body) = post(&format!("/api/admin/events/{id}/cancel"), None).await;
        assert_eq!((status, &body["event"]["status"]), (StatusCode::OK, &json!("cancelled")));
        assert_eq!(body["message"], "Event cancelled successfully");
    }

    for (change, code) in [
        (json!({ "title": "" }), "catalog.invalid"),
        (json!({ "saleEndDate": world.clock.now().before(2 * HOUR) }), "catalog.invalid"),
        (json!({ "ticketTypes": null }), "catalog.invalid"),
        (json!({ "saleEndDate": "2026-06-01T10:00:00" }), "http.bad_request"),
        (json!({ "seatLayoutId": "the large one" }), "http.bad_request"),
        (json!({ "ticketTypes": [{ "name": "a", "price": -1, "totalQuantity": 1 }] }), "http.bad_request"),
        (json!({ "ticketTypes": [{ "name": "a", "price": 1, "totalQuantity": -1 }] }), "http.bad_request"),
    ] {
        let mut event = world.new_event();
        event.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let (status, body) = post("/api/admin/events", Some(&event)).await;
        assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!(code)), "{change}: {body}");
    }
    let mut elsewhere = world.new_event();
    elsewhere["ticketTypes"] = json!([]);
    elsewhere["seatLayoutId"] = json!(world.ids.next::<EventId>());
    let (status, body) = post("/api/admin/events", Some(&elsewhere)).await;
    assert_eq!((status, &body["code"]), (StatusCode::NOT_FOUND, &json!("catalog.layout_not_found")));
    let (status, body) = post("/api/admin/events/no-uuid/cancel", None).await;
    assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!("http.bad_path")));
    let (status, _) = post(&format!("/api/admin/events/{}/cancel", world.ids.next::<EventId>()), None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(world.count().await, 1, "rejected requests change nothing");
}

pub(crate) async fn halls_are_listed_for_admins(world: &World) {
    let (status, body) = world.ask(Method::GET, "/api/admin/seat-layouts", world.as_admin(), None).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body["layouts"].as_array().unwrap().len(), 4);
    let small = &body["layouts"][0];
    assert_eq!(keys(small), BTreeSet::from(["id", "name", "description", "total_seats", "layout_config"]));
    assert_eq!((&small["name"], &small["total_seats"]), (&json!("small_theater"), &json!(265)));
    let vip = json!({ "name": "VIP", "grade": null, "rows": 3, "seatsPerRow": 10, "price": 150_000, "startRow": 1 });
    assert_eq!(small["layout_config"]["sections"][0], vip);
}

pub(crate) async fn admin_routes_reject_anonymous_callers_and_buyers(world: &World) {
    let event = world.create(world.standing("궤도")).await.event;
    let cancel = format!("/api/admin/events/{}/cancel", event.id);
    let (good, bad) = (world.new_event(), json!({ "title": 7 }));
    let buyer = Actor::User { id: world.ids.next(), role: Role::User };
    for (method, path, body) in [
        (Method::GET, "/api/admin/seat-layouts", None),
        (Method::POST, "/api/admin/events", Some(&good)),
        (Method::POST, "/api/admin/events", Some(&bad)),
        (Method::POST, &cancel, None),
        (Method::POST, "/api/admin/events/no-uuid/cancel", None),
    ] {
        let (status, answer) = world.ask(method.clone(), path, Actor::Anonymous, body).await;
        assert_eq!((status, &answer["code"]), (StatusCode::UNAUTHORIZED, &json!("auth.required")), "{path}");
        let (status, answer) = world.ask(method, path, buyer, body).await;
        assert_eq!(
            (status, &answer["code"]),
            (StatusCode::FORBIDDEN, &json!("auth.admin_required")),
            "{path}"
        );
    }
    assert_eq!(world.event(event.id).await.event, event);
    assert_eq!(world.count().await, 1);
}

pub(crate) async fn internal_routes_require_the_token(world: &World) {
    let service = Arc::clone(&world.service) as Arc<dyn Catalog>;
    let routes =
        internal_guard(internal_routes(service, world.clock.clone(), world.ids.clone()), INTERNAL_TOKEN);
    for method in
        ["sale", "seats", "find_seats", "events", "event", "layouts", "create_event", "cancel_event"]
    {
        for (token, expected) in
            [(None, StatusCode::UNAUTHORIZED), (Some("Bearer wrong"), StatusCode::FORBIDDEN)]
        {
            let mut request = Request::post(format!("/internal/catalog/{method}"));
            if let Some(token) = token {
                request = request.header("authorization", token);
            }
            let (status, _) = answer(routes.clone(), request.body(Body::empty()).unwrap()).await;
            assert_eq!(status, expected, "{method}");
        }
    }
}
