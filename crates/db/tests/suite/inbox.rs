//! A message takes effect once; offsets and dead letters are stored.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::task::JoinSet;
use urr_db::{
    Db, Error, Message, Position, Tx,
    dead_letters::{self, DeadLetter},
    inbox, offsets,
    outbox::PURGE_BATCH,
    transaction,
};
use urr_kernel::{MessageId, Timestamp};

use crate::fresh::{count, counter, ids, now, on_both_engines, sit};

on_both_engines! {
    duplicate_delivery_has_one_effect,
    first_times_returns_only_new_messages,
    rolled_back_message_is_new_again,
    ten_concurrent_deliveries_have_one_effect,
    old_records_are_purged_in_batches,
    offset_is_stored_per_group_and_source,
    dead_letter_is_stored_with_its_error_until_taken,
}

async fn first_time(db: &Db, group: &str, id: MessageId) -> bool {
    db.write("test.inbox", async |tx: &mut Tx<'_>| inbox::first_time(tx, group, id, now()).await)
        .await
        .unwrap()
}

async fn duplicate_delivery_has_one_effect(db: Db) {
    let (one, other): (MessageId, MessageId) = (ids().next(), ids().next());
    assert!(first_time(&db, "mail", one).await);
    assert!(!first_time(&db, "mail", one).await);
    assert!(first_time(&db, "mail", other).await);
    assert!(first_time(&db, "stats", one).await, "groups are independent");
}

async fn first_times_returns_only_new_messages(db: Db) {
    let [known, new, newer]: [MessageId; 3] = [ids().next(), ids().next(), ids().next()];
    assert!(first_time(&db, "mail", known).await);
    let told = async |messages: &[MessageId]| {
        db.write("test.inbox", async |tx: &mut Tx<'_>| inbox::first_times(tx, "mail", messages, now()).await)
            .await
            .unwrap()
    };
    assert_eq!(told(&[newer, known, new, new]).await, [new, newer].into());
    assert!(told(&[known, new, newer]).await.is_empty());
    assert!(told(&[]).await.is_empty());
}

async fn rolled_back_message_is_new_again(db: Db) {
    let id = ids().next();
    let failed = db.write("test.effect", async |tx: &mut Tx<'_>| {
        assert!(inbox::first_time(tx, "mail", id, now()).await?);
        sit(tx, 1, "").await
    });
    failed.await.unwrap_err();
    assert!(first_time(&db, "mail", id).await);
}

async fn ten_concurrent_deliveries_have_one_effect(db: Db) {
    let (id, firsts) = (ids().next::<MessageId>(), counter());
    let mut tasks = JoinSet::new();
    for seat in 0..10 {
        let (db, firsts) = (db.clone(), firsts.clone());
        tasks.spawn(async move {
            let first = transaction!(db, "test.effect", async |tx: &mut Tx<'_>| {
                let first = inbox::first_time(tx, "mail", id, now()).await?;
                if first {
                    sit(tx, seat, "ann").await?;
                }
                Ok::<_, Error>(first)
            });
            firsts.fetch_add(u32::from(first.unwrap()), Ordering::Relaxed);
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    assert_eq!((firsts.load(Ordering::Relaxed), count(&db).await), (1, 1));
}

async fn old_records_are_purged_in_batches(db: Db) {
    let ids = ids();
    db.write("test.many", async |tx: &mut Tx<'_>| {
        for _ in 0..=PURGE_BATCH {
            inbox::first_time(tx, "mail", ids.next(), now()).await?;
        }
        Ok::<_, Error>(())
    })
    .await
    .unwrap();
    let purge = async |at: Timestamp| {
        db.write("test.purge", async |tx: &mut Tx<'_>| inbox::purge(tx, at).await).await.unwrap()
    };
    let month = now().after(inbox::KEEP);
    assert_eq!(purge(month).await, 0);
    let later = month.after(Duration::from_micros(1));
    assert_eq!((purge(later).await, purge(later).await), (u64::from(PURGE_BATCH), 1));
}

async fn offset_is_stored_per_group_and_source(db: Db) {
    let store = async |group: &str, source: &str, at: Position| {
        db.write("test.store", async |tx: &mut Tx<'_>| offsets::store(tx, group, source, at).await)
            .await
            .unwrap();
    };
    let load = async |group: &str, source: &str| {
        db.read("test.load", async |tx: &mut Tx<'_>| offsets::load(tx, group, source).await).await.unwrap()
    };
    let (here, there) = (Position { xid: 5, seq: 9 }, Position { xid: 7, seq: 2 });
    store("mail", "tickets", here).await;
    store("mail", "catalog", there).await;
    assert_eq!(load("mail", "tickets").await, Some(here));
    assert_eq!(load("stats", "tickets").await, None);
    store("mail", "tickets", there).await;
    assert_eq!(load("mail", "tickets").await, Some(there));
}

async fn dead_letter_is_stored_with_its_error_until_taken(db: Db) {
    let message = Message {
        id: ids().next(),
        topic: "tickets".to_owned(),
        key: "a".to_owned(),
        kind: "1".to_owned(),
        payload: "not JSON".to_owned(),
        at: now(),
    };
    let id = message.id;
    let letter = DeadLetter {
        group: "mail".to_owned(),
        message,
        attempts: 5,
        error: "x".repeat(5_000),
        dead_at: now().after(Duration::from_secs(1)),
    };
    let insert = async |letter: &DeadLetter| {
        db.write("test.dead", async |tx: &mut Tx<'_>| dead_letters::insert(tx, letter).await).await.unwrap();
    };
    insert(&letter).await;
    let again = DeadLetter { error: "the reason".to_owned(), attempts: 6, ..letter };
    insert(&again).await;
    let (found, lying) = db
        .read("test.list", async |tx: &mut Tx<'_>| {
            Ok::<_, Error>((dead_letters::list(tx, "mail", None, 10).await?, dead_letters::count(tx).await?))
        })
        .await
        .unwrap();
    assert_eq!((found, lying), (vec![again.clone()], 1));

    let take = async || {
        db.write("test.take", async |tx: &mut Tx<'_>| dead_letters::take(tx, "mail", id).await).await.unwrap()
    };
    assert_eq!(take().await, Some(again.clone()));
    assert_eq!(take().await, None);

    let nul = "a\0b".to_owned();
    let message =
        Message { key: nul.clone(), kind: nul.clone(), payload: nul.clone(), ..again.message.clone() };
    insert(&DeadLetter { message, error: nul, ..again }).await;
    let kept = take().await.unwrap();
    let texts = [kept.message.key, kept.message.kind, kept.message.payload, kept.error];
    assert_eq!(texts, [const { "a\u{fffd}b" }; 4], "NUL is replaced: PostgreSQL cannot store it");
}
