//! A message is delivered if and only if its change was committed, in order per key.

use std::{sync::Mutex, time::Duration};

use urr_db::{
    Db, Error, Kind, Tx,
    outbox::{self, Claimed, Message, PAUSES, PURGE_BATCH, Position},
};
use urr_kernel::{Timestamp, limits::MAX_MESSAGE_BYTES};
use urr_testkit::{until, within};

use crate::fresh::{LIMIT, ids, now, on_both_engines};

on_both_engines! {
    messages_are_read_in_order_and_once,
    rolled_back_write_appends_nothing_and_does_not_notify,
    commit_notifies_a_listener_that_starts_waiting_later,
    oversized_message_rolls_back_its_change,
    append_all_keeps_order_and_one_oversized_message_rejects_all,
    claim_takes_only_the_first_of_each_key,
    expired_claim_is_claimed_again,
    concurrent_relays_keep_the_order_per_key,
    failed_message_is_retried_with_backoff_and_then_dead,
    dead_letter_unblocks_its_key_and_can_be_republished,
    release_does_not_count_an_attempt,
    late_report_of_an_earlier_claim_counts_once,
    backlog_counts_unpublished_rows,
    published_rows_are_purged_after_a_week_in_batches,
    row_numbers_are_never_reused,
}

const CLAIM_FOR: Duration = Duration::from_secs(30);

fn message(key: &str, kind: &str) -> Message {
    Message {
        id: ids().next(),
        topic: "tickets".to_owned(),
        key: key.to_owned(),
        kind: kind.to_owned(),
        payload: format!("{{\"key\":\"{key}\"}}"),
        at: now(),
    }
}

async fn append(db: &Db, messages: &[Message]) {
    db.write("test.append", async |tx: &mut Tx<'_>| {
        for message in messages {
            outbox::append(tx, message).await?;
        }
        Ok::<_, Error>(())
    })
    .await
    .unwrap();
}

async fn append_all_keeps_order_and_one_oversized_message_rejects_all(db: Db) {
    let messages: Vec<Message> = ["c", "a", "b"].map(|key| message(key, "MADE")).into();
    let append_all = async |messages: &[Message]| -> Result<(), Error> {
        db.write("test.append", async |tx: &mut Tx<'_>| outbox::append_all(tx, messages.iter()).await).await
    };
    append_all(&[]).await.unwrap();
    append_all(&messages).await.unwrap();
    let large = Message { payload: "x".repeat(MAX_MESSAGE_BYTES + 1), ..message("d", "MADE") };
    let refused = append_all(&[message("e", "MADE"), large]).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Bug);
    let mut found = Vec::new();
    // PostgreSQL shows messages once no older transaction of the whole server is open.
    until(LIMIT, async || {
        found = read_after(&db, Position::START, 10).await;
        !found.is_empty()
    })
    .await;
    assert_eq!(found.into_iter().map(|(_, message)| message).collect::<Vec<_>>(), messages);
}

async fn append_kinds(db: &Db, keys_and_kinds: &[(&str, &str)]) {
    let messages: Vec<Message> = keys_and_kinds.iter().map(|(key, kind)| message(key, kind)).collect();
    append(db, &messages).await;
}

