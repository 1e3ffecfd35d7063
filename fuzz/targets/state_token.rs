//! State tokens with arbitrary JSON.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use urr_fuzz::{NOW, Parser, claims, secret};
use urr_passes::{fuzzing, state_token};
use uuid::Uuid;

static KEY: LazyLock<urr_passes::Key> = LazyLock::new(|| state_token::key("fuzz", &secret()));
static TOKENS: LazyLock<state_token::StateTokens> = LazyLock::new(|| state_token::StateTokens::new("fuzz", [KEY.clone()]));
static GENUINE: LazyLock<String> =
    LazyLock::new(|| sign(&json!({ "state": "x", "provider": "somebody", "at": [1, null, 2.5] })));

fn sign(carries: &Value) -> String {
    TOKENS.sign(carries, Uuid::from_u128(1), (NOW, NOW.after(std::time::Duration::from_mins(5))))
}

fuzz_target!(|data: &[u8]| {
    let parser = Parser {
        read: &|text| TOKENS.verify::<Value>(text, NOW).ok().map(|state_token| state_token.carries),
        write: &|said| sign(said),
        genuine: &GENUINE,
        inside: &claims(&GENUINE),
        sign: &|inside| fuzzing::jwt(&KEY, inside),
    };
    parser.try_with(data);
});
