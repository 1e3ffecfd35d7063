//! Free ports on loopback. `xtask` compiles this file too, so it uses nothing but the standard library.

use std::{
    net::TcpStream,
    sync::atomic::{AtomicU16, Ordering},
};

/// Below 32768, where Linux begins to hand out ports for outgoing connections: a port from there could be taken by any
/// client between our look and the server's bind, or while a server that was killed is being started again.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// How many ports this process has looked at, so that no two callers are given the same one.
static LOOKED_AT: AtomicU16 = AtomicU16::new(0);

/// A port nobody listens on. Where the search starts depends on the process, so that two test binaries that run side by
/// side look in different places.
///
/// # Panics
/// When thousands of ports are taken, which no test machine is meant to see.
pub fn free_port() -> u16 {
    let found = (0..COUNT).find_map(|_| {
        let step = u32::from(LOOKED_AT.fetch_add(1, Ordering::Relaxed));
        let offset = std::process::id().wrapping_mul(37).wrapping_add(step) % u32::from(COUNT);
        let port = FIRST + u16::try_from(offset).expect("the offset is below COUNT");
        // Asked by connecting, not by binding: a child forked meanwhile would hold the bound socket until its exec.
        TcpStream::connect(("127.0.0.1", port)).is_err().then_some(port)
    });
    found.unwrap_or_else(|| panic!("none of the {COUNT} ports from {FIRST} is free"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn two_calls_give_two_ports_that_can_be_bound() {
        let (one, other) = (free_port(), free_port());
        assert_ne!(one, other);
        let _one = TcpListener::bind(("127.0.0.1", one)).unwrap();
        let _other = TcpListener::bind(("127.0.0.1", other)).unwrap();
    }
}
