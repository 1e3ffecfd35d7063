//! The public routes: JSON names, cookies, and required roles.

use std::time::Duration;

use axum::{
    body::{Body, to_bytes},
    http::{HeaderMap, Method, Request, StatusCode, header, request::Builder},
};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use urr_http::{LineSince, OnlyResume};
use urr_kernel::{Actor, OrderKey, Role};
use urr_passes::{
    visitor,
    vwr_pass::{self, Pass, Passes},
};

use crate::{stage::Stage, world::World};

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

impl Answer {
    /// The `Set-Cookie` headers.
    fn cookies(&self) -> Vec<&str> {
        self.headers.get_all(header::SET_COOKIE).iter().map(|line| line.to_str().unwrap()).collect()
    }
}

/// Sends one request to the routes, as the gateway would forward it.
async fn send(world: &World, actor: Actor, method: Method, path: &str, cookie: &str, body: &str) -> Answer {
    let request = request(world, actor, method, path, cookie).body(Body::from(body.to_owned()));
    answer(world, request.unwrap()).await
}

fn request(world: &World, actor: Actor, method: Method, path: &str, cookie: &str) -> Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::COOKIE, cookie)
        .extension(actor)
        .extension(LineSince(Some(world.opened)))
}

async fn answer(world: &World, request: Request<Body>) -> Answer {
    world.wait(Duration::from_millis(1));
    let response = axum::Router::from(urr_queue::routes(&world.service)).oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, 1_000_000).await.unwrap();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Answer { status: parts.status, headers: parts.headers, body }
}

fn user(world: &World) -> Actor {
    Actor::User { id: world.somebody(), role: Role::User }
}

/// The cookie has this name and path, and scripts and other sites cannot use it.
fn assert_cookie(cookie: &str, name: &str, path: &str) {
    assert!(cookie.starts_with(name), "{cookie}");
    for part in [&*format!("; Path={path};"), "; HttpOnly", "; SameSite=Lax", "; Secure"] {
        assert!(cookie.contains(part), "{cookie}");
    }
}

