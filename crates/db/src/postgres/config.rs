//! Where the server is and how long we wait for it.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::{Domain, Error};

/// The limits of waiting. A request waits at most `acquire` + `statement` = 1.8 s for a server that is down or stuck, which leaves 0.2 s
/// of the 2 s within which an answer is promised to whoever then has to look elsewhere.
const ACQUIRE: Duration = Duration::from_millis(600);
const STATEMENT: Duration = Duration::from_millis(1_200);
/// The server gives up first, so that a slow statement ends with a proper error on a connection that lives on. A wait for
/// a lock ends before that, but after the second a server takes by default to find a deadlock.
const SERVER_GIVES_UP_EARLIER: Duration = Duration::from_millis(50);
const LOCK_GIVES_UP_EARLIER: Duration = Duration::from_millis(100);
/// A process that was stopped in the middle of a transaction keeps its row locks no longer than this.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(5);
/// Connections per domain and process. PostgreSQL does best with a few per core; 16 also bounds what a role takes from
/// the server's default of 100.
const POOL_SIZE: usize = 16;

/// How to reach PostgreSQL.
#[derive(Clone)]
pub struct PostgresConfig {
    /// `postgres://user:password@host:port/database?sslmode=…`. Without `sslmode`, a server on this machine is spoken to
    /// in the clear and any other over TLS; `disable` must be asked for.
    pub url: String,
    /// Who creates roles and schemas; `url` itself if absent. Serving needs only `url`.
    pub admin_url: Option<String>,
    /// The authority that signed the server's certificate, as PEM; the machine's own list if absent.
    pub ca_file: Option<PathBuf>,
    /// Connections of each domain's pool.
    pub pool_size: usize,
    /// How long to wait for a free connection and to connect, together.
    pub acquire: Duration,
    /// How long one statement may take.
    pub statement: Duration,
}

impl std::fmt::Debug for PostgresConfig {
    /// Without the URLs: they carry passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("pool_size", &self.pool_size)
            .field("acquire", &self.acquire)
            .field("statement", &self.statement)
            .finish_non_exhaustive()
    }
}

impl PostgresConfig {
    /// How long it takes at most, with the usual limits, to find out that the server does not answer.
    pub const NO_ANSWER: Duration = ACQUIRE.saturating_add(STATEMENT);

    /// The server at `url`, with the usual limits.
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

    /// Checks what can be checked without a server: for `check-config`.
    pub fn check(&self) -> Result<(), Error> {
        parse(&self.url)?;
        self.admin_url.as_deref().map(parse).transpose()?;
        super::tls::connector(self).map(|_| ())
    }

    /// For the pool of one domain: acts as its role, sees its schema, gives up in time.
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
        // After a failover the old primary may still answer, but refuses to write.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        Ok(config)
    }

    /// For creating roles and schemas.
    pub(super) fn for_admin(&self) -> Result<tokio_postgres::Config, Error> {
        let mut config = parse(self.admin_url.as_deref().unwrap_or(&self.url))?;
        config.connect_timeout(self.acquire).application_name("urr provision");
        Ok(config)
    }

    /// Who signs in when serving.
    pub(super) fn login(&self) -> Result<String, Error> {
        let config = parse(&self.url)?;
        let user = config.get_user().map(str::to_owned);
        user.ok_or_else(|| Error::bug("the PostgreSQL URL names no user"))
    }
}

fn parse(url: &str) -> Result<tokio_postgres::Config, Error> {
    // We verify whenever we use TLS, so the stricter words of other clients mean what `require` means here.
    let url =
        url.replace("sslmode=verify-full", "sslmode=require").replace("sslmode=verify-ca", "sslmode=require");
    let mut config: tokio_postgres::Config = url
        .parse()
        .map_err(|e: tokio_postgres::Error| Error::bug("the PostgreSQL URL is not understood").because(e))?;
    if config.get_ssl_mode() == SslMode::Prefer {
        // Where both are given, addresses are what is connected to.
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
    fn a_server_elsewhere_is_spoken_to_over_tls_unless_told_otherwise() {
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
    fn waiting_for_a_stuck_server_adds_up_to_less_than_two_seconds() {
        assert!(PostgresConfig::NO_ANSWER < Duration::from_secs(2));
        assert!(STATEMENT > Duration::from_secs(1) + LOCK_GIVES_UP_EARLIER, "deadlocks are found after 1 s");
    }

    #[test]
    fn a_password_is_not_printed() {
        let config = PostgresConfig::new("postgres://u:hunter2@localhost/d");
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn a_url_that_is_none_is_refused() {
        assert!(PostgresConfig::new("mysql://u@localhost/d").check().is_err());
        assert!(PostgresConfig::new("postgres://u@localhost/d").check().is_ok());
    }
}
