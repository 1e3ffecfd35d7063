//! The limits of the server. All are configurable; the defaults are for a machine that faces the public.

use std::time::Duration;

/// What one listener accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request body. The largest request of the product is a seat plan upload well below 1 MiB.
    pub body_bytes: usize,
    /// Bytes of a body under `/api/auth`: names and passwords. Small, because anybody may send it.
    pub auth_body_bytes: usize,
    /// Bytes of the request line and all headers together; more is 431. At least 8 KiB, the parser's buffer.
    pub header_bytes: usize,
    /// Number of headers; more is 431. Browsers send about 20, proxies add about 10.
    pub headers: usize,
    /// From the first byte of the handler to its answer, the reading of the body included.
    pub request_time: Duration,
    /// From the first byte of a request to its complete header, and from the connection to the first request: bounds slow senders.
    pub header_read_time: Duration,
    /// How long a connection that has asked something may be quiet. Longer than balancers keep theirs, or they send a request into a
    /// connection that is being closed. While more than half of the connections are taken it is `header_read_time`.
    pub keep_alive_time: Duration,
    /// How long a client may refuse to take any byte of its answer.
    pub write_stall_time: Duration,
    /// Requests in handlers at the same time; above it 503. At 30 s and 20 kB each, 10,000 are 200 MB.
    pub max_in_flight: usize,
    /// Open connections; above it a new one is told 503 and closed. At 18 kB each, 16,000 are 290 MB.
    pub max_connections: usize,
    /// Open connections of one client address, of one /64 with IPv6; above it a new one is told 503 and closed. Phones of
    /// one mobile carrier share addresses, so it is far more than one browser opens.
    pub max_connections_per_address: usize,
    /// How long requests in progress may take once the server is told to stop.
    pub drain_time: Duration,
}

impl Limits {
    /// The limit of one address where none is configured: an eighth of all connections, but enough for a carrier's NAT.
    pub fn per_address(max_connections: usize) -> usize {
        (max_connections / 8).max(256)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 1024 * 1024,
            auth_body_bytes: 10_000,
            header_bytes: 16 * 1024,
            headers: 100,
            request_time: Duration::from_secs(30),
            header_read_time: Duration::from_secs(10),
            keep_alive_time: Duration::from_secs(75),
            write_stall_time: Duration::from_secs(30),
            max_in_flight: 10_000,
            max_connections: 16_000,
            max_connections_per_address: Self::per_address(16_000),
            drain_time: Duration::from_secs(30),
        }
    }
}
