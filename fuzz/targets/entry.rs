//! Entry tokens.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use urr_fuzz::{NOW, Parser, claims, secret};
use urr_kernel::{EventId, UserId};
use urr_passes::{entry, fuzzing};
use uuid::Uuid;

static KEY: LazyLock<urr_passes::Key> = LazyLock::new(|| entry::key(&secret()));
static ENTRIES: LazyLock<entry::Entries> = LazyLock::new(|| entry::Entries::new([KEY.clone()]));
static GENUINE: LazyLock<String> = LazyLock::new(|| {
    let (event, user) = (EventId::from_uuid(Uuid::from_u128(1)), UserId::from_uuid(Uuid::from_u128(2)));
    let entry = entry::Entry { event, user, slot: Uuid::from_u128(3), expires: NOW.after(entry::LIFETIME) };
    ENTRIES.sign(&entry, Uuid::from_u128(4), NOW)
});

fuzz_target!(|data: &[u8]| {
    let parser = Parser {
        read: &|text| {
            // The parser caps the lifetime, so the expiry does not round-trip.
            ENTRIES
                .verify(text, NOW)
                .ok()
                .map(|read| entry::Entry { expires: NOW.after(entry::LIFETIME), ..read })
        },
        write: &|said| ENTRIES.sign(said, Uuid::from_u128(5), NOW),
        genuine: &GENUINE,
        inside: &claims(&GENUINE),
        sign: &|inside| fuzzing::jwt(&KEY, inside),
    };
    parser.try_with(data);
});
