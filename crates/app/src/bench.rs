//! Implements the traits of `urr-stampede`, so that `urr bench` can measure parts inside this
//! process.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use async_trait::async_trait;
use urr_contracts::{catalog::Catalog, queue::Queue, tickets::Tickets, vwr::Vwr};
use urr_db::{Db, Domain};
use urr_gateway::Gateway;
use urr_http::{Limits, Respond, Routes};
use urr_jobs::Tasks;
use urr_kernel::{Clock, EventId, Ids, UserId};
use urr_queue::Room;
use urr_stampede::host::{Domains, Host, Installation, RedisRooms, RoomCall, Server};
use urr_telemetry::{Health, Metrics};

use crate::{
    config::{self, Config, Flag, Input, Values},
    domains,
    failure::Failure,
    gateway::{self, GuardState},
    migrate,
    serve::{self, Running},
    stores::{self, Databases},
    wire::{self, Runtime},
};

/// The host of benchmarks.
pub(crate) struct App;

impl Host for App {
    fn configure(&self, settings: &[(&str, &str)]) -> anyhow::Result<Box<dyn Installation>> {
        let flags = settings.iter().map(|(key, value)| Flag {
            name: format!("bench {key}"),
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        });
        // A urr.toml in the current directory must not configure the benchmark.
        let data_dir = settings.iter().find(|(key, _)| *key == "data_dir").context("data_dir is not set")?;
        let input = Input { working_dir: data_dir.1.into(), flags: flags.collect(), ..Input::default() };
        let (values, config) = config::load(&input).map_err(Failure::from)?;
        let clock = Clock::system();
        let runtime = Runtime {
            ids: Ids::random(clock.clone()),
            clock,
            health: Health::new(),
            metrics: Metrics::install(),
        };
        Ok(Box::new(Configured { values, config, runtime }))
    }
}

struct Configured {
    values: Values,
    config: Config,
    runtime: Runtime,
}

#[async_trait(?Send)]
impl Installation for Configured {
    fn limits(&self) -> Limits {
        wire::limits(&self.config)
    }

    async fn migrate(&self) -> anyhow::Result<()> {
        Ok(migrate::migrate(&self.config).await?)
    }

    async fn serve(&self) -> anyhow::Result<Box<dyn Server>> {
        Ok(Box::new(Running::start(self.values.clone(), self.config.clone()).await?))
    }

    async fn open(&self, tasks: &Tasks) -> anyhow::Result<Box<dyn Domains>> {
        let Self { config, runtime, .. } = self;
        let databases = Databases::open(config)?;
        serve::prepare(config, &databases, &runtime.clock).await?;
        let domains = wire::Domains::build(config, &databases, &runtime.clock, &runtime.ids, tasks)?;
        let (config, runtime) = (config.clone(), runtime.clone());
        Ok(Box::new(Opened { domains, databases, config, runtime, tasks: tasks.clone() }))
    }

    async fn serve_behind_gateway(
        &self,
        owner: &str,
        routes: Routes,
        tasks: &Tasks,
    ) -> anyhow::Result<SocketAddr> {
        let Self { config, runtime, .. } = self;
        let owner = gateway::declared().find(|(role, _)| role.name == owner).context("no such role")?;
        let guards = gateway::guards(config, &GuardState::brand_new(config, &runtime.clock), runtime);
        let api = Gateway::new(guards).local(owner.1.0, routes).finish();
        listen(wire::public(config, api, runtime), self.limits(), tasks).await
    }

    async fn database(&self, domain: &'static Domain) -> anyhow::Result<Db> {
        if self.config.storage.is_sqlite() {
            // Creates the directory. No other process uses it, so the lock is not needed.
            drop(stores::lock(&self.config)?);
        }
        if let Some(postgres) = self.config.storage.postgres() {
            urr_db::postgres_provision(&postgres, &[domain]).await?;
        }
        let db = stores::database(&self.config, domain)?;
        db.migrate().await?;
        Ok(db)
    }

