//! `urr serve`: from configuration to a process that answers, and back to nothing.

use std::{net::SocketAddr, os::unix::fs::DirBuilderExt as _, sync::Arc, time::Duration};

use urr_http::{Respond, Server};
use urr_kernel::{Clock, Ids};
use urr_telemetry::{Guard, Health, Metrics};

use crate::{
    admin::{self, Made},
    clocks,
    config::{self, Choice as _, Config, HttpUrl, Kind as _, Profile, Values},
    domains,
    door::Door,
    failure::Failure,
    files, gateway,
    lifecycle::{Signals, Work},
    ready,
    roles::Role,
    say::say,
    stores::Databases,
    wire::{self, Domains, Ground},
};

/// How long a start waits for a database server that is not there yet. Machines that boot together need a few seconds; a
/// wrong address should not look like a slow one.
const WAIT_FOR_SERVER: Duration = Duration::from_secs(10);

/// The pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Serves until told to stop.
pub(crate) async fn serve(values: Values, config: Config) -> Result<(), Failure> {
    let mut signals = Signals::install().map_err(|error| Failure::because("signals", &error))?;
    let _logging = start_logging(&config)?;
    let running = tokio::select! {
        running = Running::start(values, config) => running?,
        signal = signals.next() => {
            tracing::info!(signal, "stopped before the start was complete");
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

/// Logs and traces, from here to the end of the process.
pub(crate) fn start_logging(config: &Config) -> Result<Guard, Failure> {
    urr_telemetry::init(&config.log.logging("urr")).map_err(|error| Failure::because("log", &error))
}

/// A process that serves.
pub(crate) struct Running {
    /// Where the public API is.
    pub public: SocketAddr,
    internal: Option<SocketAddr>,
    work: Work,
    ground: Ground,
    config: Config,
    /// Whether this start brought the demo data.
    seeded: bool,
    /// The administrator whom this start made.
    admin: Option<Made>,
    /// Closed after all work has ended.
    databases: Databases,
}

impl Running {
    /// Starts everything. What cannot work is found here and not by the first buyer.
    pub(crate) async fn start(values: Values, config: Config) -> Result<Self, Failure> {
        let clock = if config.clock_speed > 1 { Clock::lapse(config.clock_speed) } else { Clock::system() };
        let ground = Ground {
            ids: Ids::random(clock.clone()),
            clock,
            health: Health::new(),
            metrics: Metrics::install(),
        };
        let databases = Databases::open(&config)?;
        let mut config = with_secrets(values, config, &ground.ids)?;
        let (server, public) = bind(config.listen, "listen").await?;
        config
            .public_url
            .get_or_insert_with(|| HttpUrl::parse(&url(public)).expect("the URL of a listener is one"));
        let files = files::raise();
        if let Some(cause) = files::shortage(&config, files) {
            tracing::warn!(cause, "fewer connections are served than http.max_connections");
        }
        config.http.max_connections = files::connections(&config, files);
        let work = Work::default();
        let domains = Domains::build(&config, &databases, &ground.clock, &ground.ids, &work.background)?;
        ready::register(&domains, &databases, &ground.health);
        let mut running =
            Self { public, internal: None, work, seeded: false, admin: None, databases, ground, config };

        running.open_door(server, &domains).await?;
        let Self { config, databases, ground, work, .. } = &running;
        wire::start_background(config, &domains, databases, ground, &work.background)?;
        if let (Some(address), Some(router)) =
            (config.internal.listen, wire::internal(config, &domains, ground))
        {
            let (server, internal) = bind(address, "internal.listen").await?;
            // Other processes call from few addresses, with many connections each.
            running.listen("http.internal", server.sharing(|_| true), router);
            running.internal = Some(internal);
        }
        Ok(running)
    }

    /// Serves the public side. Files are at hand, so they are put in order and filled first; a server may be on its way, so health
    /// answers while we wait for it. Reading a million places back takes a second, in which everything but the line answers.
    async fn open_door(&mut self, server: Server, domains: &Domains) -> Result<(), Failure> {
        let proxies = self.config.door.proxies();
        let gateways = Arc::clone(&domains.memory.gateways);
        let server = server.sharing(move |peer| proxies.trusts(peer) || gateways.contains(peer));
        let api = gateway::door(&self.config, domains, &self.ground)?;
        if self.config.storage.is_sqlite() {
            prepare(&self.config, &self.databases, &self.ground.clock).await?;
            self.seeded = seed(&self.config, domains).await?;
            self.open_accounts(domains).await?;
            self.learn_sessions(domains).await;
            learn_rooms(domains, &self.ground).await;
            self.listen("http.public", server, wire::public(&self.config, api, &self.ground));
            return self.open_rooms(domains).await;
        }
        let door = Door::shut();
        self.ground.health.register("schema", Arc::new(door.clone()));
        self.listen("http.public", server, wire::public(&self.config, door.clone(), &self.ground));
        prepare(&self.config, &self.databases, &self.ground.clock).await?;
        if let Some((_, db)) = self.databases.iter().next() {
            // All of them are on one server.
            clocks::watch(db.clone(), &self.ground.clock, &self.ground.health, &self.work.background).await;
        }
        self.open_accounts(domains).await?;
        self.open_rooms(domains).await?;
        self.learn_sessions(domains).await;
        learn_rooms(domains, &self.ground).await;
        door.open(api);
        Ok(())
    }

    /// Learns which sessions ended before this start, if somebody can say. Else it goes on without, and is not ready.
    async fn learn_sessions(&self, domains: &Domains) {
        let (Some(revoked), Some(source)) = (&domains.memory.revoked, domains.sessions(&self.ground)) else {
            tracing::warn!(
                "nobody says which sessions ended, so their tokens are good until they expire: set remote.auth"
            );
            return;
        };
        if let Err(cause) = revoked.load(&*source).await {
            tracing::warn!(cause, "nobody says which sessions ended: tokens are refused until somebody has");
        }
    }

    /// Makes sure that accounts can be found and that somebody can run the platform.
    async fn open_accounts(&mut self, domains: &Domains) -> Result<(), Failure> {
        if let Some(auth) = domains.services.get::<urr_auth::Service>() {
            check_keys(&auth).await?;
            self.admin = admin::first(&self.config, &auth, &self.ground.clock, &self.ground.ids).await?;
        }
        Ok(())
    }

    /// Reads the waiting rooms back, where they are kept in memory.
    async fn open_rooms(&self, domains: &Domains) -> Result<(), Failure> {
        let Some(queue) = domains.services.get::<urr_queue::Service>() else { return Ok(()) };
        let opened = queue.open(&self.work.background).await;
        opened.map_err(|error| Failure::because("the waiting rooms", &error))
    }

    fn listen(&self, name: &'static str, server: Server, responder: impl Respond) {
        let (limits, token) = (wire::limits(&self.config), self.work.servers.token());
        self.work.servers.spawn_essential(name, async move {
            if let Err(error) = server.serve(responder, limits, token).await {
                tracing::error!(listener = name, error = urr_telemetry::chain(&error), "the listener failed");
            }
        });
    }

    /// Tells the person at the terminal where to look.
    fn greet(&self) {
        let (config, url) = (&self.config, url(self.public));
        say!("URR {} is ready at {url}", env!("CARGO_PKG_VERSION"));
        let domains = config.roles.domains().map(|role| role.name).collect::<Vec<_>>().join(", ");
        if !Role::domains().all(|domain| config.roles.has(domain)) {
            say!("  serves   {}", if domains.is_empty() { "no domain" } else { &domains });
        }
        let passed = config.passes_on().map(|role| role.name).collect::<Vec<_>>().join(", ");
        if !passed.is_empty() {
            say!("  passes   {passed} on to other processes");
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
            say!("  look     {look} (demo events, made on this first start)");
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

    /// Stops in order and closes everything.
    pub(crate) async fn stop(self) -> Result<(), Failure> {
        let clean = self.work.stop(&self.ground.health, self.config.http.notice).await;
        drop(self.databases);
        if let Some(part) = self.work.failed() {
            return Err(Failure::new(format!("{part} ended by itself; the log says why")));
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

/// The configuration with every secret it needs: in the local profile those that nobody configured are made on first start.
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

/// Whether the keys fit the accounts.
pub(crate) async fn check_keys(auth: &urr_auth::Service) -> Result<(), Failure> {
    let fit = urr_auth::check_keys(auth).await;
    fit.map_err(|error| Failure::because("auth.index_key and auth.pii_keys", &error))
}

/// Makes sure that the tables are this version's.
pub(crate) async fn prepare(config: &Config, databases: &Databases, clock: &Clock) -> Result<(), Failure> {
    if config.storage.is_sqlite() {
        migrate(databases).await
    } else {
        wait_for_server(databases, clock).await
    }
}

/// Brings files to this version's tables.
async fn migrate(databases: &Databases) -> Result<(), Failure> {
    for (role, db) in databases.iter() {
        for migration in db.migrate().await.map_err(|error| failed(role, &error))? {
            tracing::info!(database = role.name, migration, "migrated");
        }
    }
    Ok(())
}

/// Waits until the server is there, and makes sure that it has this version's tables. It is only looked at: whoever serves
/// should not be able to change tables.
async fn wait_for_server(databases: &Databases, clock: &Clock) -> Result<(), Failure> {
    let started = clock.ticks();
    let mut told = false;
    for (role, db) in databases.iter() {
        while let Err(error) = db.check_migrated().await {
            if !error.is_unavailable() {
                return Err(failed(role, &error));
            }
            if clock.ticks().saturating_sub(started) >= WAIT_FOR_SERVER {
                let what = format!("the {} database after {} s", role.name, WAIT_FOR_SERVER.as_secs());
                return Err(Failure::because(what, &error));
            }
            if !std::mem::replace(&mut told, true) {
                let cause = urr_telemetry::chain(&error);
                tracing::warn!(database = role.name, cause, "waiting for the server");
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
    Ok(())
}

fn failed(role: Role, error: &urr_db::Error) -> Failure {
    Failure::because(format!("the {} database", role.name), error)
}

/// Learns which rooms are open, if somebody can say. Else it goes on without, and is not ready.
async fn learn_rooms(domains: &Domains, ground: &Ground) {
    if domains.services.get::<urr_queue::Service>().is_some() && domains.memory.rooms.is_none() {
        tracing::warn!(
            "nobody says which waiting rooms in front are open, so whoever comes here gets a place: set remote.vwr \
             if there are any"
        );
    }
    let mut learnt = match domains.services.get::<urr_vwr::Service>() {
        Some(vwr) => vwr.refresh().await,
        None => Ok(()),
    };
    if let (Ok(()), Some(rooms), Some(source)) = (&learnt, &domains.memory.rooms, domains.rooms(ground)) {
        learnt = rooms.load(&*source).await;
    }
    if let Err(cause) = learnt {
        tracing::warn!(cause, "nobody says which waiting rooms are open");
    }
}

/// Fills an empty catalog with demo data, where that is wanted. True if it did.
async fn seed(config: &Config, domains: &Domains) -> Result<bool, Failure> {
    match domains.services.get::<urr_catalog::Service>() {
        Some(catalog) if config.demo => {
            urr_catalog::demo::seed(&catalog).await.map_err(|error| Failure::because("demo data", &error))
        }
        _ => Ok(false),
    }
}
