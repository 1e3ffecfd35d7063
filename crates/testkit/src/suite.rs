//! Scaffolding of a domain's test suite: where a story runs, and one `#[test]` for each place.

use std::time::Duration;

use axum::Router;
use tempfile::TempDir;
use tokio::net::TcpListener;
use urr_db::{Db, Domain, Row, Sql, Tx, outbox::Message};
use urr_http::{Client, ClientLimits};
use urr_kernel::{Clock, Fact};
use urr_kv::KvConfig;
use urr_rpc::{Remote, internal_guard};

use crate::{fresh_postgres, fresh_sqlite, services};

/// Time limit of one story. All of them finish far sooner.
pub const STORY_LIMIT: Duration = Duration::from_mins(1);

/// Token of the internal routes that [`Transport::Remote`] calls.
pub const INTERNAL_TOKEN: &str = "a-token-for-tests";

/// The database of a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DbKind {
    /// A file of its own.
    Sqlite,
    /// A database of its own on the PostgreSQL of `URR_TEST_POSTGRES`.
    Postgres,
}

impl DbKind {
    /// A new, migrated database, and the directory of its files. `None`, with a warning, if there is
    /// no PostgreSQL.
    pub async fn open(self, domain: &'static Domain) -> Option<(Option<TempDir>, Db)> {
        match self {
            Self::Sqlite => {
                let (dir, db) = fresh_sqlite(domain).await;
                Some((Some(dir), db))
            }
            Self::Postgres => Some((None, fresh_postgres(domain).await?)),
        }
    }
}

/// How a story calls the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// In process.
    Local,
    /// Over HTTP, as from another process.
    Remote,
}

/// Serves internal routes on loopback until the runtime of the test is dropped. Returns a client of
/// them.
///
/// # Panics
///
/// If no port can be bound.
#[expect(clippy::disallowed_methods, reason = "the server runs until the runtime of the test is dropped")]
pub async fn serve_internal(routes: Router, clock: &Clock) -> Remote {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port is free");
    let base = format!("http://{}", listener.local_addr().expect("a bound listener has an address"));
    let routes = internal_guard(routes, INTERNAL_TOKEN);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let client = Client::new(ClientLimits::default(), clock.clone());
    Remote::new(client.target(&base).expect("it is an address"), INTERNAL_TOKEN)
}

/// The single Redis of `URR_TEST_REDIS`, with a deadline that suits a busy machine. `None`, with a
/// warning, if there is none.
pub fn redis() -> Option<KvConfig> {
    Some(patient(KvConfig::single(services::redis()?)))
}

/// The Redis Cluster of `URR_TEST_REDIS_CLUSTER`, likewise.
pub fn redis_cluster() -> Option<KvConfig> {
    Some(patient(KvConfig::cluster(services::redis_cluster()?.split(','))))
}

/// Stories check results, not the latency of a shared machine.
fn patient(config: KvConfig) -> KvConfig {
    KvConfig { deadline: Duration::from_secs(10), ..config }
}

/// The facts that a domain has published, oldest first. Reads the table itself: the readers of the
/// outbox skip messages that are newer than an open transaction of another test.
///
/// # Panics
///
/// If the database fails, or a payload is not such a fact.
pub async fn published<F: Fact>(db: &Db) -> Vec<(Message, F)> {
    static MESSAGES: Sql = Sql::both(
        "testkit::published",
        "select id, topic, key, kind, payload, created_at from outbox where topic = $1 order by seq",
    );
    let message = |row: &Row<'_>| {
        let (id, topic, key) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Message { id, topic, key, kind: row.get(3)?, payload: row.get(4)?, at: row.get(5)? })
    };
    let read: Result<Vec<Message>, urr_db::Error> = db
        .read("test.published", async |tx: &mut Tx<'_>| tx.all(&MESSAGES, &[&F::TOPIC], message).await)
        .await;
    let fact = |message: &Message| message.fact().expect("it is a fact").expect("its type is known");
    read.expect("the outbox is readable")
        .into_iter()
        .map(|message| (message.clone(), fact(&message)))
        .collect()
}

/// Declares one `#[test]` per variant and story. A story is an `async fn(&World)`; the first line
/// names the function that builds the world of a variant and runs the story in it.
///
/// ```ignore
/// stories! {
///     World::run;
///     sqlite_local: (DbKind::Sqlite, Transport::Local),
///     postgres_local: (DbKind::Postgres, Transport::Local);
///
///     calendar: an_event_is_created, an_event_is_cancelled;
///     seats: seats_are_returned_in_plan_order;
/// }
/// ```
#[macro_export]
macro_rules! stories {
    ($run:path; $($variant:ident: $kinds:expr),+; $($module:ident: $($story:ident),+ $(,)?;)+) => {
        $crate::stories! { @each $run; [$($variant: $kinds),+] [$($module: $($story),+;)+] }
    };
    (@each $run:path; [$($variant:ident: $kinds:expr),+] $stories:tt) => {
        $($crate::stories! { @variant $run; $variant: $kinds; $stories })+
    };
    (@variant $run:path; $variant:ident: $kinds:expr; [$($module:ident: $($story:ident),+;)+]) => {
        mod $variant {
            use super::*;
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $story() {
                    $run($kinds, async |world| super::$module::$story(world).await).await;
                }
            )+)+
        }
    };
}

/// Declares the test that prepares statements on both engines and compares their shape.
#[macro_export]
macro_rules! statements_test {
    ($domain:expr, $statements:expr) => {
        #[tokio::test]
        async fn every_statement_has_the_same_shape_on_both_engines() {
            let (_dir, sqlite) = $crate::fresh_sqlite(&$domain).await;
            let postgres = $crate::fresh_postgres(&$domain).await;
            let databases: Vec<_> = [Some(&sqlite), postgres.as_ref()].into_iter().flatten().collect();
            urr_db::check_statements(&databases, &$statements).await.unwrap();
        }
    };
}
