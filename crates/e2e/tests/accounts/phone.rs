//! An authenticator app.

use anyhow::Context as _;
use data_encoding::BASE32_NOPAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha1::Sha1;
use urr_e2e::{
    http::{Connection, Request},
    people::{PASSWORD, Person},
};
use urr_kernel::Clock;

/// The current code of the app (RFC 6238).
fn code(secret: &str) -> anyhow::Result<String> {
    let step = Clock::system().now().as_micros() / 1_000_000 / 30;
    let key = BASE32_NOPAD.decode(secret.as_bytes())?;
    let hash = Hmac::<Sha1>::new_from_slice(&key)?.chain_update(step.to_be_bytes()).finalize().into_bytes();
    let offset = usize::from(hash[19] & 0x0f);
    let word = [hash[offset], hash[offset + 1], hash[offset + 2], hash[offset + 3]];
    Ok(format!("{:06}", (u32::from_be_bytes(word) & 0x7fff_ffff) % 1_000_000))
}

/// Turns on the second factor of an account. Returns a recovery code.
pub(crate) async fn turn_on(connection: &mut Connection, person: &Person) -> anyhow::Result<String> {
    let mut post =
        async |path: &str, body: Value| connection.send(&Request::post(path, &body).by(&person.access)).await;
    let made = post("/api/auth/second-factor", json!({ "password": PASSWORD })).await?;
    let secret = made.json()["secret"].as_str().with_context(|| made.show())?.to_owned();
    let on = post("/api/auth/second-factor/confirm", json!({ "code": code(&secret)? })).await?;
    Ok(on.json()["recoveryCodes"][0].as_str().with_context(|| on.show())?.to_owned())
}
