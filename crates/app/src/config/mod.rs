//! Configuration: gathered as text from four sources, checked against one table of settings, and resolved into a struct whose
//! enums carry their own data. Nothing outside this crate sees any of it.

mod addresses;
mod aws;
mod bus;
mod choices;
mod clock;
mod docs;
mod door;
mod kinds;
mod load;
mod production;
mod queue;
mod resolve;
mod secrets;
mod settings;
mod show;
mod social;
#[cfg(test)]
pub(crate) mod tests;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

pub(crate) use addresses::{HttpUrl, PostgresUrl, RedisUrl};
#[cfg(feature = "aws")]
pub(crate) use aws::AwsPlace;
pub(crate) use aws::{Counting, Notices};
pub(crate) use choices::{LogFormat, Profile};
pub(crate) use docs::markdown;
pub(crate) use door::Door;
pub(crate) use kinds::choice;
pub(crate) use kinds::{Choice, Kind, Property, Secret, SigningSecret, nearest};
pub(crate) use load::{Flag, Input, Problem, Values};
pub(crate) use secrets::{path as secrets_path, read_or_create as read_or_create_secrets};
pub(crate) use show::effective;

use urr_auth::{PiiKeys, PortOneConfig, SocialConfig};
use urr_mail::SmtpConfig;

use crate::roles::{Role, Roles};

/// Everything the process needs to know, checked as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// How careful to be.
    pub profile: Profile,
    /// The public listener.
    pub listen: SocketAddr,
    /// Where people reach the site, if it was said.
    pub public_url: Option<String>,
    /// Where files are kept.
    pub data_dir: PathBuf,
    /// What this process runs.
    pub roles: Roles,
    /// Whether an empty catalog is filled with demo data: already false where it must not be.
    pub demo: bool,
    /// How many seconds pass in one.
    pub clock_speed: u32,
    /// The SQL engine.
    pub storage: Storage,
    /// How events travel.
    pub bus: Bus,
    /// The contention shield, if there is one.
    pub redis: Option<Redis>,
    /// Roles in other processes.
    pub remote: Remote,
    /// The listener for other processes, if there is one.
    pub internal_listen: Option<SocketAddr>,
    /// The token between processes: `None` until it is generated.
    pub internal_token: Option<Secret<16>>,
    /// Limits of both listeners.
    pub http: Http,
    /// The front door.
    pub door: Door,
    /// Logs and traces.
    pub log: Log,
    /// Rules of selling.
    pub sale: Sale,
    /// The waiting room.
    pub queue: Queue,
    /// Where the places of Tier 1 are counted.
    #[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "it is checked, and then nobody uses it"))]
    pub counting: Counting,
    /// The queue that is told of admissions, if there is one.
    #[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "it is checked, and then nobody uses it"))]
    pub notices: Option<Notices>,
    /// The mail server; `None`: mails become files in the data directory.
    pub smtp: Option<SmtpConfig>,
    /// Accounts.
    pub auth: Auth,
    /// The first administrator, if it was said who that is.
    pub admin: Option<FirstAdmin>,
    /// What the keys of all tokens are made of: `None` until it is generated.
    pub secret: Option<SigningSecret>,
    /// What they were made of before.
    pub former_secrets: Vec<SigningSecret>,
}

/// Where the truth is.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    /// One file per domain in the data directory.
    Sqlite {
        /// Whether concurrent writes share one fsync.
        group_commit: bool,
    },
    /// One schema per domain on a server.
    Postgres {
        /// The login the process uses.
        url: PostgresUrl,
        /// The login that migrates.
        admin_url: Option<PostgresUrl>,
        /// Who signed the server's certificate.
        ca_file: Option<PathBuf>,
        /// Connections per domain.
        pool: usize,
    },
}

/// How events travel.
#[derive(Clone, Debug)]
pub(crate) enum Bus {
    /// Inside this process.
    InProcess,
    /// Through brokers.
    Kafka {
        /// Where to start.
        brokers: Vec<String>,
        /// Copies of each topic.
        replication: u32,
        /// Further properties of the client library.
        options: Vec<Property>,
    },
}

/// A Redis server or cluster.
#[derive(Clone, Debug)]
pub(crate) struct Redis {
    /// One node, or the start nodes of a cluster.
    pub urls: Vec<RedisUrl>,
    /// Whether it is a cluster.
    pub cluster: bool,
    /// Who signed the nodes' certificates.
    pub ca_file: Option<PathBuf>,
    /// Whether to allow a node beyond loopback without TLS or password.
    pub allow_insecure: bool,
    /// How long one call may take.
    pub deadline: Duration,
}

/// Where roles that are not here run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remote {
    /// Accounts.
    pub auth: Option<HttpUrl>,
    /// The catalog.
    pub catalog: Option<HttpUrl>,
    /// The waiting room.
    pub queue: Option<HttpUrl>,
    /// Tier 1 of the waiting room.
    pub vwr: Option<HttpUrl>,
}

impl Remote {
    /// Where a role runs.
    pub(crate) fn of(&self, role: Role) -> Option<&HttpUrl> {
        match role {
            Role::Auth => self.auth.as_ref(),
            Role::Catalog => self.catalog.as_ref(),
            Role::Queue => self.queue.as_ref(),
            Role::Vwr => self.vwr.as_ref(),
            // Nobody calls these from another process.
            Role::Tickets | Role::Site | Role::Gateway | Role::Notices => None,
        }
    }
}

