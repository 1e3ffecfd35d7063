//! Tier 1 tickets.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use urr_fuzz::{NOW, Parser, secret};
use urr_kernel::{EventId, OrderKey, VisitorId};
use urr_passes::{fuzzing, vwr_ticket};
use uuid::Uuid;

static KEY: LazyLock<urr_passes::Key> = LazyLock::new(|| vwr_ticket::key(&secret()));
static TICKETS: LazyLock<vwr_ticket::Tickets> = LazyLock::new(|| vwr_ticket::Tickets::new([KEY.clone()]));
static GENUINE: LazyLock<String> = LazyLock::new(|| {
    let (event, visitor) = (EventId::from_uuid(Uuid::from_u128(1)), VisitorId::from_uuid(Uuid::from_u128(2)));
    let order = OrderKey::at(NOW);
    TICKETS.sign(&vwr_ticket::Ticket { event, visitor, position: 7, order, epoch: 1, issued: NOW })
});

fuzz_target!(|data: &[u8]| {
    let parser = Parser {
        read: &|text| TICKETS.verify(text, NOW).ok(),
        write: &|said| TICKETS.sign(said),
        genuine: &GENUINE,
        inside: &fuzzing::fields(&GENUINE).expect("a genuine token has fields"),
        sign: &|inside| fuzzing::compact(b'T', &KEY, inside),
    };
    parser.try_with(data);
});
