//! Test rig: a shop that publishes, ledgers that consume, and a bus on any backend.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tempfile::TempDir;
use urr_bus::{Bus, Consumer, Failure, Limits, Message, Source};
use urr_db::{Db, Domain, Migration, PostgresConfig, Tx, outbox};
use urr_jobs::{Backoff, Tasks};
use urr_kernel::{Clock, Ids, MessageId};
use urr_testkit::{fixed_clock, fresh_database, fresh_sqlite, until};

/// Time limit of a test.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);
/// Time limit of each wait. Shorter than the test's limit, so that the failure names the wait.
pub(crate) const SOON: Duration = Duration::from_secs(50);

pub(crate) static SHOP: Domain = Domain { name: "shop", migrations: &[] };
pub(crate) static LEDGER: Domain = Domain {
    name: "ledger",
    migrations: &[Migration {
        name: "0001_effects",
        // No unique constraint: only the bus prevents duplicate effects.
        sqlite: "create table effects (number integer primary key autoincrement, consumer_group text not null,
                                       message_id blob not null, key text not null, note text not null) strict;",
        postgres: "create table effects (number bigint generated always as identity primary key,
                                         consumer_group text not null, message_id uuid not null, key text not null,
                                         note text not null);",
    }],
};

urr_db::statements! {
    EFFECT = "insert into effects (consumer_group, message_id, key, note) values ($1, $2, $3, $4)";
    EFFECTS = "select key, note from effects where consumer_group = $1 order by number";
    /// The state after a relay died between producing and marking.
    pub(crate) FORGET_PUBLISHED = "update outbox set published_at = null";
    /// The state after a group lost its offsets.
    pub(crate) FORGET_OFFSETS = "delete from bus_offsets";
    /// Makes every insert of a dead letter fail.
    pub(crate) NO_LETTERS = "alter table dead_letters drop column kind";
    /// Limits the database to one page, which behaves like a full disk.
    FILL = sqlite "pragma max_page_count = 1";
    ROOM = sqlite "pragma max_page_count = 1000000";
    /// Blocks all access until the transaction ends.
    LOCK = postgres "lock table effects in access exclusive mode";
}

/// Transport and database of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    InProcessSqlite,
    InProcessPostgres,
    KafkaSqlite,
    KafkaPostgres,
}

/// The environment of one test.
pub(crate) struct Rig {
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) limits: Limits,
    pub(crate) topic: &'static str,
    pub(crate) brokers: Option<String>,
    stores: Stores,
}

enum Stores {
    Sqlite { shop: Db, ledger: Db, _dirs: [TempDir; 2] },
    Postgres(PostgresConfig),
}

impl Rig {
    /// `None` if a service of the backend is not available.
    pub(crate) async fn new(backend: Backend) -> Option<Self> {
        let brokers = match backend {
            Backend::InProcessSqlite | Backend::InProcessPostgres => None,
            Backend::KafkaSqlite | Backend::KafkaPostgres => Some(urr_testkit::services::kafka()?),
        };
        let stores = match backend {
            Backend::InProcessSqlite | Backend::KafkaSqlite => Stores::sqlite().await,
            Backend::InProcessPostgres | Backend::KafkaPostgres => {
                // Generous timeouts for a loaded machine.
                let patience = Duration::from_secs(10);
                let config = fresh_database(&[&SHOP, &LEDGER]).await?;
                let config = PostgresConfig { acquire: patience, statement: patience, ..config };
                for domain in [&SHOP, &LEDGER] {
                    Db::postgres(&config, domain).unwrap().migrate().await.unwrap();
                }
                Stores::Postgres(config)
            }
        };
        Some(Self::on(stores, brokers, fixed_clock()))
    }

    /// On SQLite and a private broker.
    pub(crate) async fn with_brokers(brokers: String) -> Self {
        Self::on(Stores::sqlite().await, Some(brokers), fixed_clock())
    }

    fn on(stores: Stores, brokers: Option<String>, clock: Clock) -> Self {
        // Install the recorder before the bus counts anything.
        LazyLock::force(&RECORDER);
        let ids = Ids::random(clock.clone());
        let topic = leak(format!("test-events-{}", ids.next::<MessageId>()));
        Self { limits: quick(), topic, brokers, stores, ids, clock }
    }

    pub(crate) fn shop(&self) -> Db {
        match &self.stores {
            Stores::Sqlite { shop, .. } => shop.clone(),
            Stores::Postgres(config) => Db::postgres(config, &SHOP).unwrap(),
        }
    }

    /// The ledger's database; on PostgreSQL with its own pool, like another process.
    pub(crate) fn ledger(&self) -> Db {
        match &self.stores {
            Stores::Sqlite { ledger, .. } => ledger.clone(),
            Stores::Postgres(config) => Db::postgres(config, &LEDGER).unwrap(),
        }
    }

