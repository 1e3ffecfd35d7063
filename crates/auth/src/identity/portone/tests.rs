//! PortOne's responses and failures, simulated by a server in this process.

use std::sync::{Arc, Mutex};

use axum::{Router, body::Body, extract::Request, response::Response};
use serde_json::{Value, json};
use urr_contracts::auth::{AccountStatus, Language};
use urr_kernel::{Role, UserId};
use urr_testkit::within;

use super::*;

const ID: Uuid = Uuid::from_u128(7);

/// The canned response, and the recorded requests.
#[derive(Clone)]
struct Played {
    status: u16,
    body: String,
    pause: Duration,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// Path and `Authorization` header of a request.
type Asked = (String, Option<String>);

fn played(status: u16, body: &(impl ToString + ?Sized)) -> Played {
    Played { status, body: body.to_string(), pause: Duration::ZERO, asked: Arc::default() }
}

async fn answer(played: Played, request: Request) -> Response {
    let authorization = request.headers().get(header::AUTHORIZATION);
    let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
    played.asked.lock().unwrap().push((request.uri().to_string(), authorization));
    tokio::time::sleep(played.pause).await;
    Response::builder().status(played.status).body(Body::from(played.body)).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the server lives as long as the test's runtime")]
async fn look_up(played: Played) -> Result<Finding, ProviderError> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().fallback(move |request: Request| answer(played, request));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    asking(&base_url).look_up(ID, &account()).await
}

fn asking(base_url: &str) -> PortOne {
    let limits = ClientLimits {
        read: Duration::from_millis(300),
        answer_bytes: MAX_ANSWER_BYTES,
        tries: 1,
        ..ClientLimits::default()
    };
    PortOne::with_limits(config(base_url), Clock::system(), limits).unwrap()
}

fn config(base_url: &str) -> PortOneConfig {
    PortOneConfig {
        base_url: base_url.to_owned(),
        secret: Sensitive::new("hush"),
        store_id: "store-1".to_owned(),
        channel_key: "channel-key-1".to_owned(),
    }
}

fn account() -> Account {
    Account {
        id: UserId::from_uuid(Uuid::nil()),
        email: "minji@example.com".to_owned(),
        email_verified: true,
        name: "Minji".to_owned(),
        phone: None,
        role: Role::User,
        status: AccountStatus::Active,
        language: Language::Ko,
        marketing: false,
        second_factor: false,
        identity_verified_at: None,
        created_at: Clock::system().now(),
    }
}

/// The example in PortOne's documentation, shortened.
fn verified() -> Value {
    json!({
        "status": "VERIFIED",
        "id": ID.to_string(),
        "channel": {
            "type": "LIVE", "id": "channel-id-1", "key": "channel-key-1", "name": "identity",
            "pgProvider": "DANAL", "pgMerchantId": "merchant",
        },
        "verifiedCustomer": {
            "name": "김민지", "operator": "SKT", "phoneNumber": "01012345678", "birthDate": "2004-05-07",
            "gender": "FEMALE", "isForeigner": false, "ci": "Q0k=", "di": "REk=",
        },
        "requestedAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
        "statusChangedAt": "2026-01-01T00:00:00Z", "verifiedAt": "2026-01-01T00:00:00Z",
        "pgTxId": "1", "pgRawResponse": "{}", "version": "V2",
    })
}

fn with(pointer: &str, value: Value) -> Value {
    let mut reply = verified();
    *reply.pointer_mut(pointer).unwrap() = value;
    reply
}

#[tokio::test]
async fn a_verified_person_is_read_and_the_secret_goes_in_the_header_alone() {
    let server = played(200, &verified());
    let finding = look_up(server.clone()).await.unwrap();
    let Finding::Verified(person) = finding else { panic!("{finding:?}") };
    assert_eq!((person.ci.as_str(), person.di.as_deref()), ("Q0k=", Some("REk=")));
    assert_eq!((person.name.as_str(), person.phone.as_deref()), ("김민지", Some("+821012345678")));
    assert_eq!(person.birth_date.unwrap().to_string(), "2004-05-07");
    assert_eq!((person.gender.as_deref(), person.foreigner), (Some("FEMALE"), Some(false)));
    let asked = server.asked.lock().unwrap().clone();
    let expected = format!("/identity-verifications/{ID}?storeId=store-1");
    assert_eq!(asked, [(expected, Some("PortOne hush".to_owned()))]);
    let printed = format!("{:?} {:?}", config("http://x"), asking("http://x"));
    assert!(!printed.contains("hush"), "{printed}");
}

#[tokio::test]
async fn pending_and_failed_verifications_are_not_accepted() {
    let missing = json!({ "type": "IDENTITY_VERIFICATION_NOT_FOUND", "message": "…" });
    let cases = [
        (200, json!({ "status": "READY", "id": ID, "requestedAt": "…" }), Finding::Pending),
        (200, json!({ "status": "FAILED", "id": ID, "failure": { "reason": "…" } }), Finding::Failed),
        (404, missing, Finding::Pending),
        // A test channel of the same store confirms any identity, and the browser may have chosen
        // it.
        (200, with("/channel/key", json!("channel-key-2")), Finding::Failed),
        (200, with("/channel/key", Value::Null), Finding::Failed),
        (200, with("/channel", Value::Null), Finding::Failed),
    ];
    for (status, body, expected) in cases {
        assert_eq!(look_up(played(status, &body)).await.unwrap(), expected, "{body}");
    }
}

#[tokio::test]
async fn unusable_provider_responses_are_errors() {
    let unusable = [
        with("/id", json!(Uuid::from_u128(8).to_string())),
        with("/verifiedCustomer/ci", Value::Null),
        with("/verifiedCustomer/ci", json!("")),
        with("/verifiedCustomer/name", json!("")),
        json!({ "status": "NEW_IN_V3" }),
    ];
    for body in unusable {
        let error = look_up(played(200, &body)).await.unwrap_err();
        assert!(matches!(error, ProviderError::Unusable(_)), "{body}: {error}");
    }
    for body in ["", "<html>", "null", "[]", "{}", r#"{"status":7}"#, r#"{"status":"VERIFIED"}"#] {
        let error = look_up(played(200, body)).await.unwrap_err();
        assert!(matches!(error, ProviderError::Unreadable(_)), "{body}: {error}");
    }
    for (status, body) in [(404, "<html>"), (401, "{}"), (403, "{}"), (429, "{}"), (500, "oops"), (302, "")] {
        let error = look_up(played(status, body)).await.unwrap_err();
        assert!(matches!(error, ProviderError::Status(got) if got == status), "{status}: {error}");
    }
}

#[tokio::test]
async fn slow_endless_and_absent_providers_time_out() {
    let slow = Played { pause: Duration::from_mins(5), ..played(200, &verified()) };
    let endless = played(200, &"x".repeat(MAX_ANSWER_BYTES + 1));
    for server in [slow, endless] {
        let error = within(Duration::from_secs(20), look_up(server)).await.unwrap_err();
        assert!(matches!(error, ProviderError::NoAnswer(_)), "{error}");
    }
    let nobody = format!("http://127.0.0.1:{}", urr_testkit::free_port());
    let error = asking(&nobody).look_up(ID, &account()).await.unwrap_err();
    assert!(matches!(error, ProviderError::NoAnswer(_)), "{error}");
}

#[test]
fn invalid_portone_settings_are_refused() {
    let bad = [
        PortOneConfig { base_url: "ftp://x".to_owned(), ..config("") },
        PortOneConfig { store_id: "a&b=c".to_owned(), ..config("http://x") },
        PortOneConfig { channel_key: String::new(), ..config("http://x") },
        PortOneConfig { secret: Sensitive::new("a\nb"), ..config("http://x") },
    ];
    for config in bad {
        assert!(PortOne::new(config.clone(), Clock::system()).is_err(), "{config:?}");
    }
    let window =
        PortOne::new(config("https://api.portone.io"), Clock::system()).map(|portone| portone.window());
    assert_eq!(window.unwrap().channel_key.as_deref(), Some("channel-key-1"));
}
