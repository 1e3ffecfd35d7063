//! Invalid tokens, key rotation and failing providers.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use urr_auth::{Social, SocialConfig};
use urr_contracts::auth::{BeginRedirect, Error, Provider, RedirectOutcome, Sensitive};
use urr_testkit::within;

use super::{
    providers::{FakeProviders, Fault, JISOO, MINJI, Person},
    world::World,
};

/// Upper bound of every wait for a provider.
const BOUND: Duration = Duration::from_secs(10);

const PROVIDER_AWAY: Error = Error::ProviderUnavailable { provider: Provider::Google };

/// A valid token with one claim changed.
fn but(providers: &FakeProviders, name: &str, value: Value) -> Sensitive {
    let mut claims = providers.claims(&MINJI);
    claims[name] = value;
    providers.sign(&claims)
}

fn header(alg: &str, kid: &str) -> Value {
    json!({ "alg": alg, "kid": kid })
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// Every token that must be refused, and why.
fn bad_tokens(here: &FakeProviders, now: i64) -> Vec<(&'static str, Sensitive)> {
    let claims = here.claims(&MINJI);
    let good = here.sign(&claims);
    let [head, body, signature]: [&str; 3] = good.expose().split('.').collect::<Vec<_>>().try_into().unwrap();
    let unsigned = format!("{}.{}.", encoded(&header("none", "key-0")), encoded(&claims));
    let message = format!("{}.{}", encoded(&header("HS256", "key-0")), encoded(&claims));
    let mac: Hmac<Sha256> = Hmac::new_from_slice(&here.public_key()).unwrap();
    let mac = mac.chain_update(&message).finalize().into_bytes();
    let mut other = claims.clone();
    other["sub"] = json!("1002");
    let text = |text: String| Sensitive::new(text);
    vec![
        ("nothing", text(String::new())),
        ("rubbish", text("rubbish".to_owned())),
        ("another issuer", but(here, "iss", json!("https://accounts.google.com"))),
        ("an issuer that looks alike", but(here, "iss", json!(format!("{}/", here.url)))),
        ("another audience", but(here, "aud", json!("somebody.else"))),
        ("several audiences", but(here, "aud", json!(["somebody.else", "another"]))),
        ("another authorized party", but(here, "azp", json!("somebody.else"))),
        ("no audience", but(here, "aud", Value::Null)),
        ("expired", but(here, "exp", json!(now - 31))),
        ("no expiry", but(here, "exp", Value::Null)),
        ("issued in the future", but(here, "iat", json!(now + 31))),
        ("not valid yet", but(here, "nbf", json!(now + 31))),
        ("an empty subject", but(here, "sub", json!(""))),
        ("a nonce that we did not give", but(here, "nonce", json!("whatever the page made up"))),
        ("signed with another key", here.sign_as(&header("RS256", "key-0"), &claims, 1)),
        ("an unknown key id", here.sign_as(&header("RS256", "key-7"), &claims, 0)),
        ("no name of a key", here.sign_as(&json!({ "alg": "RS256" }), &claims, 0)),
        ("a key that it brings along", here.sign_as(&header("RS256", "key-1"), &claims, 1)),
        ("another algorithm", here.sign_as(&header("PS256", "key-0"), &claims, 0)),
        ("no algorithm", text(unsigned)),
        ("no algorithm, but a signature", here.sign_as(&header("none", "key-0"), &claims, 0)),
        ("the public key as a secret", text(format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac)))),
        ("other claims", text(format!("{head}.{}.{signature}", encoded(&other)))),
        ("no signature", text(format!("{head}.{body}."))),
        ("an extension we do not know", {
            here.sign_as(&json!({ "alg": "RS256", "kid": "key-0", "crit": ["b64"] }), &claims, 0)
        }),
        ("far too long", text(format!("{head}.{}.{signature}", "A".repeat(9_000)))),
    ]
}

pub(crate) async fn invalid_id_tokens_are_refused(world: &World) {
    // Without an address the attempts of a network are not counted; there are many here.
    let now = world.clock.now().as_micros() / 1_000_000;
    for (what, token) in bad_tokens(&world.providers, now) {
        let refused = from_nowhere(world, token).await;
        assert_eq!(refused, Err(Error::CredentialInvalid), "{what}");
    }
    assert_eq!(world.written().await, (0, 0));
    for good in [
        but(&world.providers, "exp", json!(now - 29)),
        but(&world.providers, "iat", json!(now + 29)),
        but(&world.providers, "aud", json!([super::providers::CLIENT_ID])),
    ] {
        assert_eq!(from_nowhere(world, good).await, Ok(()), "small clock differences are tolerated");
    }
    assert_eq!(world.written().await, (1, 1));
}

