//! Google, Kakao and Naver, simulated by a local HTTP server with its own keys and injected faults.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, RawQuery, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use urr_auth::{GoogleConfig, OAuthConfig, Social, SocialConfig};
use urr_contracts::auth::{Provider, Sensitive};
use urr_http::{Call, Client, ClientLimits};
use urr_kernel::Clock;

pub(crate) const CLIENT_ID: &str = "urr.apps.example";
const CLIENT_SECRET: &str = "what only we know";

/// An injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No response within any timeout.
    Slow,
    Status(u16),
    Oversized,
    BadJson,
    /// JSON with another schema.
    Odd,
}

/// A user of a provider.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) subject: &'static str,
    pub(crate) email: &'static str,
    pub(crate) verified: bool,
    pub(crate) name: &'static str,
}

pub(crate) const MINJI: Person =
    Person { subject: "1001", email: "Minji@Example.com", verified: true, name: "김민지" };
pub(crate) const JISOO: Person =
    Person { subject: "1002", email: "jisoo@example.com", verified: true, name: "지수" };

struct Grant {
    person: Person,
    redirect_uri: String,
    challenge: Option<String>,
    nonce: Option<String>,
}

struct Inner {
    person: Person,
    denies: bool,
    grants: HashMap<String, Grant>,
    tokens: HashMap<String, Person>,
    faults: HashMap<String, Fault>,
    hits: HashMap<String, usize>,
    /// Which keys are published, and which one signs.
    published: Vec<usize>,
    signs: usize,
    count: usize,
}

pub(crate) struct FakeProviders {
    pub(crate) url: String,
    clock: Clock,
    keys: Vec<RsaKeyPair>,
    inner: Mutex<Inner>,
}