    /// The ledger's database through a proxy. `None` on SQLite, which has no connection.
    pub(crate) fn ledger_behind(&self, proxy: &urr_testkit::Proxy) -> Option<Db> {
        let Stores::Postgres(config) = &self.stores else { return None };
        let (scheme_and_user, rest) = config.url.split_once('@').unwrap();
        let (_, path) = rest.split_once('/').unwrap();
        let url = format!("{scheme_and_user}@{}/{path}", proxy.address());
        Some(Db::postgres(&PostgresConfig { url, ..config.clone() }, &LEDGER).unwrap())
    }

    /// The ledger's database with a short statement timeout.
    pub(crate) fn hasty_ledger(&self) -> Db {
        match &self.stores {
            Stores::Sqlite { ledger, .. } => ledger.clone(),
            Stores::Postgres(config) => {
                let statement = Duration::from_millis(700);
                Db::postgres(&PostgresConfig { statement, ..config.clone() }, &LEDGER).unwrap()
            }
        }
    }

    /// PostgreSQL's address as `host:port`.
    pub(crate) fn postgres_address(&self) -> Option<String> {
        let Stores::Postgres(config) = &self.stores else { return None };
        let (_, rest) = config.url.split_once('@')?;
        rest.split_once('/').map(|(address, _)| address.to_owned())
    }

    pub(crate) fn source(&self) -> Source {
        Source { domain: "shop", db: self.shop() }
    }

    /// A consumer group that stores every message.
    pub(crate) fn group(&self) -> Probe {
        self.group_in(self.ledger())
    }

    pub(crate) fn group_in(&self, ledger: Db) -> Probe {
        let group = leak(format!("test-group-{}", self.ids.next::<MessageId>()));
        let topics = Box::leak(Box::new([self.topic]));
        Probe { group, topics, db: ledger, script: Arc::new(|_, _| Ok(())), calls: Arc::default() }
    }

    /// Starts a process with its own bus.
    pub(crate) fn start(&self, consumers: &[&Probe]) -> Tasks {
        self.start_with(&self.bus(), consumers)
    }

    pub(crate) fn start_with(&self, bus: &Bus, consumers: &[&Probe]) -> Tasks {
        let tasks = Tasks::new();
        let consumers: Vec<Arc<dyn Consumer>> = consumers.iter().map(|probe| probe.as_consumer()).collect();
        bus.start(&[self.source()], &consumers, &tasks, &self.clock).unwrap();
        tasks
    }

    pub(crate) fn bus(&self) -> Bus {
        self.bus_with(self.limits.clone())
    }

    pub(crate) fn bus_with(&self, limits: Limits) -> Bus {
        match &self.brokers {
            None => Bus::in_process(limits),
            Some(brokers) => Bus::kafka(urr_bus::KafkaConfig::new(brokers.clone()), limits).unwrap(),
        }
    }

    pub(crate) fn message(&self, key: &str, note: &str) -> Message {
        let (id, at) = (self.ids.next::<MessageId>(), self.clock.now());
        let payload = format!(
            r#"{{"messageId":"{id}","type":"NOTED","sagaId":null,"timestamp":"{at}","note":"{note}"}}"#
        );
        let kind = "NOTED".to_owned();
        Message { id, topic: self.topic.to_owned(), key: key.to_owned(), kind, payload, at }
    }

    /// Publishes in one transaction.
    pub(crate) async fn publish(&self, messages: &[Message]) {
        let append = async |tx: &mut Tx<'_>| {
            for message in messages {
                outbox::append(tx, message).await?;
            }
            Ok::<(), urr_db::Error>(())
        };
        self.shop().write("test.publish", append).await.unwrap();
    }

    pub(crate) async fn publish_one(&self, key: &str, note: &str) -> Message {
        let message = self.message(key, note);
        self.publish(std::slice::from_ref(&message)).await;
        message
    }

    /// Publishes `count` notes spread over `keys` keys, each numbered within its key.
    pub(crate) async fn publish_many(&self, keys: usize, count: usize) {
        let messages: Vec<Message> =
            (0..count).map(|n| self.message(&format!("key-{}", n % keys), &(n / keys).to_string())).collect();
        for some in messages.chunks(50) {
            self.publish(some).await;
        }
    }

    pub(crate) async fn run_on_shop(&self, sql: &'static urr_db::Sql) {
        self.shop().write("test.run", async |tx: &mut Tx<'_>| tx.execute(sql, &[]).await).await.unwrap();
    }

    /// Blocks the ledger's writes until `so` returns true, by a full disk or a locked table. Pings
    /// still succeed. On PostgreSQL the lock is an open transaction, which may also delay reads of
    /// the outbox.
    pub(crate) async fn while_nothing_is_written(&self, mut so: impl AsyncFnMut() -> bool) {
        let ledger = self.ledger();
        if let Stores::Postgres(_) = &self.stores {
            let lock = async |tx: &mut Tx<'_>| {
                tx.execute(&LOCK, &[]).await?;
                while !so().await {
                    // Without statements the server would end the transaction as idle.
                    tx.execute(&LOCK, &[]).await?;
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Ok::<(), urr_db::Error>(())
            };
            return ledger.write("test.lock", lock).await.unwrap();
        }
        let run = async |sql| {
            let run = async |tx: &mut Tx<'_>| tx.all(sql, &[], |_| Ok(())).await;
            ledger.write("test.run", run).await.unwrap_or_else(|error: urr_db::Error| panic!("{error:?}"));
        };
        run(&FILL).await;
        until(SOON, so).await;
        run(&ROOM).await;
    }

    pub(crate) async fn run_on_ledger(&self, sql: &'static urr_db::Sql) {
        self.ledger().write("test.run", async |tx: &mut Tx<'_>| tx.execute(sql, &[]).await).await.unwrap();
    }
}

impl Stores {
    async fn sqlite() -> Self {
        let ((one, shop), (other, ledger)) = (fresh_sqlite(&SHOP).await, fresh_sqlite(&LEDGER).await);
        Self::Sqlite { shop, ledger, _dirs: [one, other] }
    }
}

static RECORDER: LazyLock<PrometheusHandle> =
    LazyLock::new(|| PrometheusBuilder::new().install_recorder().expect("no other recorder is installed"));

/// The value of a group's counter in the Prometheus output.
pub(crate) fn counted(name: &str, group: &str) -> u64 {
    let (rendered, line) = (RECORDER.render(), format!("{name}{{group=\"{group}\"}} "));
    let count = rendered.lines().find_map(|counted| counted.strip_prefix(&line)?.parse().ok());
    count.unwrap_or(0)
}

/// Default limits with short waits.
pub(crate) fn quick() -> Limits {
    let millis = Duration::from_millis;
    Limits {
        retries: [millis(10), millis(20), millis(40)],
        outage: Backoff { first: millis(50), max: millis(500) },
        tidy: millis(50),
        // Small enough for several batches per test.
        batch: 64,
        gather: millis(5),
        ..Limits::default()
    }
}

pub(crate) fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

type Script = dyn Fn(&Message, u32) -> Result<(), Failure> + Send + Sync;

/// A consumer group whose effects are rows. Clones share the call counts.
#[derive(Clone)]
pub(crate) struct Probe {
    pub(crate) group: &'static str,
    topics: &'static [&'static str],
    db: Db,
    script: Arc<Script>,
    calls: Arc<Mutex<BTreeMap<MessageId, u32>>>,
}

