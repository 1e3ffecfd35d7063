//! Configuration: gathered as text from four sources, checked against the declared settings, and
//! read into one struct. Each crate declares its own section (`settings.rs`); the sections of the
//! process itself are here.

mod check;
mod docs;
mod load;
mod production;
mod remote_roles;
mod secrets;
mod sections;
mod show;
#[cfg(test)]
pub(crate) mod tests;

use std::{net::SocketAddr, path::PathBuf, sync::LazyLock};

use urr_auth::{IdentityKind, SecondFactor};
use urr_settings::{Count, Problems, Section as _, settings};

pub(crate) use docs::markdown;
pub(crate) use load::{Flag, Input, Values};
pub(crate) use remote_roles::{Remote, Upstream};
pub(crate) use secrets::{path as secrets_path, read_or_create as read_or_create_secrets};
pub(crate) use sections::{Admin, Aws, Internal, Security, SigningSecret};
pub(crate) use show::effective;
pub(crate) use urr_settings::{Choice, HttpUrl, Info, Kind, Problem, choice, nearest};

use crate::{
    domains,
    roles::{Role, Roles},
};

choice! {
    /// How strict the process is about its configuration.
    pub(crate) enum Profile {
        /// Generates secrets and demo data: for a laptop, a test or a small hall.
        Local = "local",
        /// Refuses to start without configured secrets and never seeds demo data.
        Production = "production",
    }
}

settings! {
    /// The whole configuration.
    pub(crate) struct Config in "" "What this process is and where it lives." {
        /// `production` refuses to start without configured secrets and never seeds demo data.
        pub profile: Profile = "local",
        /// Address of the public API. Port 0 picks a free one, which the first lines of output
        /// name.
        pub listen: SocketAddr = "127.0.0.1:3001",
        /// URL of the site for links in mails, such as `https://urr.example`. Left out, it is
        /// `http://` and `listen`.
        pub public_url: Option<HttpUrl> = "",
        /// Directory of SQLite files and generated secrets. With SQLite one process at a time may
        /// use it.
        pub data_dir: PathBuf = "./urr-data",
        /// The parts of the product that this process runs; it serves the public API of each.
        /// `gateway` also forwards requests to `upstream`.
        pub roles: Roles = "all",
        /// Whether the first start fills an empty catalog with sample events. Only with SQLite and
        /// the `local` profile.
        pub demo: bool = "true",
        /// Speed of the wall clock of this process as a multiple of real time, so that hours pass
        /// in minutes, as in `urr stampede`. More than 1 is for tests: refused with the
        /// `production` profile, with PostgreSQL or Redis, which have their own clocks, and on a
        /// `listen` beyond loopback.
        pub clock_speed: Count<1, 1_000> = "1",
    }
    tables {
        /// The SQL engine.
        pub storage: urr_db::Settings,
        /// The message bus.
        pub bus: urr_bus::Settings,
        /// Redis.
        pub redis: urr_kv::Settings,
        /// Roles in other processes that this one calls.
        pub remote: Remote,
        /// Roles in other processes that this one passes requests on to.
        pub upstream: Upstream,
        /// The listener for other processes.
        pub internal: Internal,
        /// Limits of both listeners.
        pub http: urr_http::Limits,
        /// Proxies, operators and origins of the public listener.
        pub door: urr_gateway::Settings,
        /// Requests per client.
        pub limits: urr_gateway::limit::RateLimits,
        /// Logs and traces.
        pub log: urr_telemetry::Settings,
        /// Rules of selling.
        pub sale: urr_tickets::Settings,
        /// The waiting room in front of one event.
        pub queue: urr_queue::Settings,
        /// Tier 1 of the waiting room.
        pub vwr: urr_vwr::Settings,
        /// DynamoDB and SQS.
        pub aws: Aws,
        /// Mails.
        pub mail: urr_mail::Settings,
        /// Accounts.
        pub auth: urr_auth::Settings,
        /// Keys.
        pub security: Security,
        /// The first administrator.
        pub admin: Admin,
    }
}

/// Every setting, in the order of docs/config.md.
pub(crate) fn infos() -> &'static [&'static Info] {
    static INFOS: LazyLock<Vec<&'static Info>> = LazyLock::new(Config::infos);
    &INFOS
}