async fn read_after(db: &Db, after: Position, limit: u32) -> Vec<(Position, Message)> {
    db.read("test.log", async |tx: &mut Tx<'_>| outbox::read_after(tx, after, limit).await).await.unwrap()
}

/// Reads until at least `wanted` messages are visible. PostgreSQL holds rows back while *any* older
/// transaction of the server runs, and other tests share the server.
pub(crate) async fn read_at_least(db: &Db, after: Position, wanted: usize) -> Vec<(Position, Message)> {
    let mut found = Vec::new();
    until(LIMIT, async || {
        found = read_after(db, after, 1_000).await;
        found.len() >= wanted
    })
    .await;
    found
}

async fn claim(db: &Db, now: Timestamp) -> Vec<Claimed> {
    db.write("test.claim", async |tx: &mut Tx<'_>| outbox::claim(tx, now, 100, CLAIM_FOR).await)
        .await
        .unwrap()
}

async fn publish(db: &Db, claimed: &[Claimed], now: Timestamp) {
    let seqs: Vec<i64> = claimed.iter().map(|c| c.seq).collect();
    db.write("test.published", async |tx: &mut Tx<'_>| outbox::published(tx, &seqs, now).await)
        .await
        .unwrap();
}

async fn fail(db: &Db, claimed: &Claimed, now: Timestamp) -> bool {
    db.write("test.failed", async |tx: &mut Tx<'_>| outbox::failed(tx, claimed, "no", now).await)
        .await
        .unwrap()
}

fn kinds(claimed: &[Claimed]) -> Vec<&str> {
    claimed.iter().map(|c| c.message.kind.as_str()).collect()
}

async fn messages_are_read_in_order_and_once(db: Db) {
    let messages = [message("a", "1"), message("b", "2"), message("a", "3")];
    append(&db, &messages).await;
    let found = read_at_least(&db, Position::START, 3).await;
    assert_eq!(found.iter().map(|(_, m)| m.clone()).collect::<Vec<_>>(), messages);
    assert!(found.is_sorted_by_key(|(position, _)| *position));
    let rest = read_at_least(&db, found[0].0, 2).await;
    assert_eq!(rest, found[1..]);
    assert_eq!(read_after(&db, Position::START, 2).await, found[..2], "at most `limit` messages");
    assert_eq!(read_after(&db, found[2].0, 10).await, []);
}

async fn rolled_back_write_appends_nothing_and_does_not_notify(db: Db) {
    let refused = db.write("test.refuse", async |tx: &mut Tx<'_>| {
        outbox::append(tx, &message("a", "1")).await?;
        tx.execute(&crate::fresh::SIT, &[&1_i64, &""]).await
    });
    assert_eq!(refused.await.unwrap_err().kind(), Kind::Constraint);
    // A write without a message does not notify either.
    db.write("test.sit", async |tx: &mut Tx<'_>| crate::fresh::sit(tx, 1, "ann").await).await.unwrap();
    let nudge = db.outbox_nudge();
    let woken = tokio::time::timeout(Duration::from_millis(50), nudge.notified()).await;
    assert!(woken.is_err(), "nothing was committed to the outbox");
    assert_eq!(claim(&db, now()).await, []);
}

async fn commit_notifies_a_listener_that_starts_waiting_later(db: Db) {
    append_kinds(&db, &[("a", "1")]).await;
    within(LIMIT, db.outbox_nudge().notified()).await;
    assert_eq!(kinds(&claim(&db, now()).await), ["1"], "notified after the commit, so the row is visible");
}

async fn oversized_message_rolls_back_its_change(db: Db) {
    let large = Message { payload: "x".repeat(MAX_MESSAGE_BYTES + 1), ..message("a", "large") };
    let refused = db.write("test.large", async |tx: &mut Tx<'_>| {
        crate::fresh::sit(tx, 1, "ann").await?;
        outbox::append(tx, &large).await
    });
    assert_eq!(
        refused.await.unwrap_err().to_string(),
        "a large message of 500001 bytes is larger than 500000"
    );
    assert_eq!(crate::fresh::count(&db).await, 0);
    append(&db, &[Message { payload: "x".repeat(MAX_MESSAGE_BYTES), ..large }]).await;
}

async fn claim_takes_only_the_first_of_each_key(db: Db) {
    append_kinds(&db, &[("a", "a1"), ("a", "a2"), ("b", "b1"), ("a", "a3"), ("b", "b2")]).await;
    let first = claim(&db, now()).await;
    assert_eq!(kinds(&first), ["a1", "b1"]);
    assert_eq!(claim(&db, now()).await, [], "one of each key is in flight");
    publish(&db, &first[..1], now()).await;
    assert_eq!(kinds(&claim(&db, now()).await), ["a2"], "b1 is still in flight");
}

async fn expired_claim_is_claimed_again(db: Db) {
    append_kinds(&db, &[("a", "1")]).await;
    assert_eq!(claim(&db, now()).await.len(), 1);
    assert_eq!(claim(&db, now().after(CLAIM_FOR).before(Duration::from_micros(1))).await, []);
    assert_eq!(kinds(&claim(&db, now().after(CLAIM_FOR)).await), ["1"]);
}

async fn concurrent_relays_keep_the_order_per_key(db: Db) {
    const KEYS: usize = 5;
    const EACH: usize = 8;
    for n in 0..EACH {
        let batch: Vec<Message> = (0..KEYS).map(|key| message(&key.to_string(), &n.to_string())).collect();
        append(&db, &batch).await;
    }
    let sent = Mutex::new(Vec::new());
    let relay = async || {
        until(LIMIT, async || {
            let claimed =
                db.write("test.claim", async |tx: &mut Tx<'_>| outbox::claim(tx, now(), 3, CLAIM_FOR).await);
            let claimed = claimed.await.unwrap();
            // Recorded before it is marked, as a broker would.
            sent.lock().unwrap().extend(claimed.iter().map(|c| c.message.clone()));
            publish(&db, &claimed, now()).await;
            sent.lock().unwrap().len() >= KEYS * EACH
        })
        .await;
    };
    tokio::join!(relay(), relay(), relay());
    let sent = sent.lock().unwrap();
    assert_eq!(sent.len(), KEYS * EACH, "each message exactly once");
    for key in 0..KEYS {
        let of_key: Vec<&str> =
            sent.iter().filter(|m| m.key == key.to_string()).map(|m| m.kind.as_str()).collect();
        assert_eq!(of_key, ["0", "1", "2", "3", "4", "5", "6", "7"], "key {key}");
    }
}

async fn failed_message_is_retried_with_backoff_and_then_dead(db: Db) {
    append_kinds(&db, &[("a", "1"), ("a", "2")]).await;
    let mut at = now();
    for pause in PAUSES {
        let claimed = claim(&db, at).await;
        assert_eq!(kinds(&claimed), ["1"]);
        assert!(!fail(&db, &claimed[0], at).await, "it will be retried");
        assert_eq!(
            claim(&db, at.after(pause).before(Duration::from_micros(1))).await,
            [],
            "2 does not overtake it"
        );
        at = at.after(pause);
    }
    let last = claim(&db, at).await;
    assert_eq!((kinds(&last), last[0].attempts), (vec!["1"], 3));
    assert!(fail(&db, &last[0], at).await, "that was the last attempt");
    assert_eq!(kinds(&claim(&db, at).await), ["2"]);
}

async fn dead_letter_unblocks_its_key_and_can_be_republished(db: Db) {
    append_kinds(&db, &[("a", "1"), ("a", "2")]).await;
    let mut at = now();
    for _ in 0..=PAUSES.len() {
        at = at.after(CLAIM_FOR);
        fail(&db, &claim(&db, at).await[0], at).await;
    }
    publish(&db, &claim(&db, at).await, at).await;
    let dead =
        db.read("test.dead", async |tx: &mut Tx<'_>| outbox::dead_letters(tx, 0, 10).await).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].message.kind.as_str(), dead[0].error.as_str(), dead[0].since), ("1", "no", at));

    let again = async |seq: i64| {
        let send = db.write("test.again", async |tx: &mut Tx<'_>| outbox::republish(tx, seq, at).await);
        send.await.unwrap()
    };
    assert!(again(dead[0].seq).await);
    assert!(!again(dead[0].seq).await, "it is no longer a dead letter");
    let claimed = claim(&db, at).await;
    assert_eq!((kinds(&claimed), claimed[0].attempts), (vec!["1"], 0));
}

async fn release_does_not_count_an_attempt(db: Db) {
    append_kinds(&db, &[("a", "1")]).await;
    for _ in 0..10 {
        let seqs = [claim(&db, now()).await[0].seq];
        db.write("test.release", async |tx: &mut Tx<'_>| outbox::released(tx, &seqs, now()).await)
            .await
            .unwrap();
    }
    assert_eq!(claim(&db, now()).await[0].attempts, 0);
}

async fn late_report_of_an_earlier_claim_counts_once(db: Db) {
    append_kinds(&db, &[("a", "1")]).await;
    let slow = claim(&db, now()).await;
    let later = now().after(CLAIM_FOR);
    let taken_over = claim(&db, later).await;
    fail(&db, &taken_over[0], later).await;
    fail(&db, &slow[0], later).await;
    assert_eq!(claim(&db, later.after(PAUSES[0])).await[0].attempts, 1);
}

async fn backlog_counts_unpublished_rows(db: Db) {
    let backlog =
        async || db.read("test.backlog", async |tx: &mut Tx<'_>| outbox::backlog(tx).await).await.unwrap();
    assert_eq!(backlog().await, outbox::Backlog { waiting: 0, oldest: None, dead: 0 });
    append_kinds(&db, &[("a", "1"), ("a", "2"), ("b", "1")]).await;
    assert_eq!(backlog().await, outbox::Backlog { waiting: 3, oldest: Some(now()), dead: 0 });
    publish(&db, &claim(&db, now()).await, now()).await;
    assert_eq!(backlog().await.waiting, 1);
}

async fn published_rows_are_purged_after_a_week_in_batches(db: Db) {
    let many: Vec<Message> = (0..=PURGE_BATCH).map(|n| message(&n.to_string(), "1")).collect();
    append(&db, &many).await;
    append_kinds(&db, &[("waits", "1")]).await;
    loop {
        let claimed: Vec<Claimed> = claim(&db, now()).await;
        let (waits, rest): (Vec<Claimed>, _) = claimed.into_iter().partition(|c| c.message.key == "waits");
        publish(&db, &rest, now()).await;
        if rest.is_empty() || !waits.is_empty() {
            break;
        }
    }
    let purge = async |at: Timestamp| {
        db.write("test.purge", async |tx: &mut Tx<'_>| outbox::purge_published(tx, at).await).await.unwrap()
    };
    let week = now().after(outbox::KEEP_PUBLISHED);
    assert_eq!(purge(week).await, 0, "not older than a week");
    let later = week.after(Duration::from_micros(1));
    assert_eq!(purge(later).await, u64::from(PURGE_BATCH));
    assert_eq!(purge(later).await, 1);
    assert_eq!(kinds(&claim(&db, now().after(CLAIM_FOR)).await), ["1"], "unpublished rows stay");
}

async fn row_numbers_are_never_reused(db: Db) {
    append_kinds(&db, &[("a", "1")]).await;
    let last = claim(&db, now()).await;
    publish(&db, &last, now()).await;
    let later = now().after(outbox::KEEP_PUBLISHED).after(CLAIM_FOR);
    let purged = db.write("test.purge", async |tx: &mut Tx<'_>| outbox::purge_published(tx, later).await);
    assert_eq!(purged.await.unwrap(), 1, "the table is empty");
    append_kinds(&db, &[("a", "2")]).await;
    // A group that had read up to the purged row continues from its number.
    assert!(claim(&db, now()).await[0].seq > last[0].seq);
}
