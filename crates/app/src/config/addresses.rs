//! Where other servers are: URLs, brokers, mail. A URL may carry a password, so it prints without it.

use std::fmt;

use super::kinds::{Kind, REDACTED};

/// `host:port` of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort(pub String);

impl Kind for HostPort {
    fn describe() -> String {
        "`host:port`".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if let Some((scheme, _)) = text.split_once("://") {
            return Err(format!("starts with `{scheme}://`; a broker is just host:port"));
        }
        match text.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
                Ok(Self(text.to_owned()))
            }
            _ => Err("is not host:port, such as kafka-1:9092".to_owned()),
        }
    }
}

/// An account name that mail reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Email(pub String);

impl Kind for Email {
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

/// Declares a URL type: whether it may carry a password, and the schemes it understands.
macro_rules! url {
    ($($(#[$meta:meta])* $name:ident($secret:literal): $($scheme:literal)|+;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq)]
        pub(crate) struct $name(String);

        impl $name {
            /// The address with its password: for the code that connects, never for a log.
            pub(crate) fn expose(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&redact_url(&self.0))
            }
        }

        impl Kind for $name {
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
    /// Where a PostgreSQL server is.
    PostgresUrl(true): "postgres" | "postgresql";
    /// Where a Redis node is.
    RedisUrl(true): "redis" | "rediss";
    /// Where another role, or a collector of traces, is.
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

/// The URL without its password. A password with a stray `/` or `@` in it is still hidden whole.
pub(crate) fn redact_url(text: &str) -> String {
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
    use crate::config::kinds::List;

    #[test]
    fn a_url_is_printed_without_its_password() {
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
    fn unknown_schemes_and_urls_without_a_host_are_refused() {
        let wrong = PostgresUrl::parse("mysql://db/urr").unwrap_err();
        assert!(wrong.contains("unknown scheme `mysql`"), "{wrong}");
        assert!(PostgresUrl::parse("db:5432").unwrap_err().contains("must start with postgres://"));
        assert!(RedisUrl::parse("redis://").unwrap_err().contains("names no host"));
        assert!(HttpUrl::parse("http://user:secret@/x").unwrap_err().contains("names no host"));
        assert!(RedisUrl::parse("rediss://cache:6380").is_ok());
    }

    #[test]
    fn brokers_are_host_and_port() {
        assert!(HostPort::parse("kafka-1:9092").is_ok());
        assert!(HostPort::parse("kafka-1").is_err());
        assert!(HostPort::parse("kafka://kafka-1:9092").unwrap_err().contains("just host:port"));
    }
}