impl FakeProviders {
    #[expect(clippy::disallowed_methods, reason = "the server lives as long as the test's runtime")]
    pub(crate) async fn start(clock: &Clock) -> Arc<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let keys = [&include_bytes!("rsa/1.der")[..], include_bytes!("rsa/2.der")];
        let inner = Inner {
            person: MINJI,
            denies: false,
            grants: HashMap::new(),
            tokens: HashMap::new(),
            faults: HashMap::new(),
            hits: HashMap::new(),
            published: vec![0],
            signs: 0,
            count: 0,
        };
        let this = Arc::new(Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            clock: clock.clone(),
            keys: keys.map(|key| RsaKeyPair::from_pkcs8(key).unwrap()).into(),
            inner: Mutex::new(inner),
        });
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(keys_page))
            .route("/{provider}/authorize", get(authorize))
            .route("/{provider}/token", post(token))
            .route("/{provider}/me", get(me))
            .layer(middleware::from_fn_with_state(Arc::clone(&this), misbehave))
            .with_state(Arc::clone(&this));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        this
    }

    pub(crate) fn config(&self, patience: Duration) -> SocialConfig {
        let secret = Some(Sensitive::new(CLIENT_SECRET));
        let oauth = |provider: &str| OAuthConfig {
            client_id: CLIENT_ID.to_owned(),
            client_secret: secret.clone(),
            authorize_url: format!("{}/{provider}/authorize", self.url),
            token_url: format!("{}/{provider}/token", self.url),
            user_url: format!("{}/{provider}/me", self.url),
        };
        let google = GoogleConfig {
            client_id: CLIENT_ID.to_owned(),
            client_secret: secret.clone(),
            issuer: self.url.clone(),
        };
        SocialConfig {
            google: Some(google),
            kakao: Some(oauth("kakao")),
            naver: Some(oauth("naver")),
            patience,
        }
    }

    pub(crate) fn social(&self, patience: Duration) -> Social {
        Social::new(&self.config(patience), &self.clock).unwrap()
    }

    fn inner<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.inner.lock().unwrap())
    }

    /// Sets the user who signs in from now on.
    pub(crate) fn is_used_by(&self, person: &Person) {
        self.inner(|inner| inner.person = person.clone());
    }

    pub(crate) fn denies(&self, denies: bool) {
        self.inner(|inner| inner.denies = denies);
    }

    /// Injects a fault into an endpoint, or removes it with `None`.
    pub(crate) fn breaks(&self, path: &str, fault: Option<Fault>) {
        self.inner(|inner| match fault {
            Some(fault) => inner.faults.insert(path.to_owned(), fault),
            None => inner.faults.remove(path),
        });
    }

    /// Number of requests to an endpoint.
    pub(crate) fn hits(&self, path: &str) -> usize {
        self.inner(|inner| inner.hits.get(path).copied().unwrap_or_default())
    }

    /// Publishes these keys and signs with the given one.
    pub(crate) fn rotate(&self, published: &[usize], signs: usize) {
        self.inner(|inner| (inner.published, inner.signs) = (published.to_vec(), signs));
    }

    /// The claims of an ID token for us.
    pub(crate) fn claims(&self, person: &Person) -> Value {
        let now = self.clock.now().as_micros() / 1_000_000;
        let count = self.inner(|inner| {
            inner.count += 1;
            inner.count
        });
        json!({
            "jti": count.to_string(),
            "iss": self.url, "aud": CLIENT_ID, "azp": CLIENT_ID, "sub": person.subject, "iat": now, "exp": now + 3_600,
            "email": person.email, "email_verified": person.verified, "name": person.name,
            "picture": "https://pictures.example/p.png",
        })
    }

    pub(crate) fn sign(&self, claims: &Value) -> Sensitive {
        let signs = self.inner(|inner| inner.signs);
        self.sign_as(&json!({ "alg": "RS256", "kid": format!("key-{signs}"), "typ": "JWT" }), claims, signs)
    }

    /// Signs a token with an arbitrary header.
    pub(crate) fn sign_as(&self, header: &Value, claims: &Value, key: usize) -> Sensitive {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let key = &self.keys[key];
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature).unwrap();
        Sensitive::new(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    pub(crate) fn credential(&self, person: &Person) -> Sensitive {
        self.sign(&self.claims(person))
    }

    /// The public key as bytes that a careless verifier might use as an HMAC secret.
    pub(crate) fn public_key(&self) -> Vec<u8> {
        PublicKeyComponents::<Vec<u8>>::from(self.keys[0].public()).n
    }

    /// Simulates a redirected browser: signs in and returns the query of the callback.
    pub(crate) async fn visit(&self, location: &str) -> HashMap<String, String> {
        let path = location.strip_prefix(&self.url).expect("the URL is the simulated provider's");
        let client = Client::new(ClientLimits::default(), self.clock.clone());
        let answer = client.target(&self.url).unwrap().send(Call::get(path)).await.unwrap();
        assert_eq!(answer.status, StatusCode::FOUND, "{:?}", answer.body);
        let back = answer.headers[header::LOCATION].to_str().unwrap().to_owned();
        let (_, query) = back.split_once("/callback?").unwrap();
        pairs(query)
    }
}

fn pairs(text: &str) -> HashMap<String, String> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

type At = State<Arc<FakeProviders>>;

async fn misbehave(State(here): At, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let fault = here.inner(|inner| {
        *inner.hits.entry(path.clone()).or_default() += 1;
        inner.faults.get(&path).copied()
    });
    match fault {
        None => next.run(request).await,
        Some(Fault::Slow) => std::future::pending().await,
        Some(Fault::Status(status)) => StatusCode::from_u16(status).unwrap().into_response(),
        Some(Fault::Oversized) => Body::from(vec![b' '; 1_000_000]).into_response(),
        Some(Fault::BadJson) => "{\"issuer\": ".into_response(),
        Some(Fault::Odd) => {
            "{\"id\": [], \"issuer\": \"https://evil.example\", \"keys\": []}".into_response()
        }
    }
}

