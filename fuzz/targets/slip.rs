//! Slips with arbitrary JSON.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use urr_fuzz::{NOW, Parser, claims, secret};
use urr_passes::{fuzzing, slip};
use uuid::Uuid;

static KEY: LazyLock<urr_passes::Key> = LazyLock::new(|| slip::key("fuzz", &secret()));
static SLIPS: LazyLock<slip::Slips> = LazyLock::new(|| slip::Slips::new("fuzz", [KEY.clone()]));
static GENUINE: LazyLock<String> =
    LazyLock::new(|| sign(&json!({ "state": "x", "provider": "somebody", "at": [1, null, 2.5] })));

fn sign(carries: &Value) -> String {
    SLIPS.sign(carries, Uuid::from_u128(1), (NOW, NOW.after(std::time::Duration::from_mins(5))))
}

fuzz_target!(|data: &[u8]| {
    let parser = Parser {
        read: &|text| SLIPS.verify::<Value>(text, NOW).ok().map(|slip| slip.carries),
        write: &|said| sign(said),
        genuine: &GENUINE,
        inside: &claims(&GENUINE),
        sign: &|inside| fuzzing::jwt(&KEY, inside),
    };
    parser.try_with(data);
});
