//! The service: its parts, and each method in a few lines.

use std::sync::Arc;

use async_trait::async_trait;
use urr_contracts::vwr::{
    Actions, ActionsOf, Assign, Assigned, CheckTicket, Checked, Error, GiveOrder, ListRooms, Ordered, Room,
    RoomOf, Rooms, Vwr,
};
use urr_db::{Db, Tx};
use urr_jobs::Tasks;
use urr_kernel::{Clock, CommonError, Ids};
use urr_passes::{Secret, visitor, vwr_pass, vwr_ticket};
use urr_rpc::Ctx;
use uuid::Uuid;

use crate::{
    Counters, Failure, line,
    live::Watched,
    position_batcher::{Counting, PositionBatcher},
    recent_tickets::RecentTickets,
    room_cache::{REFRESH, RoomCache},
    store::{self, CommandSource},
};

/// Dependencies of the service.
pub struct Parts {
    /// The domain's database. Without it this process neither accepts nor lists commands.
    pub db: Option<Db>,
    /// The counters.
    pub counters: Counters,
    /// The clock.
    pub clock: Clock,
    /// Generates ids.
    pub ids: Ids,
    /// Secrets from which token keys are derived; the first one signs.
    pub secrets: Vec<Secret>,
    /// Runs the batches of arrivals.
    pub tasks: Tasks,
    /// Whether cookies are `Secure`.
    pub secure_cookies: bool,
}

/// The Tier 1 service.
pub struct Service {
    pub(crate) db: Option<Db>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) batcher: PositionBatcher,
    pub(crate) room_cache: RoomCache,
    pub(crate) recent_tickets: RecentTickets,
    pub(crate) marks: visitor::Marks,
    pub(crate) tickets: vwr_ticket::Tickets,
    pub(crate) passes: vwr_pass::Passes,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) secure_cookies: bool,
    /// Unique id of this process's worker.
    pub(crate) worker: Uuid,
    pub(crate) watched: Watched,
}

/// Most commands in one answer.
const MAX_ACTIONS: u32 = 100;

impl Service {
    pub(crate) fn new(parts: Parts) -> Self {
        let counters = Arc::new(parts.counters);
        Self {
            db: parts.db,
            batcher: PositionBatcher::new(Counting(Arc::clone(&counters)), parts.tasks),
            counters,
            room_cache: RoomCache::new(parts.clock.clone()),
            recent_tickets: RecentTickets::default(),
            marks: visitor::Marks::new(parts.secrets.iter().map(visitor::key)),
            tickets: vwr_ticket::Tickets::new(parts.secrets.iter().map(vwr_ticket::key)),
            passes: vwr_pass::Passes::new(parts.secrets.iter().map(vwr_pass::key)),
            worker: Uuid::from_bytes(parts.ids.bytes()),
            clock: parts.clock,
            ids: parts.ids,
            secure_cookies: parts.secure_cookies,
            watched: Watched::default(),
        }
    }

    /// Refreshes the copy of every room. Call it once at start: requests get 503 until then.
    pub async fn refresh(&self) -> Result<(), String> {
        let began = self.room_cache.begin();
        let rooms = self.counters.look().await.map_err(|trouble| urr_telemetry::chain(&trouble))?;
        self.room_cache.replace(rooms, began);
        Ok(())
    }

    /// Refreshes the copy if it is old, for functions that run no background work between requests.
    pub async fn refresh_if_old(&self) -> Result<(), String> {
        if self.room_cache.is_younger_than(REFRESH) { Ok(()) } else { self.refresh().await }
    }

    /// Releases positions that were reserved and not given, so that the next process continues
    /// without a gap. Call it once no more requests are served.
    pub async fn settle(&self) -> Result<(), String> {
        self.counters.settle().await.map_err(|trouble| urr_telemetry::chain(&trouble))
    }

    /// Whether the rooms were ever loaded.
    pub fn is_loaded(&self) -> bool {
        self.room_cache.is_loaded()
    }

    /// Whether the copy of the rooms is recent.
    pub fn is_fresh(&self) -> bool {
        self.room_cache.is_fresh()
    }

    async fn carry_out(&self, ctx: &Ctx, request: GiveOrder) -> Result<Ordered, Failure> {
        ctx.require_admin()?;
        let by = CommandSource { id: self.ids.next(), actor: ctx.actor.user(), at: self.clock.now() };
        let ordered = self.counters.order(request.event, request.order, by).await?;
        self.room_cache.put(ordered.room);
        tracing::info!(event = %request.event, order = ?request.order, actor = ?by.actor, "operator changed a waiting room");
        Ok(ordered)
    }

    async fn decided(&self, ctx: &Ctx, request: ActionsOf) -> Result<Actions, Failure> {
        ctx.require_admin()?;
        let limit = i64::from(request.limit.min(MAX_ACTIONS));
        let db = self
            .db
            .as_ref()
            .ok_or_else(|| Failure::unavailable("this process has no database and lists no commands"))?;
        let read = db.read("vwr.actions", async |tx: &mut Tx<'_>| {
            Ok::<_, Failure>(store::actions(tx, request.event, limit).await?)
        });
        Ok(Actions { actions: read.await? })
    }
}

#[async_trait]
impl Vwr for Service {
    async fn assign(&self, ctx: &Ctx, request: Assign) -> Result<Assigned, Error> {
        let event = request.event;
        line::assign(self, request).await.map_err(|failure| {
            let error = ctx.reveal("assign", failure);
            self.watched.failed(event, &error);
            error
        })
    }

    async fn check(&self, _: &Ctx, request: CheckTicket) -> Result<Checked, Error> {
        line::check(self, &request)
    }

    async fn room(&self, _: &Ctx, request: RoomOf) -> Result<Room, Error> {
        self.room_cache.room(request.event)?.map(|(room, _)| room).ok_or(Error::RoomNotFound)
    }

    async fn rooms(&self, _: &Ctx, _: ListRooms) -> Result<Rooms, Error> {
        // Before the first refresh, an empty list would mean that no room is open and visitors may
        // enter.
        if !self.room_cache.is_loaded() {
            return Err(Error::Common(CommonError::Unavailable));
        }
        Ok(Rooms { rooms: self.room_cache.rooms() })
    }

    async fn order(&self, ctx: &Ctx, request: GiveOrder) -> Result<Ordered, Error> {
        ctx.answer("order", self.carry_out(ctx, request).await)
    }

    async fn actions(&self, ctx: &Ctx, request: ActionsOf) -> Result<Actions, Error> {
        ctx.answer("actions", self.decided(ctx, request).await)
    }
}
