//! PostgreSQL connection settings and timeouts.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::{Domain, Error};

/// Timeouts. A request waits at most `acquire` + `statement` = 1.8 s for a server that is down or
/// stuck. That leaves 0.2 s of the 2 s after which callers rely on having an error.
const ACQUIRE: Duration = Duration::from_millis(600);
const STATEMENT: Duration = Duration::from_millis(1_200);
/// The server-side statement timeout is shorter than ours, so that a slow statement ends with a
/// proper error and the connection survives. The lock timeout is shorter still, but longer than the
/// 1 s that PostgreSQL waits by default before it looks for deadlocks.
const SERVER_GIVES_UP_EARLIER: Duration = Duration::from_millis(50);
const LOCK_GIVES_UP_EARLIER: Duration = Duration::from_millis(100);
/// A process paused in the middle of a transaction keeps its row locks at most this long.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(5);
/// Connections per domain and process. PostgreSQL performs best with a few per core; 16 also limits
/// what one role takes of the server's default of 100.
const POOL_SIZE: usize = 16;

/// How to reach PostgreSQL.
#[derive(Clone)]
pub struct PostgresConfig {
    /// `postgres://user:password@host:port/database?sslmode=…`. Without `sslmode`, loopback
    /// and Unix socket connections are plain text and all others use TLS; `sslmode=disable` must be
    /// explicit.
    pub url: String,
    /// The login that creates roles and schemas; `url` if absent. Serving needs only `url`.
    pub admin_url: Option<String>,
    /// The CA certificate of the server, as PEM; the system's CA list if absent.
    pub ca_file: Option<PathBuf>,
    /// Pool size per domain.
    pub pool_size: usize,
    /// Time limit for getting a connection, including the connect itself.
    pub acquire: Duration,
    /// Time limit of one statement.
    pub statement: Duration,
}

impl std::fmt::Debug for PostgresConfig {
    /// Omits the URLs: they contain passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("pool_size", &self.pool_size)
            .field("acquire", &self.acquire)
            .field("statement", &self.statement)
            .finish_non_exhaustive()
    }
}

impl PostgresConfig {
    /// With the default timeouts, the longest time until an unresponsive server yields an error.
    pub const NO_ANSWER: Duration = ACQUIRE.saturating_add(STATEMENT);

    /// The server at `url`, with the default timeouts.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            admin_url: None,
            ca_file: None,
            pool_size: POOL_SIZE,
            acquire: ACQUIRE,
            statement: STATEMENT,
        }
    }

    /// Validates everything that needs no server, for `check-config`.
    pub fn check(&self) -> Result<(), Error> {
        parse(&self.url)?;
        self.admin_url.as_deref().map(parse).transpose()?;
        super::tls::connector(self).map(|_| ())
    }

    /// Connection settings of one domain's pool: its role, its schema, our timeouts.
    pub(super) fn for_domain(&self, domain: &Domain) -> Result<tokio_postgres::Config, Error> {
        let mut config = parse(&self.url)?;
        let statement = self.statement.saturating_sub(SERVER_GIVES_UP_EARLIER).as_millis().max(1);
        let lock = self.statement.saturating_sub(LOCK_GIVES_UP_EARLIER).as_millis().max(1);
        let idle = IDLE_IN_TRANSACTION.as_millis();
        let options = format!(
            "-c role={} -c search_path={} -c statement_timeout={statement} -c lock_timeout={lock} \
             -c idle_in_transaction_session_timeout={idle}",
            domain.role(),
            domain.name
        );
        let given = config.get_options().map(|given| format!("{given} ")).unwrap_or_default();
        config.options(given + &options).application_name(format!("urr {}", domain.name));
        config.connect_timeout(self.acquire).tcp_user_timeout(self.acquire + self.statement);
        // After a failover the old primary may still accept connections, but rejects writes.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        Ok(config)
    }

    /// Connection settings for creating roles and schemas.
    pub(super) fn for_admin(&self) -> Result<tokio_postgres::Config, Error> {
        let mut config = parse(self.admin_url.as_deref().unwrap_or(&self.url))?;
        config.connect_timeout(self.acquire).application_name("urr provision");
        Ok(config)
    }

    /// The user name of `url`.
    pub(super) fn login(&self) -> Result<String, Error> {
        let config = parse(&self.url)?;
        let user = config.get_user().map(str::to_owned);
        user.ok_or_else(|| Error::bug("the PostgreSQL URL has no user name"))
    }
}

fn parse(url: &str) -> Result<tokio_postgres::Config, Error> {
    // We always verify certificates, so `verify-full` and `verify-ca` mean the same as `require`.
    let url =
        url.replace("sslmode=verify-full", "sslmode=require").replace("sslmode=verify-ca", "sslmode=require");
    let mut config: tokio_postgres::Config = url
        .parse()
        .map_err(|e: tokio_postgres::Error| Error::bug("the PostgreSQL URL is invalid").because(e))?;
    if config.get_ssl_mode() == SslMode::Prefer {
        // If a host name and a hostaddr are both given, the driver connects to the hostaddr.
        let local =
            config.get_hosts().iter().all(is_local) && config.get_hostaddrs().iter().all(IpAddr::is_loopback);
        config.ssl_mode(if local { SslMode::Disable } else { SslMode::Require });
    }
    Ok(config)
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_servers_use_tls_unless_disabled() {
        for (url, mode) in [
            ("postgres://u@127.0.0.1/d", SslMode::Disable),
            ("postgres://u@localhost/d", SslMode::Disable),
            ("postgres://u@localhost/d?hostaddr=127.0.0.1", SslMode::Disable),
            ("postgres://u@localhost/d?hostaddr=10.0.0.5", SslMode::Require),
            ("postgres://u@/d?hostaddr=10.0.0.5", SslMode::Require),
            ("postgres://u@db.example.com/d", SslMode::Require),
            ("postgres://u@db.example.com/d?sslmode=verify-full", SslMode::Require),
            ("postgres://u@db.example.com/d?sslmode=disable", SslMode::Disable),
        ] {
            assert_eq!(parse(url).unwrap().get_ssl_mode(), mode, "{url}");
        }
    }

    #[test]
    fn timeouts_add_up_to_less_than_two_seconds() {
        assert!(PostgresConfig::NO_ANSWER < Duration::from_secs(2));
        assert!(STATEMENT > Duration::from_secs(1) + LOCK_GIVES_UP_EARLIER, "deadlocks are found after 1 s");
    }

    #[test]
    fn a_password_is_not_printed() {
        let config = PostgresConfig::new("postgres://u:hunter2@localhost/d");
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn url_of_another_scheme_is_rejected() {
        assert!(PostgresConfig::new("mysql://u@localhost/d").check().is_err());
        assert!(PostgresConfig::new("postgres://u@localhost/d").check().is_ok());
    }
}
