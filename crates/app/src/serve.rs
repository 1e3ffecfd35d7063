//! `urr serve`: starts, serves and stops the configured roles.

use std::{net::SocketAddr, os::unix::fs::DirBuilderExt as _, sync::Arc, time::Duration};

use urr_http::{Respond, Server};
use urr_kernel::{Clock, Ids};
use urr_telemetry::{Guard, Health, Metrics};

use crate::{
    admin::{self, NewAdmin},
    clocks,
    config::{self, Choice as _, Config, HttpUrl, Kind as _, Profile, Values},
    domains,
    failure::Failure,
    files, gateway,
    lifecycle::{ProcessTasks, Signals},
    ready,
    roles::Role,
    say::say,
    startup::StartupGuard,
    stores::Databases,
    wire::{self, Domains, Runtime},
};

/// How long a start waits for the database server. Machines that boot together need a few seconds;
/// with a wrong address the start should fail soon.
const WAIT_FOR_SERVER: Duration = Duration::from_secs(10);

/// The pause between two attempts to reach the database server.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Serves until a signal arrives or an essential task ends.
pub(crate) async fn serve(values: Values, config: Config) -> Result<(), Failure> {
    let mut signals = Signals::install().map_err(|error| Failure::because("signals", &error))?;
    let _logging = start_logging(&config)?;
    let running = tokio::select! {
        running = Running::start(values, config) => running?,
        signal = signals.next() => {
            tracing::info!(signal, "stopped by a signal before the start was complete");
            return Ok(());
        }
    };
    running.greet();
    running.work.until_stop(&mut signals).await;
    tokio::select! {
        outcome = running.stop() => outcome,
        signal = signals.next() => {
            Err(Failure::new(format!("{signal} came a second time: requests in progress were cut off")))
        }
    }
}

/// Starts logs and traces. They end when the returned guard is dropped.
pub(crate) fn start_logging(config: &Config) -> Result<Guard, Failure> {
    urr_telemetry::init(&config.log.logging("urr")).map_err(|error| Failure::because("log", &error))
}

/// A serving process.
pub(crate) struct Running {
    /// Address of the public API.
    pub public: SocketAddr,
    internal: Option<SocketAddr>,
    work: ProcessTasks,
    runtime: Runtime,
    config: Config,
    /// Whether this start created the demo data.
    seeded: bool,
    /// The administrator that this start created.
    admin: Option<NewAdmin>,
    /// Closed after all work has ended.
    databases: Databases,
}

impl Running {
    /// Starts everything. Fails if a part cannot work, rather than on the first request.
    pub(crate) async fn start(values: Values, config: Config) -> Result<Self, Failure> {
        let clock = if config.clock_speed > 1 { Clock::lapse(config.clock_speed) } else { Clock::system() };
        let runtime = Runtime {
            ids: Ids::random(clock.clone()),
            clock,
            health: Health::new(),
            metrics: Metrics::install(),
        };
        let databases = Databases::open(&config)?;
        let mut config = with_secrets(values, config, &runtime.ids)?;
        let (server, public) = bind(config.listen, "listen").await?;
        config
            .public_url
            .get_or_insert_with(|| HttpUrl::parse(&url(public)).expect("the URL of a listener parses"));
        let files = files::raise();
        if let Some(cause) = files::shortage(&config, files) {
            tracing::warn!(cause, "fewer connections are served than http.max_connections");
        }
        config.http.max_connections = files::connections(&config, files);
        let work = ProcessTasks::default();
        let domains = Domains::build(&config, &databases, &runtime.clock, &runtime.ids, &work.background)?;
        ready::register(&domains, &databases, &runtime.health);
        let mut running =
            Self { public, internal: None, work, seeded: false, admin: None, databases, runtime, config };

        running.open_door(server, &domains).await?;
        let Self { config, databases, runtime, work, .. } = &running;
        wire::start_background(config, &domains, databases, runtime, &work.background)?;
        if let (Some(address), Some(router)) =
            (config.internal.listen, wire::internal(config, &domains, runtime))
        {
            let (server, internal) = bind(address, "internal.listen").await?;
            // Calls from other processes come from few addresses, with many connections each.
            running.listen("http.internal", server.sharing(|_| true), router);
            running.internal = Some(internal);
        }
        Ok(running)
    }

