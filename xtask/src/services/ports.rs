//! Free ports on loopback.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicU16, Ordering},
};

use anyhow::{Result, bail};

/// Below 32768, where Linux begins to hand out ports for outgoing connections: a port from there could be taken by any
/// client between our look and the server's bind.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// How many ports this process has looked at, so that no two services are given the same one.
static LOOKED_AT: AtomicU16 = AtomicU16::new(0);

/// A port nobody listens on. The start depends on the process so that two runs side by side look in different places.
pub(crate) fn free() -> Result<u16> {
    for _ in 0..COUNT {
        let step = u32::from(LOOKED_AT.fetch_add(1, Ordering::Relaxed));
        let offset = (std::process::id().wrapping_mul(37) + step) % u32::from(COUNT);
        let port = FIRST + u16::try_from(offset).expect("the offset is below COUNT");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("none of the {COUNT} ports from {FIRST} is free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_calls_give_two_ports_that_can_be_bound() {
        let (one, other) = (free().unwrap(), free().unwrap());
        assert_ne!(one, other);
        let _one = TcpListener::bind(("127.0.0.1", one)).unwrap();
        let _other = TcpListener::bind(("127.0.0.1", other)).unwrap();
    }
}
