//! Tier 1 passes.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use urr_fuzz::{NOW, Parser, claims, secret};
use urr_kernel::{EventId, OrderKey, VisitorId};
use urr_passes::{fuzzing, vwr_pass};
use uuid::Uuid;

static KEY: LazyLock<urr_passes::Key> = LazyLock::new(|| vwr_pass::key(&secret()));
static PASSES: LazyLock<vwr_pass::Passes> = LazyLock::new(|| vwr_pass::Passes::new([KEY.clone()]));
static GENUINE: LazyLock<String> = LazyLock::new(|| {
    let (event, visitor) = (EventId::from_uuid(Uuid::from_u128(1)), VisitorId::from_uuid(Uuid::from_u128(2)));
    let pass = vwr_pass::Pass { event, visitor, order: OrderKey::at(NOW), position: 7 };
    PASSES.sign(&pass, Uuid::from_u128(4), NOW)
});

fuzz_target!(|data: &[u8]| {
    let parser = Parser {
        read: &|text| PASSES.verify(text, NOW).ok().map(|verified| verified.pass),
        write: &|said| PASSES.sign(said, Uuid::from_u128(5), NOW),
        genuine: &GENUINE,
        inside: &claims(&GENUINE),
        sign: &|inside| fuzzing::jwt(&KEY, inside),
    };
    parser.try_with(data);
});
