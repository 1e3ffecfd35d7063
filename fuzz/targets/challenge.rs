//! Challenges of a second factor.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use urr_fuzz::{NOW, Parser, claims, secret};
use urr_kernel::UserId;
use urr_passes::{challenge, fuzzing};
use uuid::Uuid;

static KEY: LazyLock<urr_passes::Key> = LazyLock::new(|| challenge::key(&secret()));
static CHALLENGES: LazyLock<challenge::Challenges> =
    LazyLock::new(|| challenge::Challenges::new([KEY.clone()]));
static GENUINE: LazyLock<String> = LazyLock::new(|| {
    let user = UserId::from_uuid(Uuid::from_u128(1));
    let challenge = challenge::Challenge { user, method: "totp".to_owned(), state: "state".to_owned() };
    CHALLENGES.sign(&challenge, Uuid::from_u128(3), NOW).0
});

fuzz_target!(|data: &[u8]| {
    let parser = Parser {
        read: &|text| CHALLENGES.verify(text, NOW).ok(),
        write: &|said| CHALLENGES.sign(said, Uuid::from_u128(4), NOW).0,
        genuine: &GENUINE,
        inside: &claims(&GENUINE),
        sign: &|inside| fuzzing::jwt(&KEY, inside),
    };
    parser.try_with(data);
});
