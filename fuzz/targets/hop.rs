//! Signed client addresses of forwarded requests.

#![no_main]

use std::{net::IpAddr, sync::LazyLock};

use libfuzzer_sys::fuzz_target;
use urr_fuzz::{NOW, Parser, secret};
use urr_passes::{fuzzing, hop};

static KEY: LazyLock<urr_passes::Key> = LazyLock::new(|| hop::key(&secret()));
static SIGNER: LazyLock<hop::Signer> = LazyLock::new(|| hop::Signer::new(KEY.clone()));
static VERIFIER: LazyLock<hop::Verifier> = LazyLock::new(|| hop::Verifier::new([KEY.clone()]));
static GENUINE: LazyLock<String> = LazyLock::new(|| SIGNER.sign(IpAddr::from([192, 0, 2, 9]), NOW));

fuzz_target!(|data: &[u8]| {
    let said = GENUINE.rsplit_once(';').expect("a genuine value is signed").0;
    let parser = Parser {
        // An IPv4 address has two forms; the signer writes the short one.
        read: &|text| VERIFIER.verify(text, NOW).ok().map(|client| client.to_canonical()),
        write: &|client| SIGNER.sign(*client, NOW),
        genuine: &GENUINE,
        inside: said.as_bytes(),
        sign: &|inside| fuzzing::hop(&KEY, &String::from_utf8_lossy(inside)),
    };
    parser.try_with(data);
});