/// Limits of both listeners.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    /// Largest body.
    pub body_bytes: usize,
    /// Largest body of a sign-in.
    pub auth_body_bytes: usize,
    /// Largest request head.
    pub header_bytes: usize,
    /// Most header lines.
    pub headers: usize,
    /// Longest request.
    pub request_time: Duration,
    /// Longest wait for a request head.
    pub header_read_time: Duration,
    /// Longest quiet between two requests.
    pub keep_alive_time: Duration,
    /// Longest a client may refuse its answer.
    pub write_stall_time: Duration,
    /// How long a stop is announced before the listeners close.
    pub notice: Duration,
    /// Requests at a time.
    pub max_in_flight: usize,
    /// Connections at a time.
    pub max_connections: usize,
    /// Connections of one address at a time; 0 is a share of all.
    pub max_connections_per_address: usize,
    /// Whether browsers are told to use nothing but TLS.
    pub hsts: bool,
}

/// Logs and traces.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    /// For people or for collectors.
    pub format: LogFormat,
    /// Which lines.
    pub filter: String,
    /// One in so many successful requests.
    pub access_sample: u32,
    /// Where traces go.
    pub otlp: Option<HttpUrl>,
    /// Of a hundred requests, how many are traced.
    pub otlp_percent: u32,
}

/// Rules of selling.
#[derive(Clone, Debug)]
pub(crate) struct Sale {
    /// How long an unpaid reservation keeps its seats.
    pub hold: Duration,
}

/// The waiting room.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// Whether seats are sold only to those who are in.
    pub guard: bool,
    /// The numbers rooms live by.
    pub limits: urr_queue::Limits,
    /// After Redis has lost a room nobody is let in for this long.
    pub grace: Duration,
}

/// Accounts.
#[derive(Clone, Debug)]
pub(crate) struct Auth {
    /// Whether cookies go over HTTPS alone.
    pub cookie_secure: bool,
    /// Finds accounts by their address: `None` until it is generated.
    pub index_key: Option<Secret<32>>,
    /// Seals personal data.
    pub pii_keys: Option<PiiKeys>,
    /// Whether what was written before there were keys is read and sealed.
    pub seals_plain: bool,
    /// Whether administrators are administrators only with a second factor.
    pub admin_needs_second_factor: bool,
    /// Who vouches for persons.
    pub identity: Identity,
    /// The version of the terms.
    pub terms_version: String,
    /// How long the data of a closed account is kept.
    pub erase_after: Duration,
    /// How long until an unused account falls dormant.
    pub dormant_after: Duration,
    /// How long sign-ins are remembered.
    pub history_kept: Duration,
    /// With whose accounts people may sign in.
    pub social: SocialConfig,
}

/// Who vouches for persons.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// Nobody.
    Off,
    /// Made-up persons.
    Sandbox,
    /// PortOne.
    Portone(PortOneConfig),
}

/// The first administrator.
#[derive(Clone, Debug)]
pub(crate) struct FirstAdmin {
    /// Their address.
    pub email: String,
    /// Their password.
    pub password: Secret<12>,
}

/// Gathers what was set, without asking whether it fits together: for commands that need a setting or two.
pub(crate) fn gather(input: &Input) -> Result<Values, Vec<Problem>> {
    let (values, problems) = Values::load(input);
    if problems.is_empty() { Ok(values) } else { Err(problems) }
}

/// Gathers and resolves. All problems at once, or a configuration that fits together.
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
    /// Whether every secret that is used is there.
    pub(crate) fn is_complete(&self) -> bool {
        self.secret.is_some()
            && (self.internal_token.is_some() || !self.talks_to_others())
            && (self.auth.index_key.is_some() || !self.roles.has(Role::Auth))
    }

    /// What keys are made of, the newest first.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &SigningSecret> {
        self.secret.iter().chain(&self.former_secrets)
    }

    /// Whether calls between processes are made or answered here, so that their token is needed.
    pub(crate) fn talks_to_others(&self) -> bool {
        self.internal_listen.is_some() || self.needs_remote().next().is_some()
    }

    /// The roles that this process calls but does not run.
    pub(crate) fn needs_remote(&self) -> impl Iterator<Item = Role> {
        let needs = |role| self.roles.iter().any(|here| here.needs().contains(&role));
        let asked_by_guards = |role| match role {
            Role::Auth | Role::Vwr => self.remote.of(role).is_some(),
            Role::Queue => self.queue.guard && self.roles.has(Role::Tickets),
            _ => false,
        };
        Role::ALL
            .iter()
            .copied()
            .filter(move |role| !self.roles.has(*role) && (needs(*role) || asked_by_guards(*role)))
    }

    /// The roles whose public routes this process passes on to others.
    pub(crate) fn passes_on(&self) -> impl Iterator<Item = Role> {
        let elsewhere = |role: &Role| !self.roles.has(*role) && !self.door.upstream.of(*role).is_empty();
        Role::SERVING.iter().copied().filter(move |role| self.roles.has(Role::Gateway) && elsewhere(role))
    }
}
