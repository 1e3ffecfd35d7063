//! Settings of logs and traces.

use urr_settings::{Count, HttpUrl, choice, settings};

use crate::{Logging, Otlp};

choice! {
    /// How log lines look.
    pub enum LogFormat {
        /// For a person at a terminal.
        Pretty = "pretty",
        /// One JSON object per line, for a collector.
        Json = "json",
    }
}

settings! {
    /// `[log]`.
    pub struct Settings in "log" "Logs and traces." {
        /// `pretty` for people, `json` for collectors.
        pub format: LogFormat = "pretty",
        /// Which lines are written: a level, or levels per module such as `info,urr_tickets=debug`.
        pub filter: String = "info",
        /// One in so many requests is logged, and server errors, up to 100 a second. 0 logs errors
        /// only.
        pub access_sample: Count<0, 1_000_000> = "100",
        /// The OpenTelemetry collector that traces go to, such as `http://127.0.0.1:4318`. Left
        /// out, there are no traces.
        pub otlp_url: Option<HttpUrl> = "",
        /// How many requests in a hundred are traced. A caller that already decided is followed.
        pub otlp_percent: Count<0, 100> = "10",
    }
}

impl Settings {
    /// Logging of a process that is called `service` in traces.
    pub fn logging(&self, service: &str) -> Logging {
        Logging {
            format: self.format,
            filter: self.filter.clone(),
            otlp: self.otlp_url.as_ref().map(|url| Otlp {
                endpoint: url.expose().to_owned(),
                service: service.to_owned(),
                sample: f64::from(self.otlp_percent) / 100.0,
            }),
        }
    }
}
