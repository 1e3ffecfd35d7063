//! Invokes the binary as Lambda does, with events in the formats of API Gateway and load balancers.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod runtime;

use std::{collections::BTreeMap, sync::Arc};

use runtime::{PATIENCE, Runtime};
use serde_json::{Value, json};
use urr_aws::{AwsConfig, Dynamo};
use urr_contracts::vwr::{GiveOrder, Order, Vwr as _};
use urr_jobs::Tasks;
use urr_kernel::{Actor, Clock, EventId, Ids, Role};
use urr_passes::Secret;
use urr_rpc::Ctx;
use urr_testkit::{fresh_sqlite, services, until};
use urr_vwr::{Counters, DOMAIN, Parts, Service};
use uuid::Uuid;

const SECRET: &str = "a secret for tests, of more than 32 bytes";

/// The process that operators use, and the table it shares with functions.
struct Server {
    vwr: Arc<Service>,
    clock: Clock,
    ids: Ids,
    endpoint: String,
    prefix: String,
    _files: tempfile::TempDir,
}

impl Server {
    async fn new() -> Option<Self> {
        let endpoint = services::dynamodb()?;
        let clock = Clock::system();
        let ids = Ids::random(clock.clone());
        let config = AwsConfig { deadline: PATIENCE, ..AwsConfig::local(endpoint.clone()) };
        let dynamo = Dynamo::connect(config, clock.clone()).unwrap();
        let prefix = format!("test-{}", ids.next::<Uuid>());
        urr_vwr::create_table(&dynamo, &prefix).await.unwrap();
        let (files, db) = fresh_sqlite(&DOMAIN).await;
        let counters = Counters::dynamo_db(dynamo, &prefix, Some(db.clone()), clock.clone(), ids.clone());
        let vwr = urr_vwr::build(Parts {
            db: Some(db),
            counters,
            clock: clock.clone(),
            ids: ids.clone(),
            secrets: vec![Secret::new(SECRET).unwrap()],
            tasks: Tasks::new(),
            secure_cookies: true,
        });
        Some(Self { vwr, clock, ids, endpoint, prefix, _files: files })
    }

    async fn order(&self, event: EventId, order: Order) {
        let operator = Actor::User { id: self.ids.next(), role: Role::Admin };
        let ctx = Ctx::new(self.ids.next(), operator, self.clock.clone(), PATIENCE);
        self.vwr.order(&ctx, GiveOrder { event, order }).await.unwrap();
    }

    async fn open(&self) -> EventId {
        let event = self.ids.next();
        self.order(event, Order::Activate { rate: Some(0), fail_open: None }).await;
        event
    }

    async fn function(&self) -> Runtime {
        Runtime::start(&[
            ("URR_SECURITY_SECRET", SECRET),
            ("URR_VWR_TABLE_PREFIX", &self.prefix),
            ("URR_AWS_DYNAMODB_ENDPOINT", &self.endpoint),
            ("URR_AWS_DEADLINE_MS", "10000"),
        ])
        .await
    }
}

/// The source of the events.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sender {
    HttpApi,
    /// An HTTP API with a named stage, which prefixes the path.
    HttpApiWithStage,
    RestApi,
    Balancer,
}

/// A browser with a cookie jar, behind one of the event sources.
struct Browser {
    sender: Sender,
    cookies: BTreeMap<String, String>,
}

struct Answer {
    status: u64,
    headers: BTreeMap<String, String>,
    body: Value,
}

impl Browser {
    fn new(sender: Sender) -> Self {
        Self { sender, cookies: BTreeMap::new() }
    }

    fn event(&self, method: &str, path: &str) -> Value {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (form, stage, full) = match self.sender {
            Sender::HttpApi => (include_str!("events/http_api.json"), "$default", path.to_owned()),
            Sender::HttpApiWithStage => {
                (include_str!("events/http_api.json"), "prod", format!("/prod{path}"))
            }
            Sender::RestApi => (include_str!("events/rest_api.json"), "prod", path.to_owned()),
            Sender::Balancer => (include_str!("events/balancer.json"), "", path.to_owned()),
        };
        let text = form.replace("METHOD", method).replace("STAGE", stage).replace("PATH", &full);
        let mut event: Value = serde_json::from_str(&text).unwrap();
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        match self.sender {
            Sender::HttpApi | Sender::HttpApiWithStage => {
                event["cookies"] = json!(cookies);
                event["rawQueryString"] = json!(query);
            }
            Sender::RestApi => event["multiValueHeaders"]["Cookie"] = json!([cookies.join("; ")]),
            Sender::Balancer => event["multiValueHeaders"]["cookie"] = json!([cookies.join("; ")]),
        }
        event
    }

