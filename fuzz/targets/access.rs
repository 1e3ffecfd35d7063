//! Access tokens.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use urr_fuzz::{NOW, Parser, claims, secret};
use urr_kernel::{Role, UserId};
use urr_passes::{access, fuzzing};
use uuid::Uuid;

static KEY: LazyLock<urr_passes::Key> = LazyLock::new(|| access::key(&secret()));
static SIGNER: LazyLock<access::Signer> =
    LazyLock::new(|| access::Signer::new(KEY.clone(), access::LIFETIME));
static VERIFIER: LazyLock<access::Verifier> = LazyLock::new(|| access::Verifier::new([KEY.clone()]));
static GENUINE: LazyLock<String> = LazyLock::new(|| {
    let user = UserId::from_uuid(Uuid::from_u128(1));
    let email = Some("fan@example.com".to_owned());
    SIGNER.sign(
        &access::Access { user, role: Role::Admin, email, session: Uuid::from_u128(2) },
        Uuid::from_u128(3),
        NOW,
    )
});

fuzz_target!(|data: &[u8]| {
    let parser = Parser {
        read: &|text| VERIFIER.verify(text, NOW).ok().map(|verified| verified.access),
        write: &|said| SIGNER.sign(said, Uuid::from_u128(4), NOW),
        genuine: &GENUINE,
        inside: &claims(&GENUINE),
        sign: &|inside| fuzzing::jwt(&KEY, inside),
    };
    parser.try_with(data);
});
