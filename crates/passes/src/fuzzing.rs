//! For the fuzz targets: tokens that no signer would make, signed all the same, so that what stands behind the signature is tried too.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    Key,
    compact::{self, Compact, Fields},
    jwt::Jwt,
};

/// A JWT of any claims.
pub fn jwt(key: &Key, claims: &[u8]) -> String {
    Jwt::new(key.clone()).sign_bytes(claims)
}

/// What stands behind the signature of a JWT.
pub fn claims(token: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()
}

/// A short token of any fields.
pub fn compact(kind: u8, key: &Key, fields: &[u8]) -> String {
    Compact::new(kind, [key.clone()]).sign(&Fields::from_bytes(fields))
}

/// What stands behind the signature of a short token.
pub fn fields(token: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    bytes.get(compact::HEAD..bytes.len().checked_sub(compact::TAG)?).map(<[u8]>::to_vec)
}

/// The mark of a request that says anything.
pub fn hop(key: &Key, said: &str) -> String {
    format!("{said};{}", URL_SAFE_NO_PAD.encode(key.sign(said.as_bytes())))
}