/// Reads the settings without checking them against each other, for commands that need only one or
/// two.
pub(crate) fn gather(input: &Input) -> Result<Values, Vec<Problem>> {
    let (values, problems) = Values::load(input);
    if problems.is_empty() { Ok(values) } else { Err(problems) }
}

/// Reads, resolves and checks the configuration. On failure returns every problem.
pub(crate) fn load(input: &Input) -> Result<(Values, Config), Vec<Problem>> {
    let (values, mut problems) = Values::load(input);
    match Config::resolve(&values) {
        Ok(config) if problems.is_empty() => Ok((values, config)),
        Ok(_) => Err(problems),
        Err(more) => {
            problems.extend(more);
            Err(problems)
        }
    }
}

impl Config {
    /// Reads the settings, fills in dependent defaults, and checks them.
    pub(crate) fn resolve(values: &Values) -> Result<Self, Vec<Problem>> {
        let mut config = Self::read(values);
        config.fill();
        let mut problems = Problems::new(values);
        config.check(&mut problems);
        if problems.found.is_empty() { Ok(config) } else { Err(problems.found) }
    }

    /// Settings whose default depends on others.
    fn fill(&mut self) {
        let local = self.profile == Profile::Local;
        self.demo &= local && self.storage.is_sqlite();
        let over_tls = self.public_url.as_ref().is_some_and(|url| url.expose().starts_with("https://"));
        let plain = local && self.listen.ip().is_loopback() && !over_tls;
        self.auth.cookie_secure.get_or_insert(!plain);
        let factor = if local { SecondFactor::Off } else { SecondFactor::Required };
        self.auth.admin_second_factor.get_or_insert(factor);
        let identity = if local { IdentityKind::Sandbox } else { IdentityKind::Off };
        self.auth.identity.get_or_insert(identity);
        // In production a proxy on the same machine may forward public requests from loopback.
        let near = if local { urr_gateway::Settings::loopback() } else { Vec::new() };
        self.door.operators.get_or_insert(near);
        let at_hand = self.is_reachable(&domains::queue::ROLE);
        self.queue.guard.get_or_insert(at_hand);
    }

    /// Whether cookies are `Secure`.
    pub(crate) fn secure_cookies(&self) -> bool {
        self.auth.secure_cookies()
    }

    /// Whether seats are sold only to users with a slot.
    pub(crate) fn guards_seats(&self) -> bool {
        self.queue.guard == Some(true)
    }

    /// Whether every secret that is used is set.
    pub(crate) fn is_complete(&self) -> bool {
        self.security.secret.is_some()
            && (self.internal.token.is_some() || !self.talks_to_others())
            && (self.auth.index_key.is_some() || !self.roles.has(&domains::auth::ROLE))
    }

    /// The secrets from which keys are derived, newest first.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &SigningSecret> {
        self.security.secret.iter().chain(&self.security.former_secrets)
    }

    /// Whether this process makes or accepts internal calls, and so needs `internal.token`.
    pub(crate) fn talks_to_others(&self) -> bool {
        self.internal.listen.is_some() || self.needs_remote().next().is_some()
    }

    /// The roles that this process calls but does not run.
    pub(crate) fn needs_remote(&self) -> impl Iterator<Item = Role> {
        let calls = |role: &Role| self.roles.iter().any(|here| here.calls.contains(role));
        let by_guards = |role: &Role| {
            let used = role.remote.as_ref().and_then(|remote| remote.by_guards);
            used.is_some_and(|is_used| is_used(self))
        };
        Role::all().filter(move |role| !self.roles.has(*role) && (calls(role) || by_guards(role)))
    }

    /// Whether a role runs here or `remote` names it.
    pub(crate) fn is_reachable(&self, role: impl Into<Role>) -> bool {
        let role = role.into();
        self.roles.has(role) || self.remote.of(role).is_some()
    }

    /// The roles whose requests this process forwards.
    pub(crate) fn passes_on(&self) -> impl Iterator<Item = Role> {
        let is_remote = |role: &Role| !self.roles.has(*role) && !self.upstream.of(*role).is_empty();
        let forwards = self.roles.has(&domains::gateway::ROLE);
        Role::serving().filter(move |role| forwards && is_remote(role))
    }
}
