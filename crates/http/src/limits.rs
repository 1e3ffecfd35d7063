//! Server limits. The defaults suit a server on the public internet.

use std::time::Duration;

use urr_settings::{Secs, Size, settings};

settings! {
    /// What one listener accepts.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Limits in "http"
        "Limits of both listeners, each of which bounds memory or time under load, and which proxies and origins the \
         public one trusts."
    {
        /// Largest request body.
        // The largest request is a seat plan upload, well below 1 MiB.
        pub body_bytes: Size<1_024, 67_108_864> = "1048576",
        /// Largest body of a request under `/api/auth`.
        // Small, because anyone may send it.
        pub auth_body_bytes: Size<1_024, 1_048_576> = "10000",
        /// Largest request head; more is answered with 431.
        // At least 8 KiB, the parser's buffer.
        pub header_bytes: Size<8_192, 262_144> = "16384",
        /// Most header lines of a request; more is answered with 431.
        // Browsers send about 20, proxies add about 10.
        pub headers: Size<16, 1_000> = "100",
        /// Seconds until an unfinished request is answered with 504.
        pub request_time("request_secs"): Secs<1, 30> = "30",
        /// Seconds a client may take to send its request head.
        // Also bounds the time from the connection to the first request.
        pub header_read_time("header_read_secs"): Secs<1, 60> = "10",
        /// Seconds a connection may be idle between two requests; more than the balancer in front keeps
        /// its own. While more than half of `http.max_connections` are open it is
        /// `http.header_read_secs`.
        pub keep_alive_time("keep_alive_secs"): Secs<1, 3_600> = "75",
        /// Seconds a client may refuse to take any byte of its answer before it is disconnected.
        pub write_stall_time("write_stall_secs"): Secs<1, 300> = "30",
        /// Seconds from SIGTERM to the closing of the listeners. `/health/ready` answers 503 meanwhile and
        /// everything else is served, for a balancer that checks there. They are taken from the 18 that
        /// requests in progress have.
        pub notice("notice_secs"): Secs<0, 15> = "0",
        /// Requests in progress at the same time; more get 503 with Retry-After. At 30 s and 20 kB each,
        /// 10000 are 200 MB.
        pub max_in_flight: Size<1, 1_000_000> = "10000",
        /// Connections open at the same time; more get 503 and are closed. At 18 kB each, 16000 are 290 MB.
        /// Fewer if the process may not open as many files, which it reports at start.
        pub max_connections: Size<1, 1_000_000> = "16000",
        /// Connections of one client address, or of one IPv6 /64, at the same time; more get 503 and are
        /// closed. 0 is an eighth of `http.max_connections`, at least 256: phones of one carrier share
        /// addresses. Trusted proxies and the internal listener are exempt.
        pub max_connections_per_address: Size<0, 1_000_000> = "0",
        /// Whether responses carry Strict-Transport-Security. Only where the site is served over TLS.
        pub hsts: bool = "false",
    }
    beside {
        /// How long requests in progress may take after shutdown began.
        pub drain_time: Duration = Duration::from_secs(30),
    }
}

impl Limits {
    /// The connection limit per address: as configured, or a share of all connections.
    pub fn per_address(&self) -> usize {
        match self.max_connections_per_address {
            0 => (self.max_connections / 8).max(256),
            configured => configured,
        }
    }
}
