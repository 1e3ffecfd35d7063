//! What logs must never contain, at any level: every secret is used once and then searched for.

use std::{fs, path::Path};

use anyhow::Context as _;
use serde_json::{Value, json};
use urr_e2e::{
    http::{Answer, Connection, Request},
    installation::{Installation, SECRET, TOKEN},
    people::{self, PASSWORD, Person},
};

use crate::{
    matrix::{self, cookie},
    phone,
    rooms::Rooms,
};

/// Our client secret at a provider.
pub(crate) const CLIENT_SECRET: &str = "client-secret-4c1f0b77";

const EMAIL: &str = "whisper@example.com";
const NAME: &str = "Whisperina";
/// As typed, and as stored.
const PHONES: [&str; 2] = ["010-5550-4711", "1055504711"];
const WRONG: &str = "wrong horse battery staple";
const NEW: &str = "another horse battery staple";
/// The CI prefix of sandbox identities.
const MADE_UP_CI: &str = "SANDBOX";
/// Secrets in a query string, from a provider and from a browser.
const QUERY: [&str; 2] = ["authorization-code-1d2e", "credential-of-google-9f8a"];

/// The secrets with their names.
struct Secrets(Vec<(String, String)>);

impl Secrets {
    fn add(&mut self, name: &str, text: impl Into<String>) {
        let text = text.into();
        assert!(text.len() >= 7, "{name} is too short to search for: {text}");
        self.0.push((name.to_owned(), text));
    }

    fn add_person(&mut self, name: &str, person: &Person) {
        self.add(&format!("access token {name}"), &person.access);
        self.add(&format!("refresh token {name}"), &person.refresh);
    }
}

async fn post(connection: &mut Connection, path: &str, body: Value, by: &str) -> anyhow::Result<Answer> {
    let request = Request::post(path, &body);
    Ok(connection.send(&if by.is_empty() { request } else { request.by(by) }).await?)
}

/// Passwords, sessions and mailed links.
async fn passwords(installation: &Installation, secrets: &mut Secrets) -> anyhow::Result<Person> {
    let mut connection = installation.connect();
    let agreed = |kind: &str| json!({ "type": kind, "agreed": true });
    let body = json!({
        "email": EMAIL, "password": PASSWORD, "name": NAME, "phone": PHONES[0], "language": "en",
        "agreements": [agreed("SERVICE"), agreed("PRIVACY")],
    });
    let first = Person::from_answer(&post(&mut connection, "/api/auth/register", body, "").await?)?;
    secrets.add_person("of registering", &first);
    assert_eq!(people::login(&mut connection, EMAIL, WRONG).await?.status, 400);
    let second = people::sign_in(&mut connection, EMAIL).await?;
    secrets.add_person("of signing in", &second);
    let renewed = Person::from_answer(&people::refresh(&mut connection, &second.refresh).await?)?;
    secrets.add_person("that was renewed", &renewed);
    // Reuse by another device revokes the session.
    let body = json!({ "refreshToken": second.refresh });
    let stolen = Request { headers: &[("user-agent", "thief")], ..Request::post("/api/auth/refresh", &body) };
    assert_eq!(connection.send(&stolen).await?.status, 401);

    let mails = &installation.auth.data_dir;
    post(&mut connection, "/api/auth/email/verification", json!({}), &first.access).await?;
    let verify = people::mailed(mails, EMAIL, "/verify-email").await;
    secrets.add("link to verify", &verify);
    let proof = json!({ "token": verify, "password": PASSWORD });
    assert_eq!(post(&mut connection, "/api/auth/email/verify", proof, "").await?.status, 200);
    post(&mut connection, "/api/auth/password/forgot", json!({ "email": EMAIL }), "").await?;
    let reset = people::mailed(mails, EMAIL, "/reset-password").await;
    secrets.add("link to reset", &reset);
    let body = json!({ "token": reset, "password": NEW });
    assert_eq!(post(&mut connection, "/api/auth/password/reset", body, "").await?.status, 200);
    // A link's token on the wrong page, and a token in a query.
    let path = format!("/verify-email?token={reset}");
    connection.send(&Request::get(&path)).await?;
    let path = format!("/api/events?access_token={}", first.access);
    connection.send(&Request::get(&path)).await?;
    Person::from_answer(&people::login(&mut connection, EMAIL, NEW).await?)
}