async fn from_nowhere(world: &World, credential: Sensitive) -> Result<(), Error> {
    let request = urr_contracts::auth::GoogleSignIn {
        credential,
        state_token: None,
        agreements: super::social::terms(),
        language: urr_contracts::auth::Language::Ko,
        origin: urr_contracts::auth::Origin::default(),
    };
    world.auth.google(&world.anonymous(), request).await.map(|_| ())
}

pub(crate) async fn networks_that_send_invalid_credentials_are_throttled(world: &World) {
    let mut refusals = Vec::new();
    for _ in 0..31 {
        refusals.push(world.credential(Sensitive::new("a.b.c"), true).await.unwrap_err());
    }
    assert_eq!(refusals.pop(), Some(Error::TooManyAttempts { wait_secs: 1 }));
    assert!(refusals.iter().all(|refused| *refused == Error::CredentialInvalid), "{refusals:?}");
}

pub(crate) async fn an_id_token_of_another_redirect_is_refused(world: &World) {
    let redirect = world.leave(Provider::Google).await;
    // Makes the provider use another nonce than the browser's.
    let (before, nonce) = redirect.location.split_once("nonce=").unwrap();
    assert!(nonce.len() >= 43);
    let location = format!("{before}nonce=another");
    let other = urr_contracts::auth::RedirectSignIn { location, ..redirect };
    let back = world.visit(Provider::Google, &other, &MINJI).await;
    assert_eq!(world.auth.end_trip(&world.anonymous(), back).await, Err(Error::TripInvalid));
}

pub(crate) async fn an_intercepted_authorization_code_is_useless(world: &World) {
    for provider in [Provider::Google, Provider::Kakao] {
        let (victim, thief) = (world.leave(provider).await, world.leave(provider).await);
        let caught = world.visit(provider, &victim, &MINJI).await.code;
        let own = world.visit(provider, &thief, &JISOO).await;
        let stolen = urr_contracts::auth::CompleteRedirect { code: caught, ..own };
        assert_eq!(world.auth.end_trip(&world.anonymous(), stolen).await, Err(Error::TripInvalid));
    }
}

pub(crate) async fn unknown_key_ids_trigger_rate_limited_key_fetches(world: &World) {
    let here = &world.providers;
    world.google(&MINJI, true).await.unwrap();
    for _ in 0..5 {
        world.google(&MINJI, false).await.unwrap();
    }
    assert_eq!((here.hits("/keys"), here.hits("/.well-known/openid-configuration")), (1, 1));
    for number in 0..5 {
        let claims = here.claims(&MINJI);
        let made_up = here.sign_as(&header("RS256", &format!("made-up-{number}")), &claims, 0);
        assert_eq!(from_nowhere(world, made_up).await, Err(Error::CredentialInvalid));
    }
    assert_eq!(here.hits("/keys"), 1, "it was fetched a moment ago");

    here.rotate(&[0, 1], 1);
    world.clock.advance(Duration::from_secs(11));
    world.google(&MINJI, false).await.unwrap();
    assert_eq!(here.hits("/keys"), 2);
    here.rotate(&[1], 0);
    world.google(&MINJI, false).await.unwrap();
    world.clock.advance(Duration::from_hours(1));
    assert_eq!(world.google(&MINJI, false).await, Err(Error::CredentialInvalid), "the key was withdrawn");
}

pub(crate) async fn concurrent_requests_fetch_the_keys_once(world: &World) {
    let all = (0..20).map(|_| from_nowhere(world, world.providers.credential(&MINJI)));
    let outcomes = futures_util::future::join_all(all).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!((world.providers.hits("/keys"), world.written().await), (1, (1, 1)));
}

pub(crate) async fn cached_issuer_keys_are_used_for_a_day_during_an_outage(world: &World) {
    let here = &world.providers;
    let user = world.google(&MINJI, true).await.unwrap();
    here.breaks("/.well-known/openid-configuration", Some(Fault::Status(503)));
    for hours in [2, 10, 11] {
        world.clock.advance(Duration::from_hours(hours));
        assert_eq!(world.google(&MINJI, false).await.unwrap().account.id, user.account.id);
    }
    let new = here.sign_as(&header("RS256", "key-1"), &here.claims(&MINJI), 1);
    world.clock.advance(Duration::from_secs(11));
    let unknown = from_nowhere(world, new).await;
    assert_eq!(unknown, Err(PROVIDER_AWAY), "the key may be new and cannot be checked");
    world.clock.advance(Duration::from_hours(1));
    assert_eq!(world.google(&MINJI, false).await, Err(PROVIDER_AWAY));
    here.breaks("/.well-known/openid-configuration", None);
    world.clock.advance(Duration::from_secs(11));
    world.google(&MINJI, false).await.unwrap();
}

