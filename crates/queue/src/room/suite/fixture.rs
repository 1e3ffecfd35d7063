//! Fixture: one room on a chosen backend, with helpers.

use std::{sync::Arc, time::Duration};

use urr_db::{Db, Tx};
use urr_jobs::Tasks;
use urr_kernel::{Clock, EventId, Ids, OrderKey, Timestamp, UserId};
use urr_kv::{Arg, Kv, KvConfig, Script};
use urr_testkit::{fresh_postgres, fresh_sqlite, redis, redis_cluster};

use crate::{
    DOMAIN,
    journal::{
        Entry, store,
        verify::{Report, Verifier},
    },
    room::{Admissions, CannotOpen, Room},
    room_model::{Slot, UserState},
    settings::Limits,
    token_position::{Claim, TokenPosition},
};

/// Earlier than every step of a test.
pub(super) const LONG_AGO: Timestamp = Timestamp::from_micros(0);

/// Names of a room's keys in Redis.
const STORE: [&str; 8] = ["queue", "active", "seen", "slots", "room", "journal", "spent", "spent-before"];

pub(super) struct Fixture {
    pub(super) room: Arc<Room>,
    pub(super) db: Db,
    pub(super) kv: Option<Kv>,
    pub(super) limits: Limits,
    pub(super) tasks: Tasks,
    pub(super) clock: Clock,
    pub(super) ids: Ids,
    pub(super) event: EventId,
    _files: Option<tempfile::TempDir>,
}

impl Fixture {
    pub(super) async fn memory(limits: Limits) -> Option<Self> {
        let (files, db) = fresh_sqlite(&DOMAIN).await;
        Some(Self::new(db, None, limits, Some(files)).await)
    }

    pub(super) async fn memory_on_postgres(limits: Limits) -> Option<Self> {
        Some(Self::new(fresh_postgres(&DOMAIN).await?, None, limits, None).await)
    }

    pub(super) async fn redis(limits: Limits) -> Option<Self> {
        let config = redis()?;
        Some(Self::new(fresh_postgres(&DOMAIN).await?, Some(&config), limits, None).await)
    }

    pub(super) async fn cluster(limits: Limits) -> Option<Self> {
        let config = redis_cluster()?;
        Some(Self::new(fresh_postgres(&DOMAIN).await?, Some(&config), limits, None).await)
    }

    pub(super) async fn new(
        db: Db,
        config: Option<&KvConfig>,
        limits: Limits,
        files: Option<tempfile::TempDir>,
    ) -> Self {
        let clock = Clock::system();
        let ids = Ids::random(clock.clone());
        let kv = config.map(|config| Kv::connect(config, clock.clone()).unwrap());
        let tasks = Tasks::new();
        let event = ids.next();
        let room = Arc::new(room(&db, kv.as_ref(), &clock, &ids, limits, &tasks).await.unwrap());
        Self { room, db, kv, limits, tasks, clock, ids, event, _files: files }
    }

    /// Another process on the same stores.
    pub(super) async fn another(&self) -> Result<Arc<Room>, CannotOpen> {
        let room = room(&self.db, self.kv.as_ref(), &self.clock, &self.ids, self.limits, &self.tasks).await;
        room.map(Arc::new)
    }

    pub(super) fn people(&self, count: usize) -> Vec<UserId> {
        (0..count).map(|_| self.ids.next()).collect()
    }

    pub(super) async fn check(&self, user: UserId) -> UserState {
        self.room.check(self.event, user, None).await.unwrap().state
    }

    pub(super) async fn state(&self, user: UserId) -> UserState {
        self.room.status(self.event, user).await.unwrap().state
    }

    pub(super) async fn ahead(&self, user: UserId) -> Option<usize> {
        match self.state(user).await {
            UserState::Waiting { ahead, .. } => Some(ahead),
            _ => None,
        }
    }

    pub(super) async fn is_in(&self, user: UserId) -> bool {
        matches!(self.state(user).await, UserState::Active { .. })
    }

    /// Each user joins in turn.
    pub(super) async fn arrive(&self, people: &[UserId]) {
        for user in people {
            self.check(*user).await;
        }
    }

