//! The service: its parts, and each method in one line.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use urr_contracts::{
    auth::Sensitive,
    catalog::Catalog,
    queue::{
        Audit, AuditOf, CheckIn, ClearRoom, EntryStatus, Error, LeaveLine, Left, MyEntries, PauseRoom, Queue,
        QueueEntries, RoomOf, RoomState, SetThreshold, SlotOf, SlotState, StatusOf,
    },
};
use urr_db::{Db, Tx, transaction};
use urr_jobs::Tasks;
use urr_kernel::{Clock, CommonError, EventId, Ids};
use urr_kv::Kv;
use urr_passes::{
    Secret, entry,
    entry::{Entries, Entry},
    queue_ticket,
    queue_ticket::{Ticket, Tickets},
    vwr_pass,
    vwr_pass::Passes,
};
use urr_rpc::Ctx;

use crate::{
    Failure,
    control::{self, live::Watched},
    events::Events,
    journal::setting::{follow, followers},
    notices::{Notices, Teller},
    positions,
    room::{CannotOpen, Order, Room},
    settings::{Limits, Settings},
};

/// Rooms per page when the setting has changed, and most pages.
const PAGE: i64 = 1_000;
const MAX_ROUNDS: usize = 1_000;

/// Writes up to this long are slow, but not an outage.
const SLOW_WRITE: Duration = Duration::from_secs(5);

/// Dependencies of the service.
pub struct Parts {
    /// The domain's database.
    pub db: Db,
    /// Redis, if rooms are shared by several processes.
    pub kv: Option<Kv>,
    /// The catalog, local or remote.
    pub catalog: Arc<dyn Catalog>,
    /// The clock.
    pub clock: Clock,
    /// Generates ids.
    pub ids: Ids,
    /// Secrets from which token keys are derived; the first one signs.
    pub secrets: Vec<Secret>,
    /// The section `[queue]`.
    pub settings: Settings,
    /// Whether cookies are set with `Secure`.
    pub secure_cookies: bool,
    /// Listener for admissions.
    pub notices: Option<Arc<dyn Notices>>,
}

/// The queue service.
pub struct Service {
    pub(crate) db: Db,
    kv: Option<Kv>,
    /// Set by [`Service::open`].
    room: OnceLock<Room>,
    pub(crate) events: Events,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) limits: Limits,
    grace: Duration,
    pub(crate) tickets: Tickets,
    pub(crate) passes: Passes,
    entries: Entries,
    pub(crate) secure_cookies: bool,
    pub(crate) watched: Watched,
    pub(crate) teller: Teller,
}