pub(crate) async fn position_json_has_the_documented_fields(stage: &Stage) {
    let Some(world) = stage.slots(1).await else { return };
    let [first, second] = [(); 2].map(|()| user(&world));
    let path = |what: &str| format!("/api/queue/{what}/{}", world.event);
    let admitted = send(&world, first, Method::POST, &path("check"), "", "").await;
    assert_eq!(admitted.status, StatusCode::OK);
    let body = &admitted.body;
    assert_eq!(
        (&body["status"], &body["queued"], &body["nextPoll"]),
        (&json!("active"), &json!(false), &json!(3))
    );
    assert_eq!((&body["threshold"], &body["currentUsers"]), (&json!(1), &json!(1)));
    assert_eq!(body["eventInfo"], json!({"title": "A night in the crowd", "artist": "The Crowd"}));
    assert!(body["entryToken"].is_string() && body["position"].is_null() && body["refused"].is_null());
    let cookies = admitted.cookies();
    let (entries, forgotten) = cookies.split_at(3);
    assert_eq!(forgotten.len(), 4);
    let is_forgotten =
        |cookie: &&str| cookie.starts_with("urr-queue-ticket=;") && cookie.contains("Max-Age=0");
    assert!(forgotten.iter().all(is_forgotten), "the cookie of a used ticket is deleted: {forgotten:?}");
    // The entry token is sent to the sale, and to the pages that Tier 1 might block.
    let pages = [format!("/queue/{}", world.event), format!("/events/{}", world.event)];
    for (cookie, path) in entries.iter().zip(["/api", &pages[0], &pages[1]]) {
        assert_cookie(cookie, "urr-entry-token=", path);
    }

    // A position sent by the client is accepted and ignored.
    let waiting = format!("{}?vwrPosition=1", path("check"));
    let queued = send(&world, second, Method::POST, &waiting, "", "").await;
    let body = &queued.body;
    assert_eq!((&body["status"], &body["queued"]), (&json!("queued"), &json!(true)));
    assert_eq!(
        (&body["position"], &body["peopleAhead"], &body["peopleBehind"]),
        (&json!(1), &json!(0), &json!(0))
    );
    assert_eq!(
        (&body["estimatedWait"], &body["nextPoll"], &body["queueSize"]),
        (&json!(180), &json!(3), &json!(1))
    );
    assert_eq!(body["paused"], json!(false));
    assert!(body["estimatedWaitRange"]["from"].is_u64() && body["entryToken"].is_null());
    let tickets = queued.cookies();
    assert_eq!(tickets.len(), 4, "{tickets:?}");
    let checks = ["/api", "/api/v1"].map(|api| format!("{api}/queue/check/{}", world.event));
    for (cookie, path) in tickets.iter().zip(checks.iter().chain(&pages)) {
        assert_cookie(cookie, "urr-queue-ticket=", path);
    }
    let kept = tickets[0].split(';').next().unwrap().to_owned();

    let status = send(&world, second, Method::GET, &path("status"), "", "").await;
    assert_eq!((&status.body["status"], &status.body["position"]), (&json!("queued"), &json!(1)));
    assert_eq!((&status.body["currentUsers"], &status.body["queueSize"]), (&json!(1), &json!(1)));
    let beat = send(&world, second, Method::POST, &path("heartbeat"), "", "").await;
    assert_eq!(beat.body, json!({"status": "queued", "queued": true}));
    let left = send(&world, second, Method::POST, &path("leave"), "", "").await;
    assert_eq!(left.body, json!({"message": "Left queue"}));
    assert!(left.cookies().iter().all(|cookie| cookie.contains("Max-Age=0")) && left.cookies().len() == 7);
    let status = send(&world, second, Method::GET, &path("status"), "", "").await;
    assert_eq!(
        (&status.body["status"], &status.body["message"]),
        (&json!("not_in_queue"), &json!("Not in queue"))
    );
    assert_eq!(status.body["nextPoll"], json!(3));

    // Leaving gave up the position. For a foreign ticket the answer has its code and no more.
    send(&world, user(&world), Method::POST, &path("check"), "", "").await;
    let back = send(&world, second, Method::POST, &path("check"), &kept, "").await;
    assert_eq!(back.body["refused"], json!(["queue.ticket_used"]));
    assert_eq!(back.body["position"], json!(2));
    let stolen = send(&world, user(&world), Method::POST, &path("check"), &kept, "").await;
    assert_eq!(stolen.body["refused"], json!(["queue.ticket_foreign"]));
    assert_eq!(stolen.body["position"], json!(3));
}

pub(crate) async fn my_lists_the_rooms_of_the_user(stage: &Stage) {
    let Some(world) = stage.slots(1).await else { return };
    let [first, second] = [(); 2].map(|()| user(&world));
    for user in [first, second] {
        send(&world, user, Method::POST, &format!("/api/queue/check/{}", world.event), "", "").await;
    }
    let entries = |status: &str| {
        json!({"entries": [{"eventId": world.event, "status": status,
        "eventInfo": {"title": "A night in the crowd", "artist": "The Crowd"}}]})
    };
    for (user, status) in [(first, "active"), (second, "queued")] {
        assert_eq!(send(&world, user, Method::GET, "/api/queue/my", "", "").await.body, entries(status));
    }
    let inside =
        send(&world, first, Method::GET, &format!("/api/queue/status/{}", world.event), "", "").await;
    assert!(inside.body["slotEndsAt"].is_string());
    let none = send(&world, user(&world), Method::GET, "/api/queue/my", "", "").await;
    assert_eq!(none.body, json!({"entries": []}));
}