    async fn send(&mut self, function: &Runtime, method: &str, path: &str) -> Answer {
        let said = function.invoke(self.event(method, path)).await;
        let lines: Vec<(String, String)> = match self.sender {
            Sender::HttpApi | Sender::HttpApiWithStage => {
                let cookies = said["cookies"].as_array().into_iter().flatten();
                let cookies =
                    cookies.map(|line| ("set-cookie".to_owned(), line.as_str().unwrap().to_owned()));
                let headers = said["headers"].as_object().into_iter().flatten();
                headers
                    .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
                    .chain(cookies)
                    .collect()
            }
            Sender::RestApi | Sender::Balancer => {
                let headers = said["multiValueHeaders"].as_object().into_iter().flatten();
                let each = |(name, values): (&String, &Value)| -> Vec<(String, String)> {
                    let values = values.as_array().unwrap().iter();
                    values.map(|value| (name.clone(), value.as_str().unwrap().to_owned())).collect()
                };
                headers.flat_map(each).collect()
            }
        };
        for (_, line) in lines.iter().filter(|(name, _)| name == "set-cookie") {
            assert!(line.contains("; HttpOnly; SameSite=Lax; Secure"), "{line}");
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        assert_eq!(said["isBase64Encoded"], json!(false), "{said}");
        let text = said["body"].as_str().unwrap_or_default();
        let body = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
        Answer { status: said["statusCode"].as_u64().unwrap(), headers: lines.into_iter().collect(), body }
    }
}

async fn browser_queues_waits_and_is_admitted(sender: Sender) {
    let Some(server) = Server::new().await else { return };
    let (event, function) = (server.open().await, server.function().await);
    let (mut browser, mut other) = (Browser::new(sender), Browser::new(sender));

    let assign = format!("/vwr-api/vwr/assign/{event}");
    let first = browser.send(&function, "POST", &assign).await;
    assert_eq!((first.status, &first.body["position"]), (200, &json!(1)), "{}", first.body);
    assert!(first.headers.contains_key("x-request-id"), "{:?}", first.headers);
    assert_eq!(first.headers["content-type"], "application/json");
    let again = browser.send(&function, "POST", &assign).await;
    assert_eq!(again.body["requestId"], first.body["requestId"], "the cookies identify the browser");
    let behind = other.send(&function, "POST", &format!("/vwr/assign/{event}")).await;
    assert_eq!(behind.body["position"], json!(2));

    let check = format!("/vwr-api/vwr/check/{event}/{}", first.body["requestId"].as_str().unwrap());
    let waiting = browser.send(&function, "GET", &check).await;
    assert_eq!((waiting.status, &waiting.body["admitted"]), (200, &json!(false)), "{}", waiting.body);
    assert_eq!(other.send(&function, "GET", &check).await.status, 403, "another browser's position");

    server.order(event, Order::Advance { batch: 1 }).await;
    let mut admitted = None;
    until(PATIENCE, async || {
        let checked = browser.send(&function, "GET", &check).await;
        admitted = (checked.body["admitted"] == json!(true)).then_some(checked.body);
        admitted.is_some()
    })
    .await;
    assert!(admitted.unwrap()["token"].is_string());
    assert!(browser.cookies.keys().any(|name| name.starts_with("urr-vwr-token-")));
    let serving = browser.send(&function, "GET", &format!("/vwr/serving/{event}")).await;
    assert_eq!((&serving.body["servingCounter"], &serving.body["totalInQueue"]), (&json!(1), &json!(2)));
    assert_eq!(serving.headers["cache-control"], "public, max-age=1");
    let edge = browser.send(&function, "GET", "/edge/check").await;
    assert_eq!(edge.status, 400, "the event is missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_an_http_api() {
    browser_queues_waits_and_is_admitted(Sender::HttpApi).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_an_http_api_whose_stage_has_a_name() {
    browser_queues_waits_and_is_admitted(Sender::HttpApiWithStage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_rest_api() {
    browser_queues_waits_and_is_admitted(Sender::RestApi).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_load_balancer() {
    browser_queues_waits_and_is_admitted(Sender::Balancer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_routes_and_ids_return_standard_errors() {
    let Some(server) = Server::new().await else { return };
    let (event, function) = (server.open().await, server.function().await);
    let mut browser = Browser::new(Sender::HttpApi);
    let nobody: EventId = server.ids.next();
    for (method, path, status, code) in [
        ("POST", format!("/vwr/assign/{nobody}"), 404, "vwr.not_active"),
        ("GET", format!("/vwr/check/{event}/1"), 404, "vwr.position_not_found"),
        ("GET", "/vwr/serving/nonsense".to_owned(), 400, "http.bad_path"),
        ("GET", "/nothing".to_owned(), 404, "http.not_found"),
        ("DELETE", format!("/vwr/status/{event}"), 405, "http.method_not_allowed"),
        // Admin routes are served only by the process with the database.
        ("POST", format!("/api/admin/vwr/deactivate/{event}"), 404, "http.not_found"),
    ] {
        let answer = browser.send(&function, method, &path).await;
        assert_eq!((answer.status, &answer.body["code"]), (status, &json!(code)), "{method} {path}");
    }
    let page = browser.send(&function, "GET", &format!("/vwr/{event}")).await;
    assert!(page.headers["content-type"].starts_with("text/html"));
    assert!(page.body.as_str().is_some_and(|html| html.contains("<html")));
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_503_until_the_rooms_are_loaded() {
    let nowhere = format!("http://127.0.0.1:{}", urr_testkit::free_port());
    let function =
        Runtime::start(&[("URR_SECURITY_SECRET", SECRET), ("URR_AWS_DYNAMODB_ENDPOINT", &nowhere)]).await;
    let event = Ids::random(Clock::system()).next::<EventId>();
    let mut browser = Browser::new(Sender::HttpApi);
    for path in [format!("/vwr/status/{event}"), format!("/edge/check?event={event}")] {
        let answer = browser.send(&function, "GET", &path).await;
        assert_eq!((answer.status, &answer.body["code"]), (503, &json!("http.unavailable")), "{path}");
        assert_eq!(answer.headers["retry-after"], "2");
    }
}