    /// Starts the public listener. SQLite files are migrated and filled first. A PostgreSQL server
    /// may still be starting, so health endpoints answer while we wait for it. With SQLite,
    /// requests are served while the queues are read back (about a second for a million entries).
    async fn open_door(&mut self, server: Server, domains: &Domains) -> Result<(), Failure> {
        let proxies = self.config.door.proxies();
        let gateways = Arc::clone(&domains.guard_state.gateways);
        let server = server.sharing(move |peer| proxies.trusts(peer) || gateways.contains(peer));
        let api = gateway::build(&self.config, domains, &self.runtime)?;
        if self.config.storage.is_sqlite() {
            prepare(&self.config, &self.databases, &self.runtime.clock).await?;
            self.seeded = seed(&self.config, domains).await?;
            self.open_accounts(domains).await?;
            self.learn_sessions(domains).await;
            learn_rooms(domains, &self.runtime).await;
            self.listen("http.public", server, wire::public(&self.config, api, &self.runtime));
            return self.open_rooms(domains).await;
        }
        let guard = StartupGuard::closed();
        self.runtime.health.register("schema", Arc::new(guard.clone()));
        self.listen("http.public", server, wire::public(&self.config, guard.clone(), &self.runtime));
        prepare(&self.config, &self.databases, &self.runtime.clock).await?;
        if let Some((_, db)) = self.databases.iter().next() {
            // All databases are on one server.
            clocks::watch(db.clone(), &self.runtime.clock, &self.runtime.health, &self.work.background).await;
        }
        self.open_accounts(domains).await?;
        self.open_rooms(domains).await?;
        self.learn_sessions(domains).await;
        learn_rooms(domains, &self.runtime).await;
        guard.open(api);
        Ok(())
    }

    /// Loads the sessions that ended before this start. On failure the start continues, and the
    /// process is not ready until they are loaded.
    async fn learn_sessions(&self, domains: &Domains) {
        let (Some(revoked), Some(source)) = (&domains.guard_state.revoked, domains.sessions(&self.runtime))
        else {
            tracing::warn!(
                "remote.auth is not set: tokens of revoked sessions are accepted until they expire, at most an hour"
            );
            return;
        };
        if let Err(cause) = revoked.load(&*source).await {
            tracing::warn!(
                cause,
                "cannot load revoked sessions from auth: not ready, and tokens are refused until auth answers"
            );
        }
    }

    /// Checks the keys of the accounts and creates the first administrator.
    async fn open_accounts(&mut self, domains: &Domains) -> Result<(), Failure> {
        if let Some(auth) = domains.services.get::<urr_auth::Service>() {
            check_keys(&auth).await?;
            self.admin = admin::first(&self.config, &auth, &self.runtime.clock, &self.runtime.ids).await?;
        }
        Ok(())
    }

    /// Reads the waiting rooms back from the journal, if they are in memory.
    async fn open_rooms(&self, domains: &Domains) -> Result<(), Failure> {
        let Some(queue) = domains.services.get::<urr_queue::Service>() else { return Ok(()) };
        let opened = queue.open(&self.work.background).await;
        opened.map_err(|error| Failure::because("the waiting rooms", &error))
    }

    fn listen(&self, name: &'static str, server: Server, responder: impl Respond) {
        let (limits, token) = (wire::limits(&self.config), self.work.servers.token());
        self.work.servers.spawn_essential(name, async move {
            if let Err(error) = server.serve(responder, limits, token).await {
                tracing::error!(
                    listener = name,
                    error = urr_telemetry::chain(&error),
                    "listener failed: the process stops"
                );
            }
        });
    }

    /// Prints the addresses and, after a first start, the administrator's password.
    fn greet(&self) {
        let (config, url) = (&self.config, url(self.public));
        say!("URR {} is ready at {url}", env!("CARGO_PKG_VERSION"));
        let domains = config.roles.domains().map(|role| role.name).collect::<Vec<_>>().join(", ");
        if !Role::domains().all(|domain| config.roles.has(domain)) {
            say!("  serves   {}", if domains.is_empty() { "no domain" } else { &domains });
        }
        let passed = config.passes_on().map(|role| role.name).collect::<Vec<_>>().join(", ");
        if !passed.is_empty() {
            say!("  forwards {passed} to other processes");
        }
        if let Some(internal) = self.internal {
            say!("  other processes reach {domains} at {}", self::url(internal));
        }
        let (look, sign_in) = if config.roles.has(&domains::site::ROLE) {
            (format!("{url}/"), format!("{url}/login"))
        } else {
            (format!("{url}/api/events"), format!("POST {url}/api/auth/login"))
        };
        if self.seeded {
            say!("  look     {look} (demo events, created by this first start)");
            say!("  data     {}", config.data_dir.display());
        }
        if let Some(admin) = &self.admin {
            admin.tell("  ");
            say!("  sign in  {sign_in}");
        }
        if self.seeded {
            say!("  stop     Ctrl-C");
        }
        tracing::info!(address = %self.public, roles = %config.roles, profile = config.profile.name(), "serving");
    }

    /// Stops requests, then background work, then closes the databases.
    pub(crate) async fn stop(self) -> Result<(), Failure> {
        let clean = self.work.stop(&self.runtime.health, self.config.http.notice).await;
        drop(self.databases);
        if let Some(part) = self.work.failed() {
            return Err(Failure::new(format!("{part} ended unexpectedly; the log says why")));
        }
        tracing::info!(clean, "stopped");
        Ok(())
    }
}