pub(crate) async fn no_wait_estimate_while_admissions_are_stopped(stage: &Stage) {
    let Some(world) = stage.slots(1).await else { return };
    let (admin, event) = (world.admin().actor, world.event);
    let order = async |path: String| {
        let done = send(&world, admin, Method::POST, &format!("/api/queue/admin/{path}"), "", "").await;
        assert_eq!(done.status, StatusCode::OK);
    };
    send(&world, user(&world), Method::POST, &format!("/api/queue/check/{event}"), "", "").await;
    let waits = user(&world);
    let told = async |method, what: &str| {
        let body = send(&world, waits, method, &format!("/api/queue/{what}/{event}"), "", "").await.body;
        assert_eq!((&body["status"], &body["position"]), (&json!("queued"), &json!(1)));
        assert!(body["nextPoll"].is_u64());
        let [about, range] = ["estimatedWait", "estimatedWaitRange"].map(|name| body.get(name).is_some());
        assert_eq!(about, range);
        about
    };
    assert!(told(Method::POST, "check").await);
    order(format!("pause/{event}")).await;
    assert!(!told(Method::POST, "check").await && !told(Method::GET, "status").await, "while paused");
    order(format!("resume/{event}")).await;
    assert!(told(Method::GET, "status").await);
    order(format!("threshold/{event}?threshold=0")).await;
    assert!(!told(Method::POST, "check").await && !told(Method::GET, "status").await, "threshold 0");
}

pub(crate) async fn a_pass_of_an_earlier_opening_is_refused(stage: &Stage) {
    let Some(world) = stage.slots(0).await else { return };
    let path = format!("/api/queue/check/{}", world.event);
    send(&world, user(&world), Method::POST, &path, "", "").await;
    let order = OrderKey::at(world.opened.before(Duration::from_micros(1)));
    let rehearsed = Pass { event: world.event, visitor: world.ids.next(), order, position: 1 };
    let passes = Passes::new([vwr_pass::key(&world.secret)]);
    let cookie = format!("urr-vwr-token={}", passes.sign(&rehearsed, world.ids.next(), world.clock.now()));
    let late = send(&world, user(&world), Method::POST, &path, &cookie, "").await;
    assert_eq!((&late.body["position"], &late.body["refused"]), (&json!(2), &json!(["queue.pass_expired"])));
}

pub(crate) async fn a_pass_of_another_account_is_refused_and_its_cookies_deleted(stage: &Stage) {
    let Some(world) = stage.slots(0).await else { return };
    let path = format!("/api/queue/check/{}", world.event);
    // The pass of another event, which the browser also sends, is ignored.
    let (name, other) = (vwr_pass::cookie(world.event), world.pass(world.another_event(), 1));
    let pass = world.pass(world.event, 1);
    let cookie = format!("urr-vwr-token={other}; {name}={pass}; urr-visitor=v");
    let joined = send(&world, user(&world), Method::POST, &path, &cookie, "").await;
    assert_eq!((&joined.body["position"], &joined.body["refused"]), (&json!(1), &Value::Null));
    let refused = send(&world, user(&world), Method::POST, &path, &cookie, "").await;
    assert_eq!((refused.status, &refused.body["code"]), (StatusCode::FORBIDDEN, &json!("queue.pass_taken")));
    assert_eq!(refused.body["redirectTo"], format!("/vwr/{}", world.event));
    let ticket = format!("urr-vwr-{}=;", world.event.as_uuid().simple());
    let forgotten = refused.cookies();
    let (pass, mark) = (format!("{name}=;"), format!("{}=;", visitor::cookie(world.event)));
    for (cookie, name) in forgotten.iter().zip([&pass, "urr-vwr-token=;", &ticket, &mark, "urr-visitor=;"]) {
        assert!(cookie.starts_with(name) && cookie.contains("; Path=/; Max-Age=0;"), "{cookie}");
    }
    assert_eq!(forgotten.len(), 5);
}