impl Service {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            events: Events::new(parts.catalog, parts.clock.clone()),
            tickets: Tickets::new(parts.secrets.iter().map(queue_ticket::key)),
            passes: Passes::new(parts.secrets.iter().map(vwr_pass::key)),
            entries: Entries::new(parts.secrets.iter().map(entry::key)),
            db: parts.db,
            kv: parts.kv,
            room: OnceLock::new(),
            clock: parts.clock,
            ids: parts.ids,
            limits: parts.settings.limits,
            grace: parts.settings.grace,
            secure_cookies: parts.secure_cookies,
            watched: Watched::default(),
            teller: Teller::new(parts.notices),
        }
    }

    /// Opens the rooms. Those in memory are rebuilt from the journal, whose tables must exist.
    /// Requests get 503 until then.
    pub async fn open(&self, tasks: &Tasks) -> Result<(), CannotOpen> {
        let (db, clock, ids) = (self.db.clone(), self.clock.clone(), self.ids.clone());
        let room = match &self.kv {
            Some(kv) => Room::redis(kv.clone(), db, clock, ids, self.limits, self.grace),
            None => Room::memory(db, clock, ids, self.limits, tasks).await?,
        };
        self.follow(&room).await?;
        let _once = self.room.set(room);
        Ok(())
    }

    /// Applies a changed setting to open rooms for which no operator has set a threshold.
    async fn follow(&self, room: &Room) -> Result<(), CannotOpen> {
        let threshold = self.limits.threshold;
        for _ in 0..MAX_ROUNDS {
            let read: Result<Vec<EventId>, urr_db::Error> = self
                .db
                .read("queue.followers", async |tx: &mut Tx<'_>| followers(tx, threshold, PAGE).await)
                .await;
            let events = read?;
            if events.is_empty() {
                break;
            }
            for event in events {
                if room.order(event, Order::Threshold(threshold)).await.is_err() {
                    tracing::warn!(%event, threshold, "could not apply the new queue.threshold to an open waiting room: its store is unavailable; the old value stays until the next start");
                    return Ok(());
                }
                let noted: Result<(), urr_db::Error> = transaction!(
                    self.db,
                    "queue.follow",
                    async |tx: &mut Tx<'_>| follow(tx, event, threshold).await
                );
                noted?;
            }
        }
        Ok(())
    }

    /// Whether [`Self::open`] has completed.
    pub fn is_open(&self) -> bool {
        self.room.get().is_some()
    }

    /// How long steps could not be written, once that exceeds a slow write. Admissions stop
    /// meanwhile.
    pub fn journal_outage(&self) -> Option<Duration> {
        self.room.get()?.outage().filter(|outage| *outage > SLOW_WRITE)
    }

    /// The rooms, once they are open. Not logged: starting up is no failure.
    pub(crate) fn rooms(&self) -> Result<&Room, Error> {
        self.room.get().ok_or(Error::Common(CommonError::Unavailable))
    }

    /// Logs the failure, counts it for the live view, and returns the error for the caller.
    fn failed(&self, ctx: &Ctx, method: &'static str, event: EventId, failure: Failure) -> Error {
        let error = ctx.reveal(method, failure);
        self.watched.failed(event, &error);
        error
    }

    pub(crate) fn sign_ticket(&self, ticket: &Ticket) -> Sensitive {
        Sensitive::new(self.tickets.sign(ticket))
    }

    pub(crate) fn sign_entry(&self, entry: &Entry) -> Sensitive {
        Sensitive::new(self.entries.sign(entry, self.ids.next(), self.clock.now()))
    }
}

#[async_trait]
impl Queue for Service {
    async fn check(&self, ctx: &Ctx, request: CheckIn) -> Result<EntryStatus, Error> {
        let place = positions::check(self, ctx, &request).await;
        place.map_err(|failure| self.failed(ctx, "check", request.event, failure))
    }

    async fn status(&self, ctx: &Ctx, request: StatusOf) -> Result<EntryStatus, Error> {
        let place = positions::status(self, ctx, request).await;
        place.map_err(|failure| self.failed(ctx, "status", request.event, failure))
    }

    async fn leave(&self, ctx: &Ctx, request: LeaveLine) -> Result<Left, Error> {
        let left = positions::leave(self, ctx, request).await;
        left.map_err(|failure| self.failed(ctx, "leave", request.event, failure))
    }

    async fn entries(&self, ctx: &Ctx, _: MyEntries) -> Result<QueueEntries, Error> {
        ctx.answer("entries", positions::entries(self, ctx).await)
    }

    async fn slot(&self, ctx: &Ctx, request: SlotOf) -> Result<SlotState, Error> {
        let slot = positions::slot(self, ctx, request).await;
        slot.map_err(|failure| self.failed(ctx, "slot", request.event, failure))
    }

    async fn room(&self, ctx: &Ctx, request: RoomOf) -> Result<RoomState, Error> {
        ctx.answer("room", control::look(self, ctx, request).await)
    }

    async fn set_threshold(&self, ctx: &Ctx, request: SetThreshold) -> Result<RoomState, Error> {
        ctx.answer("set_threshold", control::set_threshold(self, ctx, request).await)
    }

    async fn pause(&self, ctx: &Ctx, request: PauseRoom) -> Result<RoomState, Error> {
        ctx.answer("pause", control::pause(self, ctx, request).await)
    }

    async fn clear(&self, ctx: &Ctx, request: ClearRoom) -> Result<RoomState, Error> {
        ctx.answer("clear", control::clear(self, ctx, request).await)
    }

    async fn audit(&self, ctx: &Ctx, request: AuditOf) -> Result<Audit, Error> {
        ctx.answer("audit", control::audit(self, ctx, request).await)
    }
}