    async fn redis_rooms(&self) -> anyhow::Result<Arc<dyn RedisRooms>> {
        let Self { config, runtime, .. } = self;
        let databases = Databases::open(config)?;
        serve::prepare(config, &databases, &runtime.clock).await?;
        let kv = stores::redis(config, &runtime.clock)?.context("Redis is not configured")?;
        let (clock, ids) = (runtime.clock.clone(), runtime.ids.clone());
        let room = Room::redis(
            kv,
            databases.of(&domains::queue::ROLE),
            clock,
            ids,
            config.queue.limits,
            Duration::ZERO,
        );
        Ok(Arc::new(Rooms { room, _databases: databases }))
    }
}

/// Serves on a free port.
async fn listen(service: impl Respond, limits: Limits, tasks: &Tasks) -> anyhow::Result<SocketAddr> {
    let server = urr_http::Server::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let (address, token) = (server.local_addr()?, tasks.token());
    tasks.spawn("bench.row", async move {
        // Only the listener can fail; then requests fail and the benchmark reports them.
        let _ = server.serve(service, limits, token).await;
    });
    Ok(address)
}

#[async_trait(?Send)]
impl Server for Running {
    fn address(&self) -> SocketAddr {
        self.public
    }

    async fn stop(self: Box<Self>) -> anyhow::Result<()> {
        Ok(Running::stop(*self).await?)
    }
}

struct Opened {
    domains: wire::Domains,
    databases: Databases,
    config: Config,
    runtime: Runtime,
    tasks: Tasks,
}

/// Each benchmark configures the roles that it uses.
const RUNS: &str = "the benchmark runs this role";

impl Opened {
    fn queue_service(&self) -> Arc<urr_queue::Service> {
        self.domains.services.get().expect(RUNS)
    }
}

#[async_trait(?Send)]
impl Domains for Opened {
    fn catalog(&self) -> Arc<dyn Catalog> {
        self.domains.services.get::<dyn Catalog>().expect(RUNS)
    }

    fn tickets(&self) -> Arc<dyn Tickets> {
        self.domains.services.get::<dyn Tickets>().expect(RUNS)
    }

    fn queue(&self) -> Arc<dyn Queue> {
        self.domains.services.get::<dyn Queue>().expect(RUNS)
    }

    fn vwr(&self) -> Arc<dyn Vwr> {
        self.domains.services.get::<dyn Vwr>().expect(RUNS)
    }

    fn queue_routes(&self) -> Routes {
        urr_queue::routes(&self.queue_service())
    }

    fn vwr_routes(&self) -> Routes {
        urr_vwr::routes(&self.domains.services.get().expect(RUNS))
    }

    fn start_background(&self) -> anyhow::Result<()> {
        let Self { domains, databases, config, runtime, tasks } = self;
        Ok(wire::start_background(config, domains, databases, runtime, tasks)?)
    }

    async fn open_rooms(&self) -> anyhow::Result<()> {
        let queue = &self.queue_service();
        queue.open(&self.tasks).await.context("the rooms cannot be read from the journal")
    }

    fn start_admission(&self) {
        let queue = &self.queue_service();
        urr_jobs::run(&self.tasks, urr_queue::admission(queue), None, self.runtime.clock.clone());
    }

    async fn serve(&self) -> anyhow::Result<SocketAddr> {
        let api = gateway::build(&self.config, &self.domains, &self.runtime)?;
        listen(wire::public(&self.config, api, &self.runtime), wire::limits(&self.config), &self.tasks).await
    }
}

struct Rooms {
    room: Room,
    _databases: Databases,
}

#[async_trait]
impl RedisRooms for Rooms {
    async fn call(&self, call: RoomCall, event: EventId, user: UserId) -> Result<(), String> {
        let called = match call {
            RoomCall::BareJoin => self.room.bare_check(event, user).await,
            RoomCall::Join => self.room.check(event, user, None).await.map(drop),
            RoomCall::BareStatus => self.room.bare_status(event, user).await,
            RoomCall::Status => self.room.status(event, user).await.map(drop),
        };
        called.map_err(|error| error.to_string())
    }

    async fn admit(&self, event: EventId) {
        // If this fails, the calls fail too and are counted.
        let _ = self.room.admit(event).await;
    }
}
