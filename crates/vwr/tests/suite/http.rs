//! The public routes: JSON, cookies, error codes, and required roles.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    http::{HeaderMap, Method, Request, StatusCode, header},
    response::Response,
};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use urr_kernel::{Actor, EventId};
use urr_passes::{
    Secret,
    vwr_pass::{self, LIFETIME},
};
use urr_vwr::Service;

use super::world::{World, background, passes, secrets};

/// A browser that keeps its cookies.
#[derive(Default)]
pub(crate) struct Browser(pub(crate) BTreeMap<String, String>);

impl Browser {
    pub(crate) async fn send(&mut self, world: &World, method: Method, path: &str) -> Response {
        self.send_to(&world.service, method, path).await
    }

    async fn send_to(&mut self, service: &Arc<Service>, method: Method, path: &str) -> Response {
        let cookies: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::COOKIE, cookies.join("; "))
            .body(Body::empty())
            .unwrap();
        let answer = axum::Router::from(urr_vwr::routes(service)).oneshot(request).await.unwrap();
        self.keep(answer.headers());
        answer
    }

    fn keep(&mut self, headers: &HeaderMap) {
        for line in headers.get_all(header::SET_COOKIE) {
            let line = line.to_str().unwrap();
            assert!(line.contains("; HttpOnly; SameSite=Lax") && line.contains("Path=/;"), "{line}");
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            self.0.insert(name.to_owned(), value.to_owned());
        }
    }
}

async fn operate(world: &World, actor: Actor, method: Method, path: &str, body: &str) -> Response {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONTENT_LENGTH, body.len())
        .extension(actor)
        .body(Body::from(body.to_owned()))
        .unwrap();
    axum::Router::from(urr_vwr::routes(&world.service)).oneshot(request).await.unwrap()
}