pub(crate) async fn cookies_of_an_unusable_position_are_deleted(stage: &Stage) {
    let Some(world) = stage.slots(1).await else { return };
    let (somebody, path) = (user(&world), format!("/api/queue/check/{}", world.event));
    let come_back = async || {
        let request = request(&world, somebody, Method::POST, &path, "").extension(OnlyResume(true));
        answer(&world, request.body(Body::empty()).unwrap()).await
    };
    send(&world, somebody, Method::POST, &path, "", "").await;
    assert_eq!(come_back().await.status, StatusCode::OK);
    send(&world, somebody, Method::POST, &format!("/api/queue/leave/{}", world.event), "", "").await;
    let over = come_back().await;
    assert_eq!((over.status, &over.body["code"]), (StatusCode::FORBIDDEN, &json!("queue.place_over")));
    assert_eq!(over.body["redirectTo"], format!("/vwr/{}", world.event));
    let cookies = over.cookies();
    assert!(cookies.len() == 7 && cookies.iter().all(|line| line.contains("=; Path=/")), "{cookies:?}");
    assert!(cookies.iter().all(|line| line.contains("; Max-Age=0;")), "{cookies:?}");
}

pub(crate) async fn cookies_of_a_used_turn_are_deleted_and_others_kept(stage: &Stage) {
    let Some(world) = stage.slots(1).await else { return };
    let (somebody, path) = (user(&world), format!("/api/queue/check/{}", world.event));
    let (pass, mark) = (vwr_pass::cookie(world.event), visitor::cookie(world.event));
    let cookie = format!("{pass}={}", world.pass(world.event, 1));
    let come = async |cookie: &str| {
        let request = request(&world, somebody, Method::POST, &path, cookie).extension(OnlyResume(true));
        answer(&world, request.body(Body::empty()).unwrap()).await
    };
    let forgets = |over: &Answer| {
        assert_eq!((over.status, &over.body["code"]), (StatusCode::FORBIDDEN, &json!("queue.place_over")));
        let is_forgotten =
            |name: &String| over.cookies().iter().any(|line| line.starts_with(&format!("{name}=;")));
        (over.body["turnUsed"].clone(), [&pass, &mark].map(is_forgotten))
    };
    assert_eq!(come(&cookie).await.status, StatusCode::OK);
    send(&world, somebody, Method::POST, &format!("/api/queue/leave/{}", world.event), "", "").await;
    let used = come(&cookie).await;
    assert_eq!(forgets(&used), (json!(true), [true, true]), "a used pass is deleted");
    // An expired pass is kept: Tier 1 can renew it.
    assert_eq!(forgets(&come(&format!("{pass}=old")).await), (json!(false), [false, false]));
}