fn reply(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

async fn discovery(State(here): At) -> Response {
    let url = &here.url;
    reply(&json!({
        "issuer": url, "authorization_endpoint": format!("{url}/google/authorize"),
        "token_endpoint": format!("{url}/google/token"), "jwks_uri": format!("{url}/keys"),
        "id_token_signing_alg_values_supported": ["RS256"],
    }))
}

async fn keys_page(State(here): At) -> Response {
    let published = here.inner(|inner| inner.published.clone());
    let key = |index: usize| {
        let public = PublicKeyComponents::<Vec<u8>>::from(here.keys[index].public());
        json!({
            "kty": "RSA", "use": "sig", "alg": "RS256", "kid": format!("key-{index}"),
            "n": URL_SAFE_NO_PAD.encode(public.n), "e": URL_SAFE_NO_PAD.encode(public.e),
        })
    };
    let mut keys: Vec<_> = published.into_iter().map(key).collect();
    // Unsupported key types must not invalidate the whole set.
    keys.push(json!({ "kty": "EC", "crv": "P-256", "kid": "other", "x": "AA", "y": "AA" }));
    reply(&json!({ "keys": keys }))
}

async fn authorize(State(here): At, Path(_): Path<String>, RawQuery(query): RawQuery) -> Response {
    let mut asked = pairs(&query.unwrap_or_default());
    assert_eq!((asked["response_type"].as_str(), asked["client_id"].as_str()), ("code", CLIENT_ID));
    let (redirect_uri, state) = (asked.remove("redirect_uri").unwrap(), asked.remove("state").unwrap());
    let back = here.inner(|inner| {
        if inner.denies {
            return format!("{redirect_uri}?error=access_denied&state={state}");
        }
        inner.count += 1;
        let code = format!("code-{}", inner.count);
        let grant = Grant {
            person: inner.person.clone(),
            redirect_uri: redirect_uri.clone(),
            challenge: asked.remove("code_challenge"),
            nonce: asked.remove("nonce"),
        };
        inner.grants.insert(code.clone(), grant);
        format!("{redirect_uri}?code={code}&state={state}")
    });
    (StatusCode::FOUND, [(header::LOCATION, back)]).into_response()
}

async fn token(State(here): At, Path(provider): Path<String>, form: Bytes) -> Response {
    let form: HashMap<String, String> = form_urlencoded::parse(&form).into_owned().collect();
    let refuse = |error: &str| (StatusCode::BAD_REQUEST, reply(&json!({ "error": error }))).into_response();
    if form.get("client_secret").map(String::as_str) != Some(CLIENT_SECRET) || form["client_id"] != CLIENT_ID
    {
        return refuse("invalid_client");
    }
    let grant = here.inner(|inner| inner.grants.remove(&form["code"]));
    let Some(grant) = grant.filter(|grant| grant.redirect_uri == form["redirect_uri"]) else {
        // As Naver does.
        return if provider == "naver" {
            reply(&json!({ "error": "invalid_request", "error_description": "no valid data in session" }))
        } else {
            refuse("invalid_grant")
        };
    };
    let answer = |verifier: &String| URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
    if grant.challenge != form.get("code_verifier").map(answer) {
        return refuse("invalid_grant");
    }
    let mut claims = here.claims(&grant.person);
    claims["nonce"] = json!(grant.nonce);
    let access = here.inner(|inner| {
        inner.count += 1;
        let access = format!("access-{}", inner.count);
        inner.tokens.insert(access.clone(), grant.person);
        access
    });
    let id_token = (provider == "google").then(|| here.sign(&claims));
    reply(&json!({ "access_token": access, "token_type": "bearer", "id_token": id_token }))
}

async fn me(State(here): At, Path(provider): Path<String>, headers: HeaderMap) -> Response {
    let bearer = headers[header::AUTHORIZATION].to_str().unwrap().strip_prefix("Bearer ").unwrap().to_owned();
    let Some(person) = here.inner(|inner| inner.tokens.remove(&bearer)) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let Person { subject, email, verified, name } = person;
    let id: i64 = subject.parse().unwrap();
    reply(&match Provider::named(&provider) {
        Some(Provider::Kakao) => json!({ "id": id, "kakao_account": {
            "email": email, "is_email_valid": true, "is_email_verified": verified, "profile": { "nickname": name },
        }}),
        Some(Provider::Naver) => json!({ "resultcode": "00", "response": {
            "id": subject, "email": email, "nickname": name,
        }}),
        _ => return StatusCode::NOT_FOUND.into_response(),
    })
}
