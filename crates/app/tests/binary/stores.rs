//! Commands on real PostgreSQL, Redis, Redis Cluster and Kafka. Without a server the test is
//! skipped with a message.

use urr_db::{Db, Tx};
use urr_testkit::{fresh_database, services};

use crate::process::{Said, WorkDir};

/// The line of the report that contains `what`.
fn line<'s>(said: &'s Said, what: &str) -> &'s str {
    said.out
        .lines()
        .find(|line| line.contains(what))
        .unwrap_or_else(|| panic!("no line about {what}: {said:#?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_requires_a_migrated_postgres_with_separate_domains() {
    let Some(database) = fresh_database(&[]).await else { return };
    let work_dir = WorkDir::new();
    let url = format!("storage.url={}", database.url);
    let set = ["--set", "storage.kind=postgres", "--set", &url];

    let before = work_dir.run(&[&["doctor"][..], &set].concat());
    assert_eq!(before.code, Some(1), "{before:#?}");
    assert!(line(&before, "tickets database").starts_with("FAIL"), "{before:#?}");

    let refused = work_dir.run(&[&["serve", "--listen", "127.0.0.1:0"][..], &set].concat()).failed();
    assert!(refused.contains("urr migrate"), "{refused}");

    let migrated = work_dir.run(&[&["migrate"][..], &set].concat()).ok();
    assert!(migrated.contains("role urr_tickets owns schema tickets"), "{migrated}");
    let again = work_dir.run(&[&["migrate"][..], &set].concat()).ok();
    assert!(again.contains("tickets: nothing to do"), "{again}");

    let after = work_dir.run(&[&["doctor"][..], &set].concat());
    assert_eq!(after.code, Some(0), "{after:#?}");
    assert!(
        line(&after, "tickets database").contains("urr_tickets reaches its own tables only"),
        "{after:#?}"
    );

    let connections = line(&after, "PostgreSQL connections");
    assert!(connections.starts_with("ok") && connections.contains("that the server allows"), "{after:#?}");
    let greedy = work_dir.run(&[&["doctor", "--set", "storage.pool=1000"][..], &set].concat());
    assert_eq!(greedy.code, Some(1), "{greedy:#?}");
    assert!(line(&greedy, "PostgreSQL connections").starts_with("FAIL"), "{greedy:#?}");

    let status = work_dir.run(&[&["outbox", "status"][..], &set].concat()).ok();
    assert!(status.contains("tickets: 0 waiting"), "{status}");

    let serving = work_dir.serve(&set);
    assert_eq!(serving.get("/health/ready").status, 200);
    let second = work_dir.run(&[&["serve", "--listen", "127.0.0.1:0"][..], &set].concat()).failed();
    assert!(second.contains("another process keeps the waiting rooms"), "{second}");
    serving.stop();
}

urr_db::statements! {
    /// Drops the domain's role, so that the login itself acts.
    AS_LOGIN = postgres "set local role none";

    /// The owner after a backup was restored before the roles existed.
    TAKE = postgres "alter schema catalog owner to session_user";
}

#[tokio::test(flavor = "multi_thread")]
async fn migrate_refuses_a_schema_with_another_owner_and_names_it() {
    let Some(database) = fresh_database(&[&urr_catalog::DOMAIN]).await else { return };
    let db = Db::postgres(&database, &urr_catalog::DOMAIN).unwrap();
    let taken = db.write("test.take", async |tx: &mut Tx<'_>| {
        for statement in STATEMENTS {
            tx.execute(statement, &[]).await?;
        }
        Ok::<_, urr_db::Error>(())
    });
    taken.await.unwrap();
    let work_dir = WorkDir::new();
    let url = format!("storage.url={}", database.url);
    let said = work_dir.run(&["migrate", "--set", "storage.kind=postgres", "--set", &url]);
    assert!(!said.out.contains("urr_catalog owns"), "{said:#?}");
    let err = said.failed();
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.contains("schema catalog belongs to") && err.contains("not to urr_catalog"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_checks_a_redis_node_and_a_cluster() {
    let work_dir = WorkDir::new();
    work_dir.run(&["migrate"]).ok();
    for (address, cluster) in [(services::redis(), "false"), (services::redis_cluster(), "true")] {
        let Some(address) = address else { continue };
        let (urls, cluster) = (format!("redis.urls={address}"), format!("redis.cluster={cluster}"));
        let said = work_dir.run(&["doctor", "--set", &urls, "--set", &cluster]);
        assert!(line(&said, "Redis").starts_with("ok"), "{said:#?}");
        assert_eq!(said.code, Some(0), "{said:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_checks_kafka_and_a_process_with_kafka_starts_and_stops() {
    let Some(brokers) = services::kafka() else { return };
    let work_dir = WorkDir::new();
    work_dir.run(&["migrate"]).ok();
    let brokers = format!("bus.brokers={brokers}");
    let set = ["--set", "bus.kind=kafka", "--set", &brokers, "--set", "bus.replication=1"];
    let said = work_dir.run(&[&["doctor"][..], &set].concat());
    assert!(line(&said, "Kafka").starts_with("ok"), "{said:#?}");
    let serving = work_dir.serve(&set);
    assert_eq!(serving.get("/health/ready").status, 200);
    serving.stop();
}
