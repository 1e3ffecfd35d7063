//! Accounts through the public API.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::http::{Answer, Connection, Lost, Request};

/// The administrator of every installation that tests start.
pub const ADMIN: &str = "boss@example.com";

/// The password of every account.
pub const PASSWORD: &str = "correct horse battery staple";

/// A signed-in user.
#[derive(Clone, Debug)]
pub struct Person {
    /// The account's id.
    pub id: String,
    /// The account's address.
    pub email: String,
    /// The access token.
    pub access: String,
    /// The refresh token.
    pub refresh: String,
}

impl Person {
    /// Reads the response to a sign-in.
    pub fn from_answer(answer: &Answer) -> anyhow::Result<Self> {
        let body = answer.json();
        let text = |value: &Value| value.as_str().map(str::to_owned).with_context(|| answer.show());
        Ok(Self {
            id: text(&body["user"]["id"])?,
            email: text(&body["user"]["email"])?,
            access: text(&body["token"])?,
            refresh: text(&body["refreshToken"])?,
        })
    }
}

/// Registers an account, which also signs it in.
pub async fn register(connection: &mut Connection, email: &str) -> anyhow::Result<Person> {
    register_with(connection, email, &[]).await
}

/// The same with additional headers.
pub async fn register_with(
    connection: &mut Connection,
    email: &str,
    headers: &[(&str, &str)],
) -> anyhow::Result<Person> {
    let agreed = |kind: &str| json!({ "type": kind, "agreed": true });
    let body = json!({
        "email": email, "password": PASSWORD, "name": "Minji", "language": "en",
        "agreements": [agreed("SERVICE"), agreed("PRIVACY")],
    });
    let request = Request { headers, ..Request::post("/api/auth/register", &body) };
    let answer = connection.send(&request).await?;
    ensure!(answer.status == 201, "register: {}", answer.show());
    Person::from_answer(&answer)
}

/// Tries to sign in.
pub async fn login(connection: &mut Connection, email: &str, password: &str) -> Result<Answer, Lost> {
    login_with(connection, email, password, &[]).await
}

/// The same with additional headers.
pub async fn login_with(
    connection: &mut Connection,
    email: &str,
    password: &str,
    headers: &[(&str, &str)],
) -> Result<Answer, Lost> {
    let body = json!({ "email": email, "password": password });
    connection.send(&Request { headers, ..Request::post("/api/auth/login", &body) }).await
}

/// Signs in.
pub async fn sign_in(connection: &mut Connection, email: &str) -> anyhow::Result<Person> {
    let answer = login(connection, email, PASSWORD).await?;
    ensure!(answer.status == 200, "login: {}", answer.show());
    Person::from_answer(&answer)
}

/// Exchanges a refresh token.
pub async fn refresh(connection: &mut Connection, token: &str) -> Result<Answer, Lost> {
    connection.send(&Request::post("/api/auth/refresh", &json!({ "refreshToken": token }))).await
}

/// Signs out.
pub async fn logout(connection: &mut Connection, person: &Person) -> Result<Answer, Lost> {
    let request = Request { method: "POST", path: "/api/auth/logout", ..Request::default() };
    connection.send(&request.by(&person.access)).await
}

/// Sets the role of an account.
pub async fn set_role(
    connection: &mut Connection,
    admin: &Person,
    of: &Person,
    role: &str,
) -> Result<Answer, Lost> {
    let path = format!("/api/admin/users/{}/role", of.id);
    let request = Request { method: "PUT", ..Request::post(&path, &json!({ "role": role })) };
    connection.send(&request.by(&admin.access)).await
}
