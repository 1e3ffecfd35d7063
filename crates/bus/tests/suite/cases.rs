//! Test cases that run on every backend.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use urr_bus::{
    Failure, Limits, Message,
    admin::{self, RepublishError},
};
use urr_db::{Tx, outbox};
use urr_jobs::Tasks;
use urr_testkit::{Proxy, until};

use crate::rig::{FORGET_OFFSETS, FORGET_PUBLISHED, LIMIT, NO_LETTERS, Probe, Rig, SOON, counted};

/// Longer than the 30 s claim of a crashed relay.
const CLAIM_RAN_OUT: Duration = Duration::from_mins(1);

fn noted(message: &Message, note: &str) -> bool {
    message.payload.contains(&format!(r#""note":"{note}""#))
}

fn retry(text: &'static str) -> Result<(), Failure> {
    Err(Failure::Retry(text.into()))
}

/// Asserts that every note of every key was applied once, in the order of publishing.
async fn assert_once_and_in_order(probe: &Probe, keys: usize, count: usize) {
    let effects = probe.effects().await;
    assert_eq!(effects.len(), count, "effects");
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (key, note) in effects {
        let next = seen.entry(key.clone()).or_insert(0);
        assert_eq!(note, next.to_string(), "the next note of {key}");
        *next += 1;
    }
    assert_eq!(seen.len(), keys);
}

pub(crate) async fn every_message_is_applied_once_and_in_order_per_key(rig: &Rig) {
    let probe = rig.group();
    let tasks = rig.start(&[&probe]);
    rig.publish_many(10, 300).await;
    probe.has_effects(300).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_once_and_in_order(&probe, 10, 300).await;
    assert_eq!(rig.limits.batch, 64, "more than one batch");
}

pub(crate) async fn a_duplicate_message_is_applied_once(rig: &Rig) {
    let probe = rig.group();
    let tasks = rig.start(&[&probe]);
    let message = rig.message("a", "twice");
    rig.publish(&[message.clone(), message.clone()]).await;
    rig.publish_one("a", "last").await;
    probe.has_effects(2).await;
    // As if the relay died between producing and marking, and the group lost its offset: everything
    // is delivered again.
    rig.run_on_shop(&FORGET_PUBLISHED).await;
    rig.run_on_ledger(&FORGET_OFFSETS).await;
    rig.clock.advance(CLAIM_RAN_OUT);
    rig.publish_one("a", "after").await;
    probe.has_effects(3).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_eq!(probe.notes().await, ["twice", "last", "after"]);
    assert_eq!(probe.calls(&message), 1);
}

pub(crate) async fn a_failing_message_becomes_a_dead_letter_and_the_group_moves_on(rig: &Rig) {
    let probe = rig.group().that(|message, _| match () {
        () if noted(message, "hopeless") => retry("not today"),
        () if noted(message, "poison") => Err(Failure::Poison("never".into())),
        () if noted(message, "panic") => panic!("on purpose"),
        () => Ok(()),
    });
    let tasks = rig.start(&[&probe]);
    let hopeless = rig.publish_one("a", "hopeless").await;
    let poison = rig.publish_one("a", "poison").await;
    let panic = rig.publish_one("a", "panic").await;
    rig.publish_one("a", "good").await;
    probe.has_effects(1).await;
    probe.has_dead_letters(3).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_eq!(probe.notes().await, ["good"], "failed messages are rolled back");
    let letters = probe.dead_letters().await;
    for (message, attempts, cause) in [
        (&hopeless, 4, "the message could not be applied: not today"),
        (&poison, 1, "the message can never be applied: never"),
        (&panic, 4, "the message could not be applied: the consumer panicked: on purpose"),
    ] {
        let letter = letters.iter().find(|letter| letter.message.id == message.id).unwrap();
        assert_eq!(letter.group, probe.group);
        assert_eq!((letter.attempts, letter.error.as_str()), (attempts, cause));
        assert_eq!(letter.message, *message);
    }
}

pub(crate) async fn a_temporary_failure_is_retried_in_order(rig: &Rig) {
    let probe = rig.group().that(|message, tries| match () {
        () if noted(message, "0") && tries < 4 => retry("not yet"),
        () => Ok(()),
    });
    let tasks = rig.start(&[&probe]);
    rig.publish_many(1, 5).await;
    probe.has_effects(5).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_once_and_in_order(&probe, 1, 5).await;
    assert!(probe.dead_letters().await.is_empty());
}

pub(crate) async fn groups_are_independent(rig: &Rig) {
    let failing = rig.group().that(|message, _| match () {
        () if noted(message, "1") => Err(Failure::Poison("not for me".into())),
        () => Ok(()),
    });
    let healthy = rig.group();
    let tasks = rig.start(&[&failing, &healthy]);
    rig.publish_many(1, 4).await;
    healthy.has_effects(4).await;
    failing.has_effects(3).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_eq!(healthy.notes().await, ["0", "1", "2", "3"]);
    assert_eq!(failing.notes().await, ["0", "2", "3"]);
    assert!(healthy.dead_letters().await.is_empty());
    assert_eq!(failing.dead_letters().await.len(), 1);
}

pub(crate) async fn a_restart_resumes_at_the_stored_offset(rig: &Rig) {
    let first = rig.group();
    let tasks = rig.start(&[&first]);
    let before = rig.publish_one("a", "before").await;
    first.has_effects(1).await;
    tasks.shutdown(SOON).await.unwrap();
    let meanwhile = rig.publish_one("a", "meanwhile").await;

    let second = first.elsewhere(rig);
    let tasks = rig.start(&[&second]);
    rig.publish_one("a", "after").await;
    second.has_effects(3).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_eq!(second.notes().await, ["before", "meanwhile", "after"]);
    assert_eq!((second.calls(&before), second.calls(&meanwhile)), (0, 1));
}

pub(crate) async fn a_crash_neither_loses_nor_repeats_effects(rig: &Rig) {
    const ROUNDS: usize = 5;
    const EACH: usize = 40;
    let mut probe = rig.group();
    for round in 0..ROUNDS {
        probe = probe.elsewhere(rig);
        let tasks = rig.start(&[&probe]);
        let messages: Vec<Message> =
            (round * EACH..(round + 1) * EACH).map(|n| rig.message("key-0", &n.to_string())).collect();
        rig.publish(&messages).await;
        // Abort in the middle of this round.
        probe.has_effects(round * EACH + 1).await;
        tasks.abort().await;
        rig.clock.advance(CLAIM_RAN_OUT);
    }
    let survivor = probe.elsewhere(rig);
    let tasks = rig.start(&[&survivor]);
    survivor.has_effects(ROUNDS * EACH).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_once_and_in_order(&survivor, 1, ROUNDS * EACH).await;
}

pub(crate) async fn a_crash_during_retries_loses_nothing(rig: &Rig) {
    let first = rig.group().that(|message, _| if noted(message, "1") { retry("not yet") } else { Ok(()) });
    let patient = Limits { retries: [LIMIT; 3], ..rig.limits.clone() };
    let tasks = rig.start_with(&rig.bus_with(patient), &[&first]);
    let messages = ["0", "1", "2"].map(|note| rig.message("key-0", note));
    rig.publish(&messages).await;
    // The first message is applied; the second waits for its retry.
    until(SOON, async || first.calls(&messages[1]) >= 1 && first.effects().await.len() == 1).await;
    tasks.abort().await;
    rig.clock.advance(CLAIM_RAN_OUT);

    let second = first.elsewhere(rig).that(|_, _| Ok(()));
    let tasks = rig.start(&[&second]);
    second.has_effects(3).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_once_and_in_order(&second, 1, 3).await;
}

pub(crate) async fn two_processes_share_a_group_without_double_effects(rig: &Rig) {
    const KEYS: usize = 20;
    let one = rig.group();
    let other = one.elsewhere(rig);
    let first = rig.start(&[&one]);
    let second = rig.start(&[&other]);
    // Repeat until both processes have applied messages.
    let mut rounds = 0_usize;
    until(SOON, async || {
        publish_round(rig, KEYS, rounds).await;
        rounds += 1;
        one.has_effects(rounds * KEYS).await;
        one.has_worked() && other.has_worked()
    })
    .await;
    // One process stops; the other takes over.
    publish_round(rig, KEYS, rounds).await;
    first.shutdown(SOON).await.unwrap();
    publish_round(rig, KEYS, rounds + 1).await;
    other.has_effects((rounds + 2) * KEYS).await;
    second.shutdown(SOON).await.unwrap();
    assert_once_and_in_order(&other, KEYS, (rounds + 2) * KEYS).await;
}

/// Publishes one note per key, numbered by the round.
async fn publish_round(rig: &Rig, keys: usize, round: usize) {
    let messages: Vec<Message> =
        (0..keys).map(|key| rig.message(&format!("key-{key}"), &round.to_string())).collect();
    rig.publish(&messages).await;
}

pub(crate) async fn a_dead_letter_can_be_republished(rig: &Rig) {
    let repaired = Arc::new(AtomicBool::new(false));
    let is_repaired = Arc::clone(&repaired);
    let probe = rig.group().that(move |_, _| {
        if is_repaired.load(Ordering::SeqCst) { Ok(()) } else { Err(Failure::Poison("a bug".into())) }
    });
    let other = rig.group();
    let tasks = rig.start(&[&probe, &other]);
    let message = rig.publish_one("a", "late").await;
    probe.has_dead_letters(1).await;
    other.has_effects(1).await;

    let consumer = probe.as_consumer();
    let again = admin::republish(&consumer, message.id, &rig.clock).await.unwrap_err();
    assert!(matches!(again, RepublishError::Failed(Failure::Poison(_))), "{again:?}");
    assert_eq!(probe.dead_letters().await.len(), 1, "a dead letter that fails again is kept");

    repaired.store(true, Ordering::SeqCst);
    admin::republish(&consumer, message.id, &rig.clock).await.unwrap();
    let gone = admin::republish(&consumer, message.id, &rig.clock).await.unwrap_err();
    assert!(matches!(gone, RepublishError::NoSuchLetter { .. }), "{gone:?}");
    tasks.shutdown(SOON).await.unwrap();
    assert_eq!(probe.notes().await, ["late"]);
    assert_eq!(other.notes().await, ["late"], "the other group does not get it again");
    assert!(probe.dead_letters().await.is_empty());
}

pub(crate) async fn unsubscribed_topics_are_skipped(rig: &Rig) {
    let probe = rig.group();
    let tasks = rig.start(&[&probe]);
    let foreign = Message { topic: format!("{}-other", rig.topic), ..rig.message("a", "foreign") };
    rig.publish(&[foreign, rig.message("a", "ours")]).await;
    probe.has_effects(1).await;
    until(SOON, async || backlog(rig).await == 0).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_eq!(probe.notes().await, ["ours"]);
}

pub(crate) async fn an_unreachable_database_is_waited_for(rig: &Rig) {
    let Some(address) = rig.postgres_address() else { return };
    let mut proxy = Proxy::start(&address).await;
    let reached = rig.group_in(rig.ledger_behind(&proxy).unwrap());
    let probe = reached.elsewhere(rig);
    let healthy = rig.group();
    let tasks = rig.start(&[&reached, &healthy]);
    rig.publish_one("a", "before").await;
    probe.has_effects(1).await;
    proxy.cut().await;
    rig.publish_one("a", "meanwhile").await;
    healthy.has_effects(2).await;
    // Ten times as long as all retries take.
    tokio::time::sleep(rig.limits.retries.iter().sum::<Duration>() * 10).await;
    assert!(probe.dead_letters().await.is_empty());
    proxy.restore().await;
    probe.has_effects(2).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_eq!(probe.notes().await, ["before", "meanwhile"]);
    assert!(probe.dead_letters().await.is_empty());
}

pub(crate) async fn a_database_that_cannot_write_is_waited_for(rig: &Rig) {
    let hasty = rig.group_in(rig.hasty_ledger());
    let probe = hasty.elsewhere(rig);
    // Larger than the space that is left.
    let note = "x".repeat(50_000);
    let message = rig.publish_one("a", &note).await;
    // A full SQLite cannot store a dead letter either, so it waits even longer than an hour.
    let (mut tasks, mut is_later) = (None, rig.postgres_address().is_some());
    rig.while_nothing_is_written(async || {
        tasks.get_or_insert_with(|| rig.start(&[&hasty]));
        if !is_later && hasty.calls(&message) > 8 {
            rig.clock.advance(rig.limits.unwilling);
            is_later = true;
        }
        // More attempts than retries allow.
        hasty.calls(&message) > 16
    })
    .await;
    // SQLite may get its space back between an attempt and storing the dead letter for it. The
    // dead letter is then stored, and the message is not lost either.
    let is_postgres = rig.postgres_address().is_some();
    until(SOON, async || {
        !probe.effects().await.is_empty() || (!is_postgres && !probe.dead_letters().await.is_empty())
    })
    .await;
    tasks.unwrap().shutdown(SOON).await.unwrap();
    if probe.dead_letters().await.is_empty() {
        assert_eq!(probe.notes().await, [note]);
    } else {
        assert!(!is_postgres && probe.notes().await.is_empty());
    }
}

pub(crate) async fn a_message_refused_for_an_hour_becomes_a_dead_letter(rig: &Rig) {
    // A full SQLite cannot store the dead letter either.
    if rig.postgres_address().is_none() {
        return;
    }
    let hasty = rig.group_in(rig.hasty_ledger());
    let probe = hasty.elsewhere(rig);
    let message = rig.publish_one("a", "refused").await;
    let (mut tasks, mut is_later) = (None, false);
    rig.while_nothing_is_written(async || {
        tasks.get_or_insert_with(|| rig.start(&[&hasty]));
        if !is_later && hasty.calls(&message) > 8 {
            assert!(probe.dead_letters().await.is_empty(), "not yet");
            rig.clock.advance(rig.limits.unwilling);
            is_later = true;
        }
        !probe.dead_letters().await.is_empty()
    })
    .await;
    rig.publish_one("a", "behind it").await;
    probe.has_effects(1).await;
    tasks.unwrap().shutdown(SOON).await.unwrap();
    assert_eq!(probe.notes().await, ["behind it"]);
}

pub(crate) async fn a_dead_letter_that_cannot_be_stored_does_not_block_the_group(rig: &Rig) {
    let probe = rig.group().that(|message, _| match () {
        () if noted(message, "poison") => Err(Failure::Poison("never".into())),
        () => Ok(()),
    });
    rig.run_on_ledger(&NO_LETTERS).await;
    let tasks = rig.start(&[&probe]);
    rig.publish_one("a", "poison").await;
    rig.publish_one("a", "good").await;
    probe.has_effects(1).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_eq!(probe.notes().await, ["good"]);
    assert_eq!(counted("urr_bus_lost_letters_total", probe.group), 1);
}

pub(crate) async fn a_commit_wakes_the_bus_before_the_next_poll(rig: &Rig) {
    // On a shared PostgreSQL server, open transactions of other tests delay reads until the next
    // poll.
    if rig.brokers.is_none() && rig.postgres_address().is_some() {
        return;
    }
    let limits = Limits { poll: LIMIT * 60, gather: Duration::ZERO, ..rig.limits.clone() };
    let (probe, source, tasks) = (rig.group(), rig.source(), Tasks::new());
    let started =
        rig.bus_with(limits).start(std::slice::from_ref(&source), &[probe.as_consumer()], &tasks, &rig.clock);
    started.unwrap();
    for count in 1..=5 {
        let message = rig.message("a", &count.to_string());
        let append = async |tx: &mut Tx<'_>| outbox::append(tx, &message).await;
        source.db.write("test.publish", append).await.unwrap();
        probe.has_effects(count).await;
        // The row is marked, so the bus is idle again.
        until(SOON, async || backlog(rig).await == 0).await;
    }
    tasks.shutdown(SOON).await.unwrap();
}

pub(crate) async fn backlog(rig: &Rig) -> u32 {
    let all = admin::backlog(&[rig.source()]).await.unwrap();
    assert_eq!(all.len(), 1);
    all[0].1.waiting
}
