//! Visitor cookies.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use urr_fuzz::{Parser, secret};
use urr_kernel::VisitorId;
use urr_passes::{fuzzing, visitor};
use uuid::Uuid;

static KEY: LazyLock<urr_passes::Key> = LazyLock::new(|| visitor::key(&secret()));
static MARKS: LazyLock<visitor::Marks> = LazyLock::new(|| visitor::Marks::new([KEY.clone()]));
static GENUINE: LazyLock<String> = LazyLock::new(|| MARKS.sign(VisitorId::from_uuid(Uuid::from_u128(1))));

fuzz_target!(|data: &[u8]| {
    let parser = Parser {
        read: &|text| MARKS.verify(text).ok(),
        write: &|said| MARKS.sign(*said),
        genuine: &GENUINE,
        inside: &fuzzing::fields(&GENUINE).expect("a genuine token has fields"),
        sign: &|inside| fuzzing::compact(b'V', &KEY, inside),
    };
    parser.try_with(data);
});
