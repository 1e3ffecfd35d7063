//! Addresses of other servers. A URL may contain a password and is printed without it.

use std::{fmt, net::IpAddr};

use crate::{Kind, REDACTED};

/// `host:port`, such as that of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// Host name or IP address; an IPv6 address is in brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl HostPort {
    /// Whether it is a loopback address.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Whether a host, with or without the brackets of IPv6, is loopback.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

impl Kind for HostPort {
    type Value = Self;

    fn describe() -> String {
        "`host:port`".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if let Some((scheme, _)) = text.split_once("://") {
            return Err(format!("starts with `{scheme}://`; a broker is just host:port"));
        }
        match text.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
            Some((host, Ok(port))) if !host.is_empty() && port > 0 => {
                Ok(Self { host: host.to_owned(), port })
            }
            _ => Err("is not host:port, such as kafka-1:9092".to_owned()),
        }
    }
}

/// An e-mail address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email(pub String);

impl Kind for Email {
    type Value = Self;

    fn describe() -> String {
        "e-mail address".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('@') {
            Some((name, host))
                if !name.is_empty() && host.contains('.') && !text.contains(char::is_whitespace) =>
            {
                Ok(Self(text.to_owned()))
            }
            _ => Err("is not an e-mail address".to_owned()),
        }
    }
}

/// Declares a URL type: whether it may contain a password, and its schemes.
macro_rules! url {
    ($($(#[$meta:meta])* $name:ident($secret:literal): $($scheme:literal)|+;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq)]
        pub struct $name(String);

        impl $name {
            /// The URL with its password, for code that connects. Never log it.
            pub fn expose(&self) -> &str {
                &self.0
            }

            /// The host, without user, port and path.
            pub fn host(&self) -> &str {
                let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
                let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
                let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
                if rest.starts_with('[') {
                    rest.split_inclusive(']').next().unwrap_or_default()
                } else {
                    rest.split(':').next().unwrap_or_default()
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&redact_url(&self.0))
            }
        }

        impl Kind for $name {
            type Value = Self;

            const SECRET: bool = $secret;

            fn describe() -> String {
                [$(concat!("`", $scheme, "://…`")),+].join(" or ")
            }

            fn parse(text: &str) -> Result<Self, String> {
                check_url(text, &[$($scheme),+])?;
                Ok(Self(text.trim_end_matches('/').to_owned()))
            }

            fn show(text: &str) -> String {
                redact_url(text)
            }
        }
    )*};
}

url! {
    /// URL of a PostgreSQL database.
    PostgresUrl(true): "postgres" | "postgresql";
    /// URL of a Redis node.
    RedisUrl(true): "redis" | "rediss";
    /// URL of an HTTP server, without a trailing slash.
    HttpUrl(false): "http" | "https";
}

fn check_url(text: &str, schemes: &[&str]) -> Result<(), String> {
    let known = schemes.iter().map(|scheme| format!("{scheme}://")).collect::<Vec<_>>().join(" or ");
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(format!("is not a URL; it must start with {known}"));
    };
    if !schemes.contains(&scheme) {
        return Err(format!("has the unknown scheme `{scheme}`; only {known} is understood"));
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("contains white space; write it as %20".to_owned());
    }
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if host.is_empty() || host.starts_with(['/', ':', '?', '#']) {
        return Err("names no host".to_owned());
    }
    Ok(())
}

/// The URL without its password. A password that contains `/` or `@` is still redacted entirely.
fn redact_url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return REDACTED.to_owned() };
    let (user, host) = match rest.rsplit_once('@') {
        Some((user, host)) if user.contains(':') => {
            (user.split(':').next().unwrap_or_default().to_owned() + ":***@", host)
        }
        Some((user, host)) => (format!("{user}@"), host),
        None => (String::new(), rest),
    };
    let host = match host.split_once('?') {
        Some((path, query)) => format!("{path}?{}", redact_query(query)),
        None => host.to_owned(),
    };
    format!("{scheme}://{user}{host}")
}

fn redact_query(query: &str) -> String {
    let hide = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if name.contains("pass") || name.contains("token") => format!("{name}=***"),
        _ => pair.to_owned(),
    };
    query.split('&').map(hide).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::List;

    #[test]
    fn url_is_printed_without_its_password() {
        for (url, shown) in [
            ("postgres://urr:hunter2@db:5432/urr", "postgres://urr:***@db:5432/urr"),
            ("postgres://urr:hun/ter@2@db/urr", "postgres://urr:***@db/urr"),
            ("redis://:hunter2@cache", "redis://:***@cache"),
            ("postgres://urr@db/urr?sslmode=require", "postgres://urr@db/urr?sslmode=require"),
            ("postgres://db/urr?password=hunter2&a=b", "postgres://db/urr?password=***&a=b"),
            ("hunter2", "(redacted)"),
        ] {
            assert_eq!(redact_url(url), shown);
        }
        assert!(!format!("{:?}", RedisUrl::parse("redis://:hunter2@a").unwrap()).contains("hunter2"));
        assert_eq!(
            List::<RedisUrl>::show("redis://:hunter2@a, redis://:hunter2@b"),
            "redis://:***@a, redis://:***@b"
        );
    }

    #[test]
    fn unknown_schemes_and_missing_hosts_are_rejected() {
        let wrong = PostgresUrl::parse("mysql://db/urr").unwrap_err();
        assert!(wrong.contains("unknown scheme `mysql`"), "{wrong}");
        assert!(PostgresUrl::parse("db:5432").unwrap_err().contains("must start with postgres://"));
        assert!(RedisUrl::parse("redis://").unwrap_err().contains("names no host"));
        assert!(HttpUrl::parse("http://user:secret@/x").unwrap_err().contains("names no host"));
        assert!(RedisUrl::parse("rediss://cache:6380").is_ok());
        for (url, host) in [
            ("http://u:p@a.example:80/x", "a.example"),
            ("https://[::1]:443", "[::1]"),
            ("http://127.0.0.1", "127.0.0.1"),
        ] {
            assert_eq!(HttpUrl::parse(url).unwrap().host(), host);
        }
    }

    #[test]
    fn brokers_are_parsed_as_host_and_port() {
        assert_eq!(HostPort::parse("kafka-1:9092").unwrap().to_string(), "kafka-1:9092");
        assert!(HostPort::parse("[::1]:9092").unwrap().is_loopback());
        assert!(!HostPort::parse("localhost.example.com:9092").unwrap().is_loopback());
        assert!(HostPort::parse("kafka-1").is_err());
        assert!(HostPort::parse("kafka://kafka-1:9092").unwrap_err().contains("just host:port"));
    }
}
