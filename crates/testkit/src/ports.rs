//! Free ports on loopback. `xtask` compiles this file too, so it uses only the standard library.

use std::{
    net::TcpStream,
    sync::atomic::{AtomicU16, Ordering},
};

/// Below 32768, where Linux starts its range for outgoing connections: a client could take such a
/// port between our check and the server's bind, or while a killed server restarts.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// Number of ports checked by this process, so that no port is returned twice.
static LOOKED_AT: AtomicU16 = AtomicU16::new(0);

/// A port without a listener. The search starts at a different port in each process, so that
/// concurrent test binaries do not collide.
///
/// # Panics
///
/// If all ports of the range are taken.
pub fn free_port() -> u16 {
    let found = (0..COUNT).find_map(|_| {
        let step = u32::from(LOOKED_AT.fetch_add(1, Ordering::Relaxed));
        let offset = std::process::id().wrapping_mul(37).wrapping_add(step) % u32::from(COUNT);
        let port = FIRST + u16::try_from(offset).expect("the offset is below COUNT");
        // Checked by connecting, not by binding: a concurrently forked child would hold the bound
        // socket until its exec.
        TcpStream::connect(("127.0.0.1", port)).is_err().then_some(port)
    });
    found.unwrap_or_else(|| panic!("none of the {COUNT} ports from {FIRST} is free"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn two_calls_return_two_ports_that_can_be_bound() {
        let (one, other) = (free_port(), free_port());
        assert_ne!(one, other);
        let _one = TcpListener::bind(("127.0.0.1", one)).unwrap();
        let _other = TcpListener::bind(("127.0.0.1", other)).unwrap();
    }
}