/// Identity verification and second factor.
async fn persons(installation: &Installation, person: &Person, secrets: &mut Secrets) -> anyhow::Result<()> {
    let mut connection = installation.connect();
    let started = post(&mut connection, "/api/auth/identity/start", json!({}), &person.access).await?;
    let body = json!({ "identityVerificationId": started.json()["identityVerificationId"] });
    let done = post(&mut connection, "/api/auth/identity/complete", body, &person.access).await?;
    assert_eq!(done.status, 200, "{}", done.show());
    let other = people::register(&mut connection, "phone@example.com").await?;
    secrets.add("address", "phone@example.com");
    secrets.add("recovery code", phone::turn_on(&mut connection, &other).await?);
    let needed = people::login(&mut connection, "phone@example.com", PASSWORD).await?.json();
    secrets.add("challenge", needed["challenge"].as_str().context("a second factor is asked for")?);
    Ok(())
}

/// A redirect sign-in to a provider that does not answer, and a provider's credential.
async fn providers(installation: &Installation, secrets: &mut Secrets) -> anyhow::Result<()> {
    let mut connection = installation.connect();
    let away = connection.send(&Request::get("/api/auth/kakao/start")).await?;
    let state_token = cookie(&away, "social_trip")?;
    secrets.add("state token of a trip", &state_token);
    let location = away.header("location").with_context(|| away.show())?;
    let state = location.split("state=").nth(1).and_then(|rest| rest.split('&').next()).unwrap_or_default();
    secrets.add("state of a trip", state);
    let back = format!("/api/auth/kakao/callback?code={}&state={state}", QUERY[0]);
    let kept = format!("social_trip={state_token}");
    let request = Request { headers: &[("cookie", kept.as_str())], ..Request::get(&back) };
    let answer = connection.send(&request).await?;
    assert_eq!(answer.status, 503, "{}", answer.show());
    post(&mut connection, "/api/auth/google", json!({ "credential": QUERY[1] }), "").await?;
    Ok(())
}

fn search(dir: &Path, secrets: &Secrets) -> anyhow::Result<()> {
    let (mut requests, mut lowest) = (0, 0);
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "log") {
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        requests += text.lines().filter(|line| line.contains("urr_http::access")).count();
        lowest += text.lines().filter(|line| line.contains("TRACE") || line.contains("DEBUG")).count();
        for (name, secret) in &secrets.0 {
            let found = text.lines().find(|line| line.contains(secret.as_str()));
            assert_eq!(found, None, "{} shows the {name}", path.display());
        }
    }
    assert!(
        requests > 20 && lowest > 0,
        "too few log lines: {requests} requests, {lowest} of the lowest levels"
    );
    Ok(())
}

/// Uses every secret once and searches the logs of all processes for it.
pub(crate) async fn is_kept(installation: &Installation, dir: &Path) -> anyhow::Result<()> {
    let mut secrets = Secrets(Vec::new());
    for (name, secret) in [
        ("address", EMAIL),
        ("name", NAME),
        ("phone number as it is typed", PHONES[0]),
        ("phone number as it is kept", PHONES[1]),
        ("password", PASSWORD),
        ("wrong password", WRONG),
        ("new password", NEW),
        ("person", MADE_UP_CI),
        ("client secret", CLIENT_SECRET),
        ("code", QUERY[0]),
        ("credential", QUERY[1]),
        ("signing secret", SECRET),
        ("internal token", TOKEN),
    ] {
        secrets.add(name, secret);
    }
    let person = passwords(installation, &mut secrets).await?;
    secrets.add_person("after a reset", &person);
    persons(installation, &person, &mut secrets).await?;
    providers(installation, &mut secrets).await?;
    for (kind, token) in matrix::tokens(installation).await? {
        secrets.add(&format!("{kind:?}"), token);
    }
    // Only where the waiting rooms run.
    if installation.front == installation.other {
        for (kind, token) in Rooms::open(installation).await?.tokens().await? {
            secrets.add(&format!("{kind:?}"), token);
        }
    }
    search(dir, &secrets)
}
