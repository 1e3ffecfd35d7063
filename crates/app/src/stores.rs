//! Creates the clients of the configured stores: databases, Redis, the bus, mail. Only SQLite files
//! are opened here; other clients connect on first use.

use std::sync::Arc;

use urr_auth::{IdentityProvider, Social};
use urr_bus::{Bus, BusKind, Limits};
use urr_db::{DataDir, Db, Domain};
use urr_kernel::Clock;
use urr_kv::Kv;
use urr_mail::{FileMailer, Mailer, SmtpMailer};

use crate::{aws, config::Config, failure::Failure, gateway, remote::RemoteRole, roles::Role, serve};

/// Finds errors that parsing the settings cannot find, without connecting to a store: URLs that a
/// driver refuses, unreadable certificates, an invalid log filter.
#[expect(clippy::unused_async, reason = "the clients of Redis and Kafka must be created inside a runtime")]
pub(crate) async fn check(config: &Config) -> Result<(), Failure> {
    let clock = Clock::system();
    let postgres = config.storage.postgres().map(|postgres| postgres.check());
    let postgres = postgres.transpose().map_err(|error| Failure::because("storage", &error));
    let found = [
        postgres.err(),
        redis(config, &clock).err(),
        bus(config).err(),
        aws::check(config).err(),
        mailer(config).err(),
        social(config, &clock).err(),
        RemoteRole::all(config, &clock).err(),
        gateway::upstreams(config, &clock).err(),
        serve::start_logging(config).err(),
    ];
    let lines: Vec<String> = found.into_iter().flatten().flat_map(|Failure(lines)| lines).collect();
    if lines.is_empty() { Ok(()) } else { Err(Failure(lines)) }
}

/// The databases of the roles that run here.
pub(crate) struct Databases {
    open: Vec<(Role, Db)>,
    /// Locks the data directory while the files are open.
    _lock: Option<DataDir>,
}

impl Databases {
    /// Opens them. With SQLite this locks the data directory.
    pub(crate) fn open(config: &Config) -> Result<Self, Failure> {
        let has_files = config.storage.is_sqlite() && config.roles.domains().next().is_some();
        let lock = if has_files { Some(lock(config)?) } else { None };
        let domains = config.roles.iter().filter_map(|role| Some((role, role.tables?)));
        let open = domains
            .map(|(role, domain)| {
                let failed = |error| Failure::because(format!("the {} database", domain.name), &error);
                Ok((role, database(config, domain).map_err(failed)?))
            })
            .collect::<Result<_, Failure>>()?;
        Ok(Self { open, _lock: lock })
    }

    /// Opens them for a command that reads tables. Fails with a hint if they are not migrated.
    pub(crate) async fn open_migrated(config: &Config) -> Result<Self, Failure> {
        let databases = Self::open(config)?;
        for (role, db) in databases.iter() {
            let failed = |error| Failure::because(format!("the {} database", role.name), &error);
            db.check_migrated().await.map_err(failed)?;
        }
        Ok(databases)
    }

    /// The database of a role that runs here.
    pub(crate) fn of(&self, role: impl Into<Role>) -> Db {
        let role = role.into();
        let found = self.open.iter().find(|(owner, _)| *owner == role);
        found.map(|(_, db)| db.clone()).expect("every domain that runs here has its database open")
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Role, &Db)> {
        self.open.iter().map(|(role, db)| (*role, db))
    }
}

/// Locks the data directory.
pub(crate) fn lock(config: &Config) -> Result<DataDir, Failure> {
    DataDir::lock(&config.data_dir).map_err(|error| match error {
        urr_db::DataDirError::InUse(path) => Failure::new(format!(
            "the data directory {} is in use by another process; stop that one, or choose another with --data-dir",
            path.display()
        )),
        urr_db::DataDirError::Unusable(..) => {
            Failure::new(format!("{}; choose another with --data-dir", urr_telemetry::chain(&error)))
        }
    })
}

/// One domain's database.
pub(crate) fn database(config: &Config, domain: &'static Domain) -> Result<Db, urr_db::Error> {
    match config.storage.postgres() {
        Some(postgres) => Db::postgres(&postgres, domain),
        None => Db::sqlite(&config.data_dir, domain, config.storage.sqlite()),
    }
}

/// The Redis client, if Redis is configured.
pub(crate) fn redis(config: &Config, clock: &Clock) -> Result<Option<Kv>, Failure> {
    let unreadable = |error| {
        let file = config.redis.ca_file.clone().unwrap_or_default();
        Failure::because(format!("redis.ca_file {} cannot be read", file.display()), &error)
    };
    let Some(config) = config.redis.config().map_err(unreadable)? else { return Ok(None) };
    let kv = Kv::connect(&config, clock.clone());
    kv.map(Some).map_err(|error| Failure::because("redis", &error))
}

/// The folder in the data directory that the file transport writes mails to.
const MAIL_FOLDER: &str = "mail";

/// The transport of mails, one for all domains of the process.
pub(crate) fn mailer(config: &Config) -> Result<Arc<dyn Mailer>, Failure> {
    match &config.mail.smtp() {
        None => Ok(Arc::new(FileMailer::new(config.data_dir.join(MAIL_FOLDER)))),
        Some(smtp) => {
            let mailer = SmtpMailer::new(smtp).map_err(|error| Failure::because("mail", &error))?;
            Ok(Arc::new(mailer))
        }
    }
}

/// The provider of identity verification, if it is on.
pub(crate) fn identity(config: &Config, clock: &Clock) -> Result<Option<Arc<dyn IdentityProvider>>, Failure> {
    let provider = config.auth.identity_provider(clock);
    provider.map_err(|error| Failure::because("auth.portone", &error))
}

/// The providers of redirect sign-in.
pub(crate) fn social(config: &Config, clock: &Clock) -> Result<Social, Failure> {
    Social::new(&config.auth.social(), clock).map_err(|error| Failure::because("auth", &error))
}

/// The configured bus.
pub(crate) fn bus(config: &Config) -> Result<Bus, Failure> {
    match config.bus.kind {
        BusKind::InProcess => Ok(Bus::in_process(Limits::default())),
        #[cfg(not(feature = "kafka"))]
        BusKind::Kafka => Err(Failure::new("this binary was built without the feature `kafka`")),
        #[cfg(feature = "kafka")]
        BusKind::Kafka => {
            Bus::kafka(config.bus.kafka(), Limits::default()).map_err(|error| Failure::because("bus", &error))
        }
    }
}
