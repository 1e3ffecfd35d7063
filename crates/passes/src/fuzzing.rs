//! For the fuzz targets: correctly signed tokens with arbitrary contents, so that the code behind
//! the signature check is fuzzed too.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    Key,
    compact::{self, Compact, Fields},
    jwt::Jwt,
};

/// Signs a JWT with arbitrary claims.
pub fn jwt(key: &Key, claims: &[u8]) -> String {
    Jwt::new(key.clone()).sign_bytes(claims)
}

/// The claims of a JWT, unverified.
pub fn claims(token: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()
}

/// Signs a compact token with arbitrary fields.
pub fn compact(kind: u8, key: &Key, fields: &[u8]) -> String {
    Compact::new(kind, [key.clone()]).sign(&Fields::from_bytes(fields))
}

/// The fields of a compact token, unverified.
pub fn fields(token: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    bytes.get(compact::HEAD..bytes.len().checked_sub(compact::TAG)?).map(<[u8]>::to_vec)
}

/// Signs an arbitrary hop mark.
pub fn hop(key: &Key, said: &str) -> String {
    format!("{said};{}", URL_SAFE_NO_PAD.encode(key.sign(said.as_bytes())))
}