pub(crate) fn url(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("http://localhost:{}", address.port())
    } else {
        format!("http://{address}")
    }
}

/// The configuration with every secret it needs. In the local profile, missing secrets are
/// generated on first start.
pub(crate) fn with_secrets(mut values: Values, config: Config, ids: &Ids) -> Result<Config, Failure> {
    if config.profile == Profile::Production || config.is_complete() {
        return Ok(config);
    }
    let path = config::secrets_path(&config.data_dir);
    let mut dir = std::fs::DirBuilder::new();
    let secrets = dir
        .recursive(true)
        .mode(0o700)
        .create(&config.data_dir)
        .and_then(|()| config::read_or_create_secrets(&config.data_dir, ids))
        .map_err(|error| Failure::because(format!("{} cannot be used", path.display()), &error))?;
    for (info, text) in secrets {
        values.set_generated(info, text, path.clone());
    }
    Ok(Config::resolve(&values)?)
}

async fn bind(address: SocketAddr, setting: &str) -> Result<(Server, SocketAddr), Failure> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AddrInUse => Failure::new(format!(
            "{address} is in use by another program; stop that one, or choose another port with {setting}"
        )),
        _ => Failure::because(format!("{setting} = {address}"), &error),
    };
    let server = Server::bind(address).await.map_err(failed)?;
    let bound = server.local_addr().map_err(failed)?;
    Ok((server, bound))
}

/// Checks that the configured keys are those the accounts were created with.
pub(crate) async fn check_keys(auth: &urr_auth::Service) -> Result<(), Failure> {
    let fit = urr_auth::check_keys(auth).await;
    fit.map_err(|error| Failure::because("auth.index_key and auth.pii_keys", &error))
}

/// Ensures that the schema is this version's: migrates SQLite, checks PostgreSQL.
pub(crate) async fn prepare(config: &Config, databases: &Databases, clock: &Clock) -> Result<(), Failure> {
    if config.storage.is_sqlite() {
        migrate(databases).await
    } else {
        wait_for_server(databases, clock).await
    }
}

/// Migrates the SQLite files.
async fn migrate(databases: &Databases) -> Result<(), Failure> {
    for (role, db) in databases.iter() {
        for migration in db.migrate().await.map_err(|error| failed(role, &error))? {
            tracing::info!(database = role.name, migration, "migrated");
        }
    }
    Ok(())
}

/// Waits for the server and checks that it has this version's schema. It does not migrate: the
/// serving login must not be able to change tables.
async fn wait_for_server(databases: &Databases, clock: &Clock) -> Result<(), Failure> {
    let started = clock.ticks();
    let mut logged = false;
    for (role, db) in databases.iter() {
        while let Err(error) = db.check_migrated().await {
            if !error.is_unavailable() {
                return Err(failed(role, &error));
            }
            if clock.ticks().saturating_sub(started) >= WAIT_FOR_SERVER {
                let what = format!("the {} database after {} s", role.name, WAIT_FOR_SERVER.as_secs());
                return Err(Failure::because(what, &error));
            }
            if !std::mem::replace(&mut logged, true) {
                let cause = urr_telemetry::chain(&error);
                tracing::warn!(
                    database = role.name,
                    cause,
                    "waiting for the server: PostgreSQL does not answer; the start fails after 10 s"
                );
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
    Ok(())
}

fn failed(role: Role, error: &urr_db::Error) -> Failure {
    Failure::because(format!("the {} database", role.name), error)
}

/// Loads the open waiting rooms of Tier 1. On failure the start continues, and the process is not
/// ready until they are loaded.
async fn learn_rooms(domains: &Domains, runtime: &Runtime) {
    if domains.services.get::<urr_queue::Service>().is_some() && domains.guard_state.rooms.is_none() {
        tracing::warn!(
            "remote.vwr is not set: users can join event queues without a pass of the site waiting room; set it if \
             Tier 1 is used"
        );
    }
    let mut learnt = match domains.services.get::<urr_vwr::Service>() {
        Some(vwr) => vwr.refresh().await,
        None => Ok(()),
    };
    if let (Ok(()), Some(rooms), Some(source)) = (&learnt, &domains.guard_state.rooms, domains.rooms(runtime))
    {
        learnt = rooms.load(&*source).await;
    }
    if let Err(cause) = learnt {
        tracing::warn!(
            cause,
            "cannot load the open waiting rooms of Tier 1: not ready until they are loaded"
        );
    }
}

/// Fills an empty catalog with demo data, if configured. Returns `true` if it did.
async fn seed(config: &Config, domains: &Domains) -> Result<bool, Failure> {
    match domains.services.get::<urr_catalog::Service>() {
        Some(catalog) if config.demo => {
            urr_catalog::demo::seed(&catalog).await.map_err(|error| Failure::because("demo data", &error))
        }
        _ => Ok(false),
    }
}
