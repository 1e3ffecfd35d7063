//! Queue tickets.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use urr_fuzz::{NOW, Parser, secret};
use urr_kernel::{EventId, OrderKey, UserId};
use urr_passes::{fuzzing, queue_ticket};
use uuid::Uuid;

static KEY: LazyLock<urr_passes::Key> = LazyLock::new(|| queue_ticket::key(&secret()));
static TICKETS: LazyLock<queue_ticket::Tickets> = LazyLock::new(|| queue_ticket::Tickets::new([KEY.clone()]));
static GENUINE: LazyLock<String> = LazyLock::new(|| {
    let (event, user) = (EventId::from_uuid(Uuid::from_u128(1)), UserId::from_uuid(Uuid::from_u128(2)));
    TICKETS.sign(&queue_ticket::Ticket { event, user, order: OrderKey::at(NOW), epoch: 1, issued: NOW })
});

fuzz_target!(|data: &[u8]| {
    let parser = Parser {
        read: &|text| TICKETS.verify(text, NOW).ok(),
        write: &|said| TICKETS.sign(said),
        genuine: &GENUINE,
        inside: &fuzzing::fields(&GENUINE).expect("a genuine token has fields"),
        sign: &|inside| fuzzing::compact(b'Q', &KEY, inside),
    };
    parser.try_with(data);
});