impl Probe {
    /// Sets the consumer's behaviour. The script gets the message and the number of attempts so
    /// far, including this one.
    pub(crate) fn that(
        mut self,
        script: impl Fn(&Message, u32) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        self.script = Arc::new(script);
        self
    }

    /// The same group in another process, with its own database handle.
    pub(crate) fn elsewhere(&self, rig: &Rig) -> Self {
        Self { db: rig.ledger(), calls: Arc::default(), ..self.clone() }
    }

    pub(crate) fn as_consumer(&self) -> Arc<dyn Consumer> {
        Arc::new(self.clone())
    }

    pub(crate) fn calls(&self, message: &Message) -> u32 {
        self.calls.lock().unwrap().get(&message.id).copied().unwrap_or(0)
    }

    /// Whether this process received any message.
    pub(crate) fn has_worked(&self) -> bool {
        !self.calls.lock().unwrap().is_empty()
    }

    /// Key and note of every effect, in order.
    pub(crate) async fn effects(&self) -> Vec<(String, String)> {
        let read = async |tx: &mut Tx<'_>| {
            tx.all(&EFFECTS, &[&self.group], |row| Ok((row.get(0)?, row.get(1)?))).await
        };
        self.db.read("test.effects", read).await.unwrap_or_else(|error: urr_db::Error| panic!("{error:?}"))
    }

    pub(crate) async fn notes(&self) -> Vec<String> {
        self.effects().await.into_iter().map(|(_, note)| note).collect()
    }

    #[track_caller]
    pub(crate) fn has_effects(&self, count: usize) -> impl Future<Output = ()> {
        let probe = self.clone();
        until(SOON, async move || probe.effects().await.len() >= count)
    }

    pub(crate) async fn dead_letters(&self) -> Vec<urr_db::dead_letters::DeadLetter> {
        urr_bus::admin::dead_letters(self, None, 100).await.unwrap()
    }

    #[track_caller]
    pub(crate) fn has_dead_letters(&self, count: usize) -> impl Future<Output = ()> {
        let probe = self.clone();
        until(SOON, async move || probe.dead_letters().await.len() >= count)
    }
}

#[async_trait]
impl Consumer for Probe {
    fn group(&self) -> &'static str {
        self.group
    }

    fn topics(&self) -> &'static [&'static str] {
        self.topics
    }

    fn db(&self) -> &Db {
        &self.db
    }

    async fn apply(&self, tx: &mut Tx<'_>, message: &Message) -> Result<(), Failure> {
        let tries = {
            let mut calls = self.calls.lock().unwrap();
            let tries = calls.entry(message.id).or_insert(0);
            *tries += 1;
            *tries
        };
        // The effect comes first, to prove that a later failure rolls it back.
        let note: serde_json::Value =
            serde_json::from_str(&message.payload).map_err(|error| Failure::Poison(error.into()))?;
        let note = note["note"].as_str().unwrap_or_default().to_owned();
        tx.execute(&EFFECT, &[&self.group, &message.id, &message.key, &note]).await?;
        (self.script)(message, tries)
    }
}