const FAULTS: [Fault; 6] =
    [Fault::Slow, Fault::Status(500), Fault::Status(404), Fault::Oversized, Fault::BadJson, Fault::Odd];

/// A service with an empty key cache that waits less than a second for a provider.
fn impatient(world: &World) -> World {
    world.with(|parts| parts.social = world.providers.social(Duration::from_millis(700)))
}

pub(crate) async fn a_failing_issuer_times_out_and_changes_nothing(world: &World) {
    for page in ["/.well-known/openid-configuration", "/keys"] {
        for fault in FAULTS {
            let (world, before) = (impatient(world), world.written().await);
            world.providers.breaks(page, Some(fault));
            let refused = within(BOUND, world.google(&MINJI, true)).await;
            assert_eq!(refused, Err(PROVIDER_AWAY), "{page} {fault:?}");
            let request = BeginRedirect { provider: Provider::Google, return_to: None };
            let refused = within(BOUND, world.auth.begin_trip(&world.anonymous(), request)).await;
            assert_eq!(refused, Err(PROVIDER_AWAY), "{page} {fault:?}");
            assert_eq!(world.written().await, before);
            world.providers.breaks(page, None);
            world.clock.advance(Duration::from_secs(11));
            world.google(&MINJI, true).await.unwrap();
        }
    }
}

pub(crate) async fn a_provider_that_misbehaves_on_the_way_back_changes_nothing(world: &World) {
    let pages = [
        (Provider::Google, "/google/token"),
        (Provider::Kakao, "/kakao/token"),
        (Provider::Kakao, "/kakao/me"),
        (Provider::Naver, "/naver/token"),
        (Provider::Naver, "/naver/me"),
    ];
    for (provider, page) in pages {
        for fault in FAULTS {
            let world = impatient(world);
            world.providers.breaks(page, Some(fault));
            let refused = within(BOUND, world.travel(provider, &MINJI)).await;
            assert_eq!(refused, Err(Error::ProviderUnavailable { provider }), "{page} {fault:?}");
            world.providers.breaks(page, None);
            let again = world.travel(provider, &MINJI).await.unwrap();
            assert!(matches!(again.outcome, RedirectOutcome::SignUp { .. }));
            assert_eq!(world.written().await, (0, 0));
        }
    }
}

pub(crate) async fn an_unreachable_provider_is_unavailable(world: &World) {
    let gone = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let mut config = world.providers.config(Duration::from_secs(5));
    config.google.as_mut().unwrap().issuer.clone_from(&gone);
    config.naver.as_mut().unwrap().token_url = format!("{gone}/token");
    let world = world.with(|parts| parts.social = Social::new(&config, &world.clock).unwrap());
    assert_eq!(world.google(&MINJI, true).await, Err(PROVIDER_AWAY));
    let refused = world.travel(Provider::Naver, &MINJI).await;
    assert_eq!(refused, Err(Error::ProviderUnavailable { provider: Provider::Naver }));
}

pub(crate) async fn disabled_providers_are_refused(world: &World) {
    let user = world.google(&MINJI, true).await.unwrap();
    let redirect = world.leave(Provider::Kakao).await;
    let back = world.visit(Provider::Kakao, &redirect, &Person { subject: "5", ..JISOO }).await;
    let mut config = world.providers.config(Duration::from_secs(5));
    config.google.as_mut().unwrap().client_secret = None;
    let config = SocialConfig { kakao: None, naver: None, ..config };
    let world = world.with(|parts| parts.social = Social::new(&config, &world.clock).unwrap());
    let begin = |provider| BeginRedirect { provider, return_to: None };
    for provider in Provider::ALL {
        let refused = world.auth.begin_trip(&world.anonymous(), begin(provider)).await;
        assert_eq!(refused, Err(Error::ProviderOff), "Google wants a secret for that");
    }
    assert_eq!(world.auth.end_trip(&world.anonymous(), back).await, Err(Error::ProviderOff));
    assert_eq!(world.google(&MINJI, false).await.unwrap().account.id, user.account.id);
    let world = world.with(|parts| parts.social = Social::default());
    assert_eq!(world.google(&MINJI, false).await, Err(Error::ProviderOff));
}