    /// Renames a table, to make statements fail or work again.
    pub(super) async fn rename(&self, statement: &'static urr_db::Sql) {
        let renamed: Result<u64, urr_db::Error> =
            self.db.write("test.rename", async |tx: &mut Tx<'_>| tx.execute(statement, &[]).await).await;
        renamed.unwrap();
    }

    /// The journal from its first entry.
    pub(super) async fn entries(&self) -> Vec<Entry> {
        self.room.settle(self.event).await.unwrap();
        let event = self.event;
        let entries = self
            .db
            .read("test.journal", async |tx: &mut Tx<'_>| store::after(tx, event, 0, 0, 100_000).await);
        let entries: Result<Vec<_>, urr_db::Error> = entries.await;
        entries.unwrap()
    }

    /// The verifier's report on the journal.
    pub(super) async fn report(&self) -> Report {
        let mut verifier = Verifier::new(self.limits.threshold);
        for entry in self.entries().await {
            verifier.read(&entry);
        }
        verifier.finish()
    }

    pub(super) async fn assert_fair(&self) -> Report {
        let report = self.report().await;
        assert!(report.is_fair(), "{:#?}", report.findings);
        report
    }

    /// Copies the room's keys in Redis to other names, or back.
    pub(super) async fn copy_store(&self, from: &str, to: &str) {
        static COPY: Script = Script::new(
            "test.copy",
            "for place = 1, #KEYS, 2 do
               redis.call('DEL', KEYS[place + 1])
               if redis.call('EXISTS', KEYS[place]) == 1 then redis.call('COPY', KEYS[place], KEYS[place + 1]) end
             end
             return 1",
        );
        let key = |name: &str, end: &str| format!("{{{}}}:{name}{end}", self.event);
        let keys: Vec<String> = STORE.iter().flat_map(|name| [key(name, from), key(name, to)]).collect();
        self.kv.as_ref().unwrap().run(&COPY, &keys, &[] as &[Arg<'_>]).await.unwrap();
    }

    /// Deletes the room's keys in Redis, and restarts the process.
    pub(super) async fn lose_everything(&mut self) {
        static FLUSH: Script =
            Script::new("test.flush", "for _, key in ipairs(KEYS) do redis.call('DEL', key) end return {1}");
        if let Some(kv) = &self.kv {
            let keys = STORE.map(|name| format!("{{{}}}:{name}", self.event));
            kv.run(&FLUSH, &keys, &[] as &[Arg<'_>]).await.unwrap();
        }
        self.restart().await;
    }

    /// Restarts the process.
    pub(super) async fn restart(&mut self) {
        self.tasks.shutdown(Duration::from_secs(10)).await.unwrap();
        self.tasks = Tasks::new();
        self.room = self.another().await.unwrap();
    }

    pub(super) async fn come_with(&self, user: UserId, order: OrderKey, epoch: Option<u64>) -> UserState {
        let promise = Some(TokenPosition { order, epoch, since: LONG_AGO });
        self.room.check(self.event, user, promise).await.unwrap().state
    }

    /// Returns with a ticket; gets that position or none.
    pub(super) async fn come_back(&self, user: UserId, order: OrderKey) -> UserState {
        self.come_for(user, TokenPosition { order, epoch: Some(1), since: LONG_AGO }).await
    }

    /// Returns with a token; gets the promised position or none.
    pub(super) async fn come_for(&self, user: UserId, promise: TokenPosition) -> UserState {
        let claim = Claim { promises: &[promise], may_be_new: false };
        self.room.come(self.event, user, &claim, Admissions::Open).await.unwrap().state
    }

    /// The position of a waiting user.
    pub(super) async fn place(&self, user: UserId) -> OrderKey {
        match self.state(user).await {
            UserState::Waiting { order, .. } => order,
            other => panic!("{other:?}"),
        }
    }

    /// The slot of an admitted user.
    pub(super) async fn slot(&self, user: UserId) -> Slot {
        match self.state(user).await {
            UserState::Active { slot, .. } => slot,
            other => panic!("{other:?}"),
        }
    }
}

async fn room(
    db: &Db,
    kv: Option<&Kv>,
    clock: &Clock,
    ids: &Ids,
    limits: Limits,
    tasks: &Tasks,
) -> Result<Room, CannotOpen> {
    let (db, clock, ids) = (db.clone(), clock.clone(), ids.clone());
    match kv {
        Some(kv) => Ok(Room::redis(kv.clone(), db, clock, ids, limits, Duration::ZERO)),
        None => Room::memory(db, clock, ids, limits, tasks).await,
    }
}
