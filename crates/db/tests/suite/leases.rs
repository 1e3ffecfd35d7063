//! One owner at a time holds a lease, and its epoch only grows.

use std::time::Duration;

use tokio::task::JoinSet;
use urr_db::{
    Db, EngineKind,
    lease::{Epoch, acquire, release, renew},
};
use urr_kernel::Timestamp;
use urr_testkit::until;
use uuid::Uuid;

use crate::fresh::{LIMIT, ids, now, on_both_engines};

on_both_engines! {
    held_lease_is_exclusive_and_renewable,
    expired_lease_is_taken_over_with_a_higher_epoch,
    released_lease_is_free_and_keeps_its_epoch,
    one_of_ten_concurrent_owners_acquires_the_lease,
}

const LONG: Duration = Duration::from_mins(10);
const NAME: &str = "sweep";

fn owner() -> Uuid {
    ids().next()
}

async fn held_lease_is_exclusive_and_renewable(db: Db) {
    let (ann, bob) = (owner(), owner());
    let epoch = acquire(&db, NAME, ann, LONG, now()).await.unwrap().unwrap();
    assert_eq!(epoch, Epoch(1));
    assert_eq!(acquire(&db, NAME, bob, LONG, now()).await.unwrap(), None);
    assert_eq!(acquire(&db, "other", bob, LONG, now()).await.unwrap(), Some(Epoch(1)));
    assert!(renew(&db, NAME, ann, epoch, LONG, now()).await.unwrap());
    assert!(!renew(&db, NAME, bob, epoch, LONG, now()).await.unwrap());
    assert!(!renew(&db, NAME, ann, Epoch(7), LONG, now()).await.unwrap());
    assert_eq!(
        acquire(&db, NAME, ann, LONG, now()).await.unwrap(),
        Some(Epoch(2)),
        "each acquisition has a new epoch"
    );
}

async fn expired_lease_is_taken_over_with_a_higher_epoch(db: Db) {
    let (ann, bob) = (owner(), owner());
    // PostgreSQL uses its own clock, so the test waits a moment; on SQLite it passes a later time.
    let ttl = Duration::from_millis(50);
    let epoch = acquire(&db, NAME, ann, ttl, now()).await.unwrap().unwrap();
    let later = now().after(ttl);
    let mut taken = None;
    until(LIMIT, async || {
        taken = acquire(&db, NAME, bob, LONG, later).await.unwrap();
        taken.is_some()
    })
    .await;
    assert!(taken > Some(epoch));
    assert!(!renew(&db, NAME, ann, epoch, LONG, later).await.unwrap(), "it is lost");
    assert!(!release(&db, NAME, ann, epoch, later).await.unwrap(), "releasing a lost lease changes nothing");
    assert_eq!(acquire(&db, NAME, ann, LONG, later).await.unwrap(), None);
    if db.engine() == EngineKind::Sqlite {
        let just_before = Timestamp::from_micros(later.after(LONG).as_micros() - 1);
        assert_eq!(acquire(&db, NAME, ann, LONG, just_before).await.unwrap(), None);
        assert_eq!(acquire(&db, NAME, ann, LONG, later.after(LONG)).await.unwrap(), Some(Epoch(3)));
    }
}

async fn released_lease_is_free_and_keeps_its_epoch(db: Db) {
    let (ann, bob) = (owner(), owner());
    let epoch = acquire(&db, NAME, ann, LONG, now()).await.unwrap().unwrap();
    assert!(release(&db, NAME, ann, epoch, now()).await.unwrap());
    assert!(!release(&db, NAME, ann, epoch, now()).await.unwrap(), "it is already released");
    assert_eq!(acquire(&db, NAME, bob, LONG, now()).await.unwrap(), Some(Epoch(2)));
}

async fn one_of_ten_concurrent_owners_acquires_the_lease(db: Db) {
    let mut tasks = JoinSet::new();
    for _ in 0..10 {
        let db = db.clone();
        tasks.spawn(async move { acquire(&db, NAME, owner(), LONG, now()).await.unwrap() });
    }
    let mut got = Vec::new();
    while let Some(epoch) = tasks.join_next().await {
        got.extend(epoch.unwrap());
    }
    assert_eq!(got, [Epoch(1)]);
}