pub(crate) async fn json_of(response: Response) -> Value {
    let body = to_bytes(response.into_body(), 1_000_000).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn has(body: &Value, names: &[&str]) {
    for name in names {
        assert!(!body[name].is_null(), "{name} is missing in {body}");
    }
}

pub(crate) async fn a_browser_gets_one_position_under_both_prefixes(world: &World) {
    let event = world.open().await;
    let (mut browser, mut other) = (Browser::default(), Browser::default());
    let assign = format!("/vwr-api/vwr/assign/{event}");
    let first = json_of(browser.send(world, Method::POST, &assign).await).await;
    has(&first, &["requestId", "position", "estimatedWait", "servingCounter"]);
    let again = json_of(browser.send(world, Method::POST, &format!("/vwr/assign/{event}")).await).await;
    assert_eq!(again["requestId"], first["requestId"]);
    let behind = json_of(other.send(world, Method::POST, &assign).await).await;
    assert_eq!((&first["position"], &behind["position"]), (&json!(1), &json!(2)));

    let check = format!("/vwr-api/vwr/check/{event}/{}", first["requestId"].as_str().unwrap());
    let waiting = json_of(browser.send(world, Method::GET, &check).await).await;
    has(&waiting, &["position", "servingCounter", "totalInQueue", "ahead", "estimatedWait", "nextPoll"]);
    assert_eq!((&waiting["admitted"], &waiting["token"]), (&json!(false), &Value::Null));
    let advance = format!("/api/admin/vwr/advance/{event}");
    let operator = world.operator().actor;
    let advanced =
        json_of(operate(world, operator, Method::POST, &advance, r#"{"batchSize":1}"#).await).await;
    assert_eq!(advanced, json!({"eventId": event, "servingCounter": 1, "advanced": 1, "status": "advanced"}));
    let admitted = json_of(browser.send(world, Method::GET, &check).await).await;
    assert_eq!(admitted["admitted"], true);
    assert_eq!(browser.0[&vwr_pass::cookie(event)], admitted["token"].as_str().unwrap());
    let same = json_of(browser.send(world, Method::GET, &check).await).await;
    assert_eq!(same["token"], admitted["token"]);

    let stolen = other.send(world, Method::GET, &check).await;
    assert_eq!(stolen.status(), StatusCode::FORBIDDEN);
    assert_eq!(json_of(stolen).await["code"], "vwr.not_your_place");
}

pub(crate) async fn two_tabs_at_two_events_keep_both_positions(world: &World) {
    let (mut browser, mut tabs) = (Browser::default(), Vec::new());
    for _ in 0..2 {
        // Neither request has the other's cookies yet.
        let (event, mut tab) = (world.open().await, Browser::default());
        let place = json_of(tab.send(world, Method::POST, &format!("/vwr/assign/{event}")).await).await;
        tabs.push((event, place));
        browser.0.append(&mut tab.0);
    }
    for (event, place) in tabs {
        let check = format!("/vwr/check/{event}/{}", place["requestId"].as_str().unwrap());
        assert_eq!(browser.send(world, Method::GET, &check).await.status(), StatusCode::OK);
        let again = json_of(browser.send(world, Method::POST, &format!("/vwr/assign/{event}")).await).await;
        assert_eq!((&again["position"], &again["requestId"]), (&json!(1), &place["requestId"]));
    }
}

/// As in operations.md: the new secret first, the old one after it, and the new one alone a day
/// later.
pub(crate) async fn a_position_survives_the_rotation_of_secrets(world: &World) {
    let event = world.open().await;
    let mut browser = Browser::default();
    let assign = format!("/vwr/assign/{event}");
    browser.send(world, Method::POST, &assign).await;
    let before = browser.0.clone();
    let next = || Secret::new("another secret for tests, of more than 32 bytes").unwrap();
    for secrets in [[vec![next()], secrets()].concat(), vec![next()]] {
        let restarted = world.another(secrets);
        restarted.refresh().await.unwrap();
        let place = json_of(browser.send_to(&restarted, Method::POST, &assign).await).await;
        assert_eq!(place["position"], 1, "{place}");
        let check = format!("/vwr/check/{event}/{}", place["requestId"].as_str().unwrap());
        assert_eq!(browser.send_to(&restarted, Method::GET, &check).await.status(), StatusCode::OK);
    }
    assert!(before.iter().all(|(name, value)| browser.0[name] != *value), "every cookie is signed again");
}

pub(crate) async fn the_shared_document_may_be_cached_for_a_second(world: &World) {
    let event = world.open().await;
    let mut browser = Browser::default();
    browser.send(world, Method::POST, &format!("/vwr/assign/{event}")).await;
    world.service.refresh().await.unwrap();
    let answer = browser.send(world, Method::GET, &format!("/vwr/serving/{event}")).await;
    assert_eq!(answer.headers()[header::CACHE_CONTROL], "public, max-age=1");
    assert!(!answer.headers().contains_key(header::SET_COOKIE));
    let document = json_of(answer).await;
    let expected = json!({"eventId": event, "isActive": true, "paused": false, "servingCounter": 0,
                          "totalInQueue": 1, "rate": 0, "epoch": 1});
    assert_eq!(document, expected);
    let status = json_of(browser.send(world, Method::GET, &format!("/vwr/status/{event}")).await).await;
    let expected =
        json!({"eventId": event, "isActive": true, "totalInQueue": 1, "serving": 0, "waitingCount": 1});
    assert_eq!(status, expected);
}

pub(crate) async fn missing_rooms_and_tickets_have_error_codes(world: &World) {
    let (event, nobody): (EventId, EventId) = (world.open().await, world.ids.next());
    for (method, path, status, code) in [
        (Method::GET, format!("/vwr/status/{nobody}"), 404, "vwr.room_not_found"),
        (Method::GET, format!("/vwr/serving/{nobody}"), 404, "vwr.room_not_found"),
        (Method::POST, format!("/vwr/assign/{nobody}"), 404, "vwr.not_active"),
        (Method::GET, format!("/vwr/check/{event}/rubbish"), 404, "vwr.position_not_found"),
        (Method::GET, "/vwr/status/not-a-uuid".to_owned(), 400, "http.bad_path"),
        (Method::POST, "/vwr-api/vwr/assign/not-a-uuid".to_owned(), 400, "http.bad_path"),
    ] {
        let answer = Browser::default().send(world, method, &path).await;
        assert_eq!(answer.status().as_u16(), status, "{path}");
        assert_eq!(json_of(answer).await["code"], code, "{path}");
    }
}

pub(crate) async fn operator_routes_require_the_role_and_return_the_result(world: &World) {
    let event = world.open().await;
    let operator = world.operator().actor;
    for (method, verb, body, status) in [
        (Method::POST, "activate", r#"{"rate":70,"failOpen":true}"#, "activated"),
        (Method::POST, "activate", "", "activated"),
        (Method::PUT, "rate", r#"{"rate":30}"#, "rate_changed"),
        (Method::POST, "pause", "", "paused"),
        (Method::POST, "resume", "", "resumed"),
        (Method::POST, "advance", "", "caught_up"),
        (Method::POST, "deactivate", "", "deactivated"),
    ] {
        let path = format!("/api/admin/vwr/{verb}/{event}");
        let refused = operate(world, Actor::Anonymous, method.clone(), &path, body).await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{path}");
        let done = operate(world, operator, method, &path, body).await;
        assert_eq!(done.status(), StatusCode::OK, "{path}");
        assert_eq!(json_of(done).await["status"], status, "{path}");
    }
    let path = format!("/api/admin/vwr/status/{event}");
    let refused = operate(world, Actor::Anonymous, Method::GET, &path, "").await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let shown = json_of(operate(world, operator, Method::GET, &path, "").await).await;
    has(&shown, &["eventId", "isActive", "nextPosition", "servingCounter", "waiting"]);
    assert_eq!(
        (&shown["rate"], &shown["failOpen"], &shown["isActive"]),
        (&json!(30), &json!(true), &json!(false))
    );
    assert_eq!(shown["actions"].as_array().unwrap().len(), 8);
    assert_eq!(shown["actions"][0]["what"], "deactivate");
    assert_eq!(shown["actions"][0]["actor"], json!(operator.user()));
    let path = "/api/admin/vwr/rooms";
    let refused = operate(world, Actor::Anonymous, Method::GET, path, "").await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    world.service.refresh().await.unwrap();
    let later = world.open().await;
    let listed = json_of(operate(world, operator, Method::GET, path, "").await).await;
    let found: Vec<&Value> =
        listed["rooms"].as_array().unwrap().iter().map(|room| &room["eventId"]).collect();
    assert_eq!(found, [&json!(later), &json!(event)], "latest first: {listed}");
    has(&listed["rooms"][0], &["openedAt", "isActive", "paused", "rate", "waiting"]);
    let rubbish = operate(world, operator, Method::PUT, &format!("/api/admin/vwr/rate/{event}"), "{}").await;
    assert_eq!(rubbish.status(), StatusCode::BAD_REQUEST);
}

pub(crate) async fn the_live_view_covers_closed_and_open_rooms(world: &World) {
    let (event, sampling) = (world.ids.next::<EventId>(), background(&world.service, "vwr.sampling"));
    let path = format!("/api/admin/vwr/live/{event}");
    let refused = operate(world, Actor::Anonymous, Method::GET, &path, "").await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let answer = operate(world, world.operator().actor, Method::GET, &path, "").await;
    assert_eq!(
        (answer.status(), &answer.headers()[header::CONTENT_TYPE]),
        (StatusCode::OK, &"text/event-stream".parse().unwrap())
    );
    let mut stream = answer.into_body();
    let mut next = async || {
        let piece = stream.frame().await.unwrap().unwrap().into_data().unwrap();
        let text = String::from_utf8(piece.to_vec()).unwrap();
        let sample = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or("null");
        serde_json::from_str::<Value>(sample).unwrap()
    };
    assert_eq!(next().await, Value::Null, "no sample yet");
    world.service.refresh().await.unwrap();
    sampling.run().await.unwrap();
    let before = next().await;
    assert_eq!((&before["room"], &before["reachable"]), (&Value::Null, &json!(true)));

    let operator = world.operator().actor;
    operate(world, operator, Method::POST, &format!("/api/admin/vwr/activate/{event}"), "").await;
    sampling.run().await.unwrap();
    assert_eq!(next().await["room"]["isActive"], json!(true));
    for _ in 0..2 {
        Browser::default().send(world, Method::POST, &format!("/vwr/assign/{event}")).await;
    }
    world.service.refresh().await.unwrap();
    sampling.run().await.unwrap();
    let during = next().await;
    assert_eq!((&during["room"]["waiting"], &during["wait"]), (&json!(2), &json!(1)));
    assert!(during["arrived"].as_f64().unwrap() > 0.0 && during["admitted"] == json!(0.0), "{during}");

    operate(world, operator, Method::POST, &format!("/api/admin/vwr/pause/{event}"), "").await;
    sampling.run().await.unwrap();
    assert_eq!(next().await["wait"], Value::Null, "no estimate while admissions are stopped");
    operate(world, operator, Method::POST, &format!("/api/admin/vwr/deactivate/{event}"), "").await;
    sampling.run().await.unwrap();
    let after = next().await;
    assert_eq!((&after["room"]["isActive"], &after["wait"]), (&json!(false), &json!(0)));
}

pub(crate) async fn the_page_works_without_javascript(world: &World) {
    let event = world.open().await;
    let mut browser = Browser::default();
    let page = browser.send(world, Method::GET, &format!("/vwr/{event}?to=/queue/{event}")).await;
    assert_eq!(page.status(), StatusCode::OK);
    assert!(browser.0.is_empty(), "loading the page takes no position");
    let text = text_of(page).await;
    assert!(text.contains(&format!("url=/vwr/{event}?plain=1&amp;to=/queue/{event}")), "{text}");

    let plain = format!("/vwr/{event}?plain=1&to=/queue/{event}");
    for _ in 0..2 {
        let waiting = browser.send(world, Method::GET, &plain).await;
        assert_eq!(waiting.headers()[header::CACHE_CONTROL], "no-store");
        let text = text_of(waiting).await;
        assert!(text.contains("http-equiv=\"refresh\"") && text.contains("<dd>1</dd>"), "{text}");
    }
    let text = text_of(browser.send(world, Method::GET, &plain).await).await;
    assert!(text.contains(">일시 중지<") && !text.contains("분</dd>"), "no estimate: {text}");
    let operator = world.operator().actor;
    operate(world, operator, Method::PUT, &format!("/api/admin/vwr/rate/{event}"), r#"{"rate":1}"#).await;
    let text = text_of(browser.send(world, Method::GET, &plain).await).await;
    assert!(text.contains("<dd>1분</dd>") && !text.contains("일시 중지"), "{text}");
    operate(world, operator, Method::POST, &format!("/api/admin/vwr/advance/{event}"), "").await;
    let turn = browser.send(world, Method::GET, &plain).await;
    assert_eq!(turn.status(), StatusCode::FOUND);
    assert_eq!(turn.headers()[header::LOCATION].to_str().unwrap(), format!("/queue/{event}"));
    assert!(browser.0.contains_key(&vwr_pass::cookie(event)));

    let elsewhere = format!("/vwr/{}?plain=1&to=//evil.example", world.ids.next::<EventId>());
    let nobody_waits = browser.send(world, Method::GET, &elsewhere).await;
    assert_eq!(nobody_waits.status(), StatusCode::FOUND);
    assert!(nobody_waits.headers()[header::LOCATION].to_str().unwrap().starts_with("/events/"));
}

pub(crate) async fn one_browser_holds_passes_for_two_events(world: &World) {
    let operator = world.operator().actor;
    let events = [world.open().await, world.open().await];
    let mut browser = Browser::default();
    for event in events {
        let plain = format!("/vwr/{event}?plain=1");
        browser.send(world, Method::GET, &plain).await;
        operate(world, operator, Method::POST, &format!("/api/admin/vwr/advance/{event}"), "").await;
        assert_eq!(browser.send(world, Method::GET, &plain).await.status(), StatusCode::FOUND);
    }
    let edge = |event: EventId| format!("/edge/check?event={event}");
    for event in events {
        assert_eq!(browser.send(world, Method::GET, &edge(event)).await.status(), StatusCode::OK);
    }
    // A client that only knows the older name of the cookie.
    let token = browser.0[&vwr_pass::cookie(events[0])].clone();
    let mut older = Browser(BTreeMap::from([("urr-vwr-token".to_owned(), token)]));
    for (event, status) in events.into_iter().zip([StatusCode::OK, StatusCode::FOUND]) {
        assert_eq!(older.send(world, Method::GET, &edge(event)).await.status(), status);
    }
}

pub(crate) async fn text_of(response: Response) -> String {
    let body = to_bytes(response.into_body(), 1_000_000).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

pub(crate) async fn the_edge_check_admits_by_pass(world: &World) {
    let event = world.open().await;
    let nobody: EventId = world.ids.next();
    let mut browser = Browser::default();
    let edge = |event: EventId, rest: &str| format!("/edge/check?event={event}{rest}");
    assert_eq!(browser.send(world, Method::GET, &edge(nobody, "")).await.status(), StatusCode::OK);

    let way = format!("/vwr/{event}?to=/shop%3Fx%3D1");
    for (method, rest, status) in [
        (Method::GET, "&to=/shop?x=1", StatusCode::FOUND),
        (Method::POST, "&to=/shop?x=1", StatusCode::FOUND),
        (Method::GET, "&deny=401&to=/shop?x=1", StatusCode::UNAUTHORIZED),
        (Method::GET, "&deny=403&to=/shop?x=1", StatusCode::FORBIDDEN),
    ] {
        let answer = browser.send(world, method, &edge(event, rest)).await;
        assert_eq!(answer.status(), status, "{rest}");
        assert_eq!(answer.headers()[header::LOCATION].to_str().unwrap(), way);
    }
    let away = browser.send(world, Method::GET, &edge(event, "&to=//evil.example")).await;
    assert_eq!(away.headers()[header::LOCATION].to_str().unwrap(), format!("/vwr/{event}?to=/"));

    let plain = format!("/vwr/{event}?plain=1");
    browser.send(world, Method::GET, &plain).await;
    let operator = world.operator().actor;
    operate(world, operator, Method::POST, &format!("/api/admin/vwr/advance/{event}"), "").await;
    browser.send(world, Method::GET, &plain).await;
    let fresh = browser.send(world, Method::GET, &edge(event, "")).await;
    assert_eq!((fresh.status(), fresh.headers().get(header::SET_COOKIE)), (StatusCode::OK, None));
    // An old pass is renewed by using it.
    let held = passes().verify(&browser.0[&vwr_pass::cookie(event)], world.clock.now()).unwrap();
    let minutes_ago = world.clock.now().before(LIFETIME / 2 + Duration::from_secs(2));
    let old = passes().sign(&held.pass, held.id, minutes_ago);
    browser.0.insert(vwr_pass::cookie(event), old);
    assert_eq!(browser.send(world, Method::POST, &edge(event, "")).await.status(), StatusCode::OK);
    let renewed = passes().verify(&browser.0[&vwr_pass::cookie(event)], world.clock.now()).unwrap();
    assert_eq!((renewed.pass, renewed.id), (held.pass, held.id));
    assert!(renewed.expires > world.clock.now().after(LIFETIME / 2), "the pass has a new lifetime");
    let stranger = Browser::default().send(world, Method::GET, &edge(event, "")).await;
    assert_eq!(stranger.status(), StatusCode::FOUND);
    operate(world, operator, Method::POST, &format!("/api/admin/vwr/deactivate/{event}"), "").await;
    let stranger = Browser::default().send(world, Method::GET, &edge(event, "")).await;
    assert_eq!(stranger.status(), StatusCode::OK, "the room is closed");
    operate(world, operator, Method::POST, &format!("/api/admin/vwr/activate/{event}"), "").await;
    let again = browser.send(world, Method::GET, &edge(event, "")).await;
    assert_eq!(again.status(), StatusCode::FOUND, "a pass of an earlier opening is refused");
    assert!(again.headers().get(header::SET_COOKIE).is_none());
}