pub(crate) async fn operator_json_has_the_documented_fields(stage: &Stage) {
    let Some(world) = stage.slots(0).await else { return };
    let (admin, event) = (world.admin().actor, world.event);
    send(&world, user(&world), Method::POST, &format!("/api/queue/check/{event}"), "", "").await;
    let ask = async |method, path: &str, body: &str| {
        let answer = send(&world, admin, method, &format!("/api/queue/admin/{path}"), "", body).await;
        (answer.status.as_u16(), answer.body)
    };
    let (status, room) = ask(Method::GET, &event.to_string(), "").await;
    assert_eq!(status, 200);
    let expected = json!({"eventId": event, "queueSize": 1, "currentUsers": 0, "threshold": 0, "available": 0,
        "paused": false, "admittedPerSecond": null});
    assert_eq!(room, expected);
    let (status, room) = ask(Method::PUT, &format!("threshold/{event}"), r#"{"threshold": 7}"#).await;
    assert_eq!((status, &room["threshold"], &room["available"]), (200, &json!(7), &json!(7)));
    let (status, room) = ask(Method::POST, &format!("threshold/{event}?threshold=9"), "").await;
    assert_eq!((status, &room["eventId"], &room["threshold"]), (200, &json!(event), &json!(9)));
    for bad in ["-1", "x", "", "4294967296"] {
        assert_eq!(
            ask(Method::POST, &format!("threshold/{event}?threshold={bad}"), "").await.0,
            400,
            "{bad}"
        );
    }
    assert_eq!(ask(Method::POST, &format!("pause/{event}"), "").await.1["paused"], json!(true));
    assert_eq!(ask(Method::POST, &format!("resume/{event}"), "").await.1["paused"], json!(false));
    for unconfirmed in ["", "{}", r#"{"confirm": null}"#] {
        let (status, refused) = ask(Method::POST, &format!("clear/{event}"), unconfirmed).await;
        assert_eq!(
            (status, &refused["code"], &refused["waiting"]),
            (409, &json!("queue.not_confirmed"), &json!(1)),
            "{unconfirmed:?}"
        );
    }
    let confirmed = json!({"confirm": event}).to_string();
    let (status, cleared) = ask(Method::POST, &format!("clear/{event}"), &confirmed).await;
    assert_eq!(
        (status, &cleared["message"], &cleared["queueSize"]),
        (200, &json!("Queue cleared"), &json!(0))
    );
    let (_, audit) = ask(Method::GET, &format!("audit/{event}"), "").await;
    let actions: Vec<_> = audit["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| action["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["clear", "resume", "pause", "threshold", "threshold"]);
    assert_eq!(audit["actions"][0]["userId"], json!(admin.user()));
}

/// The samples in the next chunk of a stream.
async fn samples(stream: &mut Body) -> Vec<Value> {
    let piece = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    let text = String::from_utf8(piece.to_vec()).unwrap();
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(crate) async fn the_live_view_starts_with_history(stage: &Stage) {
    let Some(world) = stage.slots(1).await else { return };
    let sampling = urr_queue::sampling(&world.service);
    let event = world.event;
    for _ in 0..3 {
        world.check(world.somebody()).await.unwrap();
    }
    world.admit().await;
    sampling.run().await.unwrap();
    let listen = async || {
        let path = format!("/api/queue/admin/live/{event}");
        let request = Request::get(path).extension(world.admin().actor).body(Body::empty()).unwrap();
        let answer = axum::Router::from(urr_queue::routes(&world.service)).oneshot(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/event-stream");
        answer.into_body()
    };
    let (mut one, mut other) = (listen().await, listen().await);
    let [first] = &samples(&mut one).await[..] else { panic!("history comes first") };
    assert_eq!(
        (&first["room"]["queueSize"], &first["room"]["currentUsers"], &first["room"]["threshold"]),
        (&json!(2), &json!(1), &json!(1))
    );
    assert_eq!((&first["arrived"], &first["errors"]), (&Value::Null, &json!(0.0)));
    world.check(world.somebody()).await.unwrap();
    world.wait(Duration::from_secs(1));
    sampling.run().await.unwrap();
    let [second] = &samples(&mut one).await[..] else { panic!("one sample per run") };
    assert_eq!((&second["room"]["queueSize"], &second["admitted"]), (&json!(3), &json!(0.0)));
    assert!(second["arrived"].as_f64().unwrap() > 0.0, "{second}");
    assert_eq!(samples(&mut other).await.len(), 1, "all watchers get the same history");
    assert_eq!(samples(&mut other).await[0]["at"], second["at"], "all watchers get the same sample");

    let unknown = format!("/api/queue/admin/live/{}", world.ids.next::<urr_kernel::EventId>());
    let refused = send(&world, world.admin().actor, Method::GET, &unknown, "", "").await;
    assert_eq!(
        (refused.status, &refused.body["code"]),
        (StatusCode::NOT_FOUND, &json!("queue.event_not_found"))
    );
}

pub(crate) async fn every_route_requires_its_role(stage: &Stage) {
    let Some(world) = stage.slots(1).await else { return };
    for name in urr_queue::routes(&world.service).names() {
        let path = name.path.replace("{id}", &world.event.to_string());
        let path = if path.contains("/admin/threshold/") { format!("{path}?threshold=1") } else { path };
        let body = r#"{"threshold": 1, "confirm": null}"#;
        let answer = send(&world, Actor::Anonymous, name.method.clone(), &path, "", body).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{} {path}", name.method);
        if path.contains("/admin/") {
            let answer = send(&world, user(&world), name.method.clone(), &path, "", body).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{} {path}", name.method);
        }
        if !name.path.contains("{id}") {
            continue;
        }
        let odd = name.path.replace("{id}", "not-an-id");
        let answer = send(&world, world.admin().actor, name.method.clone(), &odd, "", body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{} {odd}", name.method);
    }
}
