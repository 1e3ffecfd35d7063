//! Waiting rooms: `urr queue verify`, and readiness while the journal cannot be written.

use std::{path::Path, time::Duration};

use urr_db::{Db, Sql, SqliteOptions, Tx, statements};
use urr_jobs::Tasks;
use urr_kernel::{Clock, EventId, Ids};
use urr_queue::{DOMAIN, Limits, Order, Room};
use urr_testkit::AccessTokens;

use crate::process::{PATIENCE, WorkDir};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

statements! {
    /// Makes the admitted user one too many.
    TOO_MANY = "update rooms set threshold = 0";

    /// Makes writes to the journal fail, and succeed again.
    HIDE = "alter table journal rename to journal_away";
    SHOW = "alter table journal_away rename to journal";
}

fn database(dir: &Path) -> Db {
    Db::sqlite(dir, &DOMAIN, SqliteOptions::default()).unwrap()
}

/// A room with one active and one waiting user, and an unused room.
async fn two_rooms(dir: &Path) -> [EventId; 2] {
    let (clock, tasks) = (Clock::system(), Tasks::new());
    let ids = Ids::random(clock.clone());
    let limits = Limits { threshold: 1, ..Limits::default() };
    let room = Room::memory(database(dir), clock, ids.clone(), limits, &tasks).await.unwrap();
    let [used, empty] = [ids.next(), ids.next()];
    for _ in 0..2 {
        room.check(used, ids.next(), None).await.unwrap();
    }
    room.order(empty, Order::Look).await.unwrap();
    tasks.shutdown(PATIENCE).await.unwrap();
    [used, empty]
}

/// Changes the database outside the process.
async fn change(dir: &Path, statement: &'static Sql) {
    let db = database(dir);
    let changed: Result<u64, urr_db::Error> =
        db.write("test.change", async |tx: &mut Tx<'_>| tx.execute(statement, &[]).await).await;
    changed.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_exits_with_0_if_fair_1_if_unfair_2_if_unknown() {
    let work_dir = WorkDir::new();
    work_dir.run(&["migrate"]).ok();
    let data = work_dir.path().join("urr-data");
    let [used, empty] = two_rooms(&data).await;
    let verify = |event: EventId, set: &[&str]| {
        let event = event.to_string();
        work_dir.run(&[&["queue", "verify", &event][..], set].concat())
    };

    let fair = verify(used, &[]).ok();
    assert!(fair.contains("steps     2") && fair.contains("1 waiting, 1 in"), "{fair}");
    let fair = verify(empty, &[]).ok();
    assert!(fair.contains("steps     0") && fair.contains("fair"), "an unused room is fair: {fair}");

    let unreadable = |said: crate::process::Said, why: &str| {
        assert_eq!(said.code, Some(2), "{said:#?}");
        assert!(said.err.contains(why) && !said.out.contains("fair"), "{said:#?}");
    };
    unreadable(verify(Ids::random(Clock::system()).next(), &[]), "has no journal");
    unreadable(verify(used, &["--set", "redis.urls=redis://127.0.0.1:1"]), "redis");
    let serving = work_dir.serve(&[]);
    unreadable(verify(used, &[]), "another process");
    serving.stop();

    change(&data, &TOO_MANY).await;
    let unfair = verify(used, &[]);
    assert_eq!(unfair.code, Some(1), "{unfair:#?}");
    assert!(unfair.err.contains("1 steps should not have happened"), "{unfair:#?}");
    assert!(unfair.err.contains("admission above the threshold: 1 active, 0 allowed"), "{unfair:#?}");
    assert!(!unfair.out.contains("fair"), "{unfair:#?}");
    assert_eq!(verify(empty, &[]).code, Some(0), "the other room is still fair");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_process_is_not_ready_while_the_journal_cannot_be_written() {
    let work_dir = WorkDir::new();
    let serving = work_dir.serve(&["--set", &format!("security.secret={SECRET}")]);
    let events = serving.get("/api/events?status=on_sale").json();
    let line = format!("/api/queue/check/{}", events["events"][0]["id"].as_str().unwrap());
    let (_, token) = AccessTokens::new(SECRET).somebody();
    let join = || serving.ask("POST", &line, &[("authorization", &format!("Bearer {token}"))], "");
    assert_eq!(serving.get("/health/ready").status, 200);

    let data = work_dir.path().join("urr-data");
    change(&data, &HIDE).await;
    let refused = join();
    assert_eq!((refused.status, refused.json()["code"].as_str()), (503, Some("http.unavailable")));
    assert_eq!(serving.get("/health/ready").status, 200, "one failed write does not make it unready");
    let late = until(|| Some(serving.get("/health/ready")).filter(|answer| answer.status == 503));
    let missing = late.json()["notReady"].clone();
    assert!(missing["queue journal"].as_str().unwrap().contains("cannot be written"), "{missing}");
    assert_eq!(missing.as_object().unwrap().len(), 1, "{missing}");

    change(&data, &SHOW).await;
    until(|| (serving.get("/health/ready").status == 200).then_some(()));
    assert_eq!(join().json()["status"], "active", "it recovers without a restart");
    serving.stop();
}

fn until<T>(condition: impl Fn() -> Option<T>) -> T {
    let clock = Clock::system();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(clock.ticks() < PATIENCE, "timed out");
        std::thread::sleep(Duration::from_millis(100));
    }
}
