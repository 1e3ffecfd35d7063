//! What benchmarks inside one process need from the composition root.
//!
//! Rows such as "the same handler behind the whole gateway" or "holds without HTTP" use parts of
//! the product. `app` implements these traits, so that this crate depends neither on `app` nor on a
//! domain.

use std::{net::SocketAddr, sync::Arc};

use async_trait::async_trait;
use urr_contracts::{catalog::Catalog, queue::Queue, tickets::Tickets, vwr::Vwr};
use urr_db::{Db, Domain};
use urr_http::{Limits, Routes};
use urr_jobs::Tasks;
use urr_kernel::{EventId, UserId};

/// The program that benchmarks run in.
pub trait Host {
    /// An installation with these settings. Neither the environment nor a file is read, so that
    /// rows are comparable.
    fn configure(&self, settings: &[(&str, &str)]) -> anyhow::Result<Box<dyn Installation>>;
}

/// An installation that is configured and not running.
#[async_trait(?Send)]
pub trait Installation {
    /// The limits of its listeners.
    fn limits(&self) -> Limits;

    /// Creates roles, schemas and tables, as `urr migrate` does.
    async fn migrate(&self) -> anyhow::Result<()>;

    /// Serves everything, as `urr serve` does.
    async fn serve(&self) -> anyhow::Result<Box<dyn Server>>;

    /// Opens and migrates the databases and builds the domains. Their background work runs on
    /// `tasks`.
    async fn open(&self, tasks: &Tasks) -> anyhow::Result<Box<dyn Domains>>;

    /// Serves `routes` behind all guards of a request to the domain `owner`.
    async fn serve_behind_gateway(
        &self,
        owner: &str,
        routes: Routes,
        tasks: &Tasks,
    ) -> anyhow::Result<SocketAddr>;

    /// A database on the configured engine with the tables of `domain` only.
    async fn database(&self, domain: &'static Domain) -> anyhow::Result<Db>;

    /// The rooms in the configured Redis.
    async fn redis_rooms(&self) -> anyhow::Result<Arc<dyn RedisRooms>>;
}

/// A running installation.
#[async_trait(?Send)]
pub trait Server {
    /// The address of the public API.
    fn address(&self) -> SocketAddr;

    /// Stops it.
    async fn stop(self: Box<Self>) -> anyhow::Result<()>;
}

/// Domains in this process. Dropping this closes the databases.
#[async_trait(?Send)]
pub trait Domains {
    /// Events and seats.
    fn catalog(&self) -> Arc<dyn Catalog>;
    /// Holds.
    fn tickets(&self) -> Arc<dyn Tickets>;
    /// The waiting room of an event.
    fn queue(&self) -> Arc<dyn Queue>;
    /// The site waiting room.
    fn vwr(&self) -> Arc<dyn Vwr>;
    /// The routes of [`Domains::queue`].
    fn queue_routes(&self) -> Routes;
    /// The routes of [`Domains::vwr`].
    fn vwr_routes(&self) -> Routes;

    /// Starts the bus, the reconcilers and all other background work of `urr serve`.
    fn start_background(&self) -> anyhow::Result<()>;

    /// Restores the rooms of the queue from its journal.
    async fn open_rooms(&self) -> anyhow::Result<()>;

    /// Starts admitting users from the rooms of the queue.
    fn start_admission(&self);

    /// Serves all of them behind the gateway.
    async fn serve(&self) -> anyhow::Result<SocketAddr>;
}

/// One call to the rooms in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomCall {
    /// The bare script of a join.
    BareJoin,
    /// A join.
    Join,
    /// The bare script of a status.
    BareStatus,
    /// A status.
    Status,
}

/// Rooms in Redis, without HTTP.
#[async_trait]
pub trait RedisRooms: Send + Sync {
    /// Makes one call. The error is a readable text.
    async fn call(&self, call: RoomCall, event: EventId, user: UserId) -> Result<(), String>;

    /// Admits users and moves steps to the database, as workers do every second.
    async fn admit(&self, event: EventId);
}
