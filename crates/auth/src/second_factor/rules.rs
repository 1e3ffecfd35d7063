//! One-time codes (RFC 6238 over RFC 4226) and recovery codes. Pure.
//!
//! Implemented here because it is one page on top of our HMAC; totp-rs would add a second version
//! of the hash crates.

use std::fmt::Write as _;

use data_encoding::BASE32_NOPAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;
use subtle::ConstantTimeEq as _;
use urr_contracts::auth::Sensitive;
use urr_kernel::Timestamp;

use crate::accounts::roles::LETTERS;

/// Length of a shared secret in bytes: that of the hash, as RFC 4226 recommends.
pub(crate) const SECRET_LEN: usize = 20;

/// Duration of a time step in seconds.
const STEP_SECS: i64 = 30;

/// Steps by which a phone's clock or the user may be late or early.
const TOLERANCE: i64 = 1;

/// Codes have six digits, as the apps show them.
const DIGITS: usize = 6;
const MODULUS: u32 = 1_000_000;

/// Number of recovery codes.
pub(crate) const RECOVERY_CODES: usize = 10;

/// Length of a recovery code: 12 letters of 32 are 60 bits.
pub(crate) const RECOVERY_LEN: usize = 12;

/// Letters between two dashes.
const GROUP_LEN: usize = 4;

/// The issuer name shown in the app.
const ISSUER: &str = "URR";

/// The code of one time step.
fn code(secret: &[u8], step: i64) -> String {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.update(&step.to_be_bytes());
    let hash = mac.finalize().into_bytes();
    let offset = usize::from(hash[hash.len() - 1] & 0x0f);
    let word = [hash[offset], hash[offset + 1], hash[offset + 2], hash[offset + 3]];
    let number = (u32::from_be_bytes(word) & 0x7fff_ffff) % MODULUS;
    format!("{number:0DIGITS$}")
}

/// Returns the time step of a code, if it is within the tolerance and later than the last accepted
/// one.
pub(crate) fn step(secret: &[u8], typed: &str, now: Timestamp, last_step: i64) -> Option<i64> {
    let current = now.as_micros().div_euclid(1_000_000).div_euclid(STEP_SECS);
    let near = current - TOLERANCE..=current + TOLERANCE;
    near.filter(|step| *step > last_step)
        .rfind(|step| bool::from(code(secret, *step).as_bytes().ct_eq(typed.as_bytes())))
}

/// A code as entered by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// Six digits from the app.
    Digits(String),
    /// A normalised recovery code.
    Recovery(String),
}

/// Parses a code, ignoring spaces and dashes. `None`: it is neither kind.
pub(crate) fn typed(text: &Sensitive) -> Option<Typed> {
    let spacing = |c: &char| !c.is_whitespace() && *c != '-';
    let bare: String =
        text.expose().chars().filter(spacing).take(RECOVERY_LEN + 1).collect::<String>().to_ascii_lowercase();
    if bare.len() == DIGITS && bare.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Typed::Digits(bare));
    }
    let recovery = bare.len() == RECOVERY_LEN && bare.bytes().all(|byte| LETTERS.contains(&byte));
    recovery.then_some(Typed::Recovery(bare))
}

/// Creates a normalised recovery code.
pub(crate) fn recovery_code(random: [u8; RECOVERY_LEN]) -> String {
    random.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect()
}

/// Formats a recovery code for display: `abcd-efgh-jkmn`.
pub(crate) fn shown(code: &str) -> Sensitive {
    let groups: Vec<&str> = (0..code.len()).step_by(GROUP_LEN).map(|at| &code[at..at + GROUP_LEN]).collect();
    Sensitive::new(groups.join("-"))
}

/// Encodes a shared secret in base32.
pub(crate) fn base32(secret: &[u8]) -> String {
    BASE32_NOPAD.encode(secret)
}

/// Decodes a shared secret from base32.
pub(crate) fn from_base32(text: &str) -> Option<Vec<u8>> {
    BASE32_NOPAD.decode(text.as_bytes()).ok()
}

/// The URI in the QR code for the app.
pub(crate) fn uri(email: &str, secret: &str) -> Sensitive {
    let mut account = String::with_capacity(email.len());
    for byte in email.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            account.push(char::from(byte));
        } else {
            let _infallible = write!(account, "%{byte:02X}");
        }
    }
    let settings = format!("algorithm=SHA1&digits={DIGITS}&period={STEP_SECS}");
    Sensitive::new(format!("otpauth://totp/{ISSUER}:{account}?secret={secret}&issuer={ISSUER}&{settings}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"12345678901234567890";

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    #[test]
    fn codes_agree_with_the_tables_of_rfc_4226_and_rfc_6238() {
        let counted = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583"];
        for (counter, expected) in (0..).zip(counted) {
            assert_eq!(code(SECRET, counter), expected);
        }
        // The last six of the eight digits of RFC 6238, appendix B.
        for (secs, expected) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(step(SECRET, expected, at(secs), -1), Some(secs / 30), "{secs}");
        }
    }

    #[test]
    fn a_code_is_accepted_one_step_early_or_late_and_only_once() {
        let typed = code(SECRET, 100);
        let good = |secs| step(SECRET, &typed, at(secs), -1).is_some();
        assert_eq!([2969, 2970, 3000, 3029, 3059, 3060].map(good), [false, true, true, true, true, false]);
        assert_eq!(step(SECRET, &typed, at(3000), 99), Some(100));
        assert_eq!(step(SECRET, &typed, at(3000), 100), None, "used");
        assert_eq!(step(SECRET, &code(SECRET, 99), at(3000), 100), None, "older than the last one used");
        for wrong in ["", "00000", "0000000", "abcdef", "１２３４５６"] {
            assert_eq!(step(SECRET, wrong, at(3000), -1), None, "{wrong}");
        }
    }

    #[test]
    fn codes_are_parsed_with_or_without_spaces() {
        let read = |text: &str| typed(&Sensitive::new(text));
        assert_eq!(read(" 123 456 "), Some(Typed::Digits("123456".to_owned())));
        let code = recovery_code([7; RECOVERY_LEN]);
        let shown = shown(&code);
        assert_eq!(shown.expose().len(), RECOVERY_LEN + 2);
        assert_eq!(read(shown.expose()), Some(Typed::Recovery(code.clone())));
        assert_eq!(read(&shown.expose().to_ascii_uppercase()), Some(Typed::Recovery(code)));
        for neither in
            ["", "12345", "1234567", "abcd-efgh", "0o1l-0o1l-0o1l", &"1".repeat(10_000), "１２３４５６"]
        {
            assert_eq!(read(neither), None, "{neither}");
        }
    }

    #[test]
    fn an_app_reads_the_uri() {
        let uri = uri("min+ji@example.com", &base32(SECRET));
        assert_eq!(
            uri.expose(),
            "otpauth://totp/URR:min%2Bji%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=URR\
             &algorithm=SHA1&digits=6&period=30"
        );
        assert_eq!(from_base32(&base32(SECRET)).as_deref(), Some(SECRET));
    }
}
