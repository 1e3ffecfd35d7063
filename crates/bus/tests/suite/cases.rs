//! What every backend must do.

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

/// What a dead relay had claimed is free again after half a minute.
const CLAIM_RAN_OUT: Duration = Duration::from_mins(1);

fn noted(message: &Message, note: &str) -> bool {
    message.payload.contains(&format!(r#""note":"{note}""#))
}

fn retry(text: &'static str) -> Result<(), Failure> {
    Err(Failure::Retry(text.into()))
}

/// Every note of every key once, and in the order in which they were published.
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

pub(crate) async fn every_message_has_one_effect_in_the_order_of_its_key(rig: &Rig) {
    let probe = rig.group();
    let tasks = rig.start(&[&probe]);
    rig.publish_many(10, 300).await;
    probe.has_effects(300).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_once_and_in_order(&probe, 10, 300).await;
    assert_eq!(rig.limits.batch, 64, "more than one batch");
}

pub(crate) async fn a_message_published_twice_has_one_effect(rig: &Rig) {
    let probe = rig.group();
    let tasks = rig.start(&[&probe]);
    let message = rig.message("a", "twice");
    rig.publish(&[message.clone(), message.clone()]).await;
    rig.publish_one("a", "last").await;
    probe.has_effects(2).await;
    // The relay died between producing and marking, or the group lost its place: everything comes again.
    rig.run_on_shop(&FORGET_PUBLISHED).await;
    rig.run_on_ledger(&FORGET_OFFSETS).await;
    rig.clock.advance(CLAIM_RAN_OUT);
    rig.publish_one("a", "after").await;
    probe.has_effects(3).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_eq!(probe.notes().await, ["twice", "last", "after"]);
    assert_eq!(probe.calls(&message), 1);
}

pub(crate) async fn a_message_that_keeps_failing_is_set_aside_and_the_group_moves_on(rig: &Rig) {
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
    assert_eq!(probe.notes().await, ["good"], "failures leave nothing behind");
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

pub(crate) async fn a_failure_that_passes_is_retried_and_applied_in_order(rig: &Rig) {
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

pub(crate) async fn groups_do_not_disturb_each_other(rig: &Rig) {
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

pub(crate) async fn a_restart_goes_on_where_the_last_process_stopped(rig: &Rig) {
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

pub(crate) async fn a_crash_at_any_point_loses_nothing_and_doubles_nothing(rig: &Rig) {
    const ROUNDS: usize = 5;
    const EACH: usize = 40;
    let mut probe = rig.group();
    for round in 0..ROUNDS {
        probe = probe.elsewhere(rig);
        let tasks = rig.start(&[&probe]);
        let messages: Vec<Message> =
            (round * EACH..(round + 1) * EACH).map(|n| rig.message("key-0", &n.to_string())).collect();
        rig.publish(&messages).await;
        // Part of the way through this round's messages.
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

pub(crate) async fn a_crash_while_a_message_is_being_tried_loses_nothing(rig: &Rig) {
    let first = rig.group().that(|message, _| if noted(message, "1") { retry("not yet") } else { Ok(()) });
    let patient = Limits { retries: [LIMIT; 3], ..rig.limits.clone() };
    let tasks = rig.start_with(&rig.bus_with(patient), &[&first]);
    let messages = ["0", "1", "2"].map(|note| rig.message("key-0", note));
    rig.publish(&messages).await;
    // The first is applied, the second waits for its next try.
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
    // As long as it takes until both have had some of the work.
    let mut rounds = 0_usize;
    until(SOON, async || {
        publish_round(rig, KEYS, rounds).await;
        rounds += 1;
        one.has_effects(rounds * KEYS).await;
        one.has_worked() && other.has_worked()
    })
    .await;
    // One leaves in the middle; the other takes the rest.
    publish_round(rig, KEYS, rounds).await;
    first.shutdown(SOON).await.unwrap();
    publish_round(rig, KEYS, rounds + 1).await;
    other.has_effects((rounds + 2) * KEYS).await;
    second.shutdown(SOON).await.unwrap();
    assert_once_and_in_order(&other, KEYS, (rounds + 2) * KEYS).await;
}

/// One note of each key, with the round as its number.
async fn publish_round(rig: &Rig, keys: usize, round: usize) {
    let messages: Vec<Message> =
        (0..keys).map(|key| rig.message(&format!("key-{key}"), &round.to_string())).collect();
    rig.publish(&messages).await;
}

pub(crate) async fn a_dead_letter_can_be_delivered_after_all(rig: &Rig) {
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
    assert_eq!(probe.dead_letters().await.len(), 1, "a letter that fails again stays");

    repaired.store(true, Ordering::SeqCst);
    admin::republish(&consumer, message.id, &rig.clock).await.unwrap();
    let gone = admin::republish(&consumer, message.id, &rig.clock).await.unwrap_err();
    assert!(matches!(gone, RepublishError::NoSuchLetter { .. }), "{gone:?}");
    tasks.shutdown(SOON).await.unwrap();
    assert_eq!(probe.notes().await, ["late"]);
    assert_eq!(other.notes().await, ["late"], "the other group did not hear it again");
    assert!(probe.dead_letters().await.is_empty());
}

pub(crate) async fn topics_that_a_group_did_not_ask_for_are_passed_over(rig: &Rig) {
    let probe = rig.group();
    let tasks = rig.start(&[&probe]);
    let foreign = Message { topic: format!("{}-other", rig.topic), ..rig.message("a", "foreign") };
    rig.publish(&[foreign, rig.message("a", "ours")]).await;
    probe.has_effects(1).await;
    until(SOON, async || backlog(rig).await == 0).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_eq!(probe.notes().await, ["ours"]);
}

pub(crate) async fn a_database_that_is_away_is_waited_for(rig: &Rig) {
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
    // Time enough to give up on the message ten times over.
    tokio::time::sleep(rig.limits.retries.iter().sum::<Duration>() * 10).await;
    assert!(probe.dead_letters().await.is_empty());
    proxy.restore().await;
    probe.has_effects(2).await;
    tasks.shutdown(SOON).await.unwrap();
    assert_eq!(probe.notes().await, ["before", "meanwhile"]);
    assert!(probe.dead_letters().await.is_empty());
}

pub(crate) async fn a_database_that_answers_and_cannot_write_is_waited_for(rig: &Rig) {
    let hasty = rig.group_in(rig.hasty_ledger());
    let probe = hasty.elsewhere(rig);
    // Too large for what is left on the disk.
    let note = "x".repeat(50_000);
    let message = rig.publish_one("a", &note).await;
    // A full SQLite has no room for a letter either, so that not even an hour ends the waiting.
    let (mut tasks, mut is_later) = (None, rig.postgres_address().is_some());
    rig.while_nothing_is_written(async || {
        tasks.get_or_insert_with(|| rig.start(&[&hasty]));
        if !is_later && hasty.calls(&message) > 8 {
            rig.clock.advance(rig.limits.unwilling);
            is_later = true;
        }
        // Its own failures would be forgiven four times.
        hasty.calls(&message) > 16
    })
    .await;
    probe.has_effects(1).await;
    tasks.unwrap().shutdown(SOON).await.unwrap();
    assert_eq!(probe.notes().await, [note]);
    assert!(probe.dead_letters().await.is_empty());
}

pub(crate) async fn a_message_that_a_willing_database_refuses_for_an_hour_is_set_aside(rig: &Rig) {
    // A full SQLite has no room for the letter either.
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

pub(crate) async fn a_letter_that_cannot_be_kept_does_not_stop_its_group(rig: &Rig) {
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

pub(crate) async fn a_commit_is_heard_of_long_before_the_next_poll(rig: &Rig) {
    // Other tests' open transactions hold the log of a PostgreSQL server back, and only a poll finds what they held.
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
        // It is marked, so whoever reads the outbox has nothing left to do and waits.
        until(SOON, async || backlog(rig).await == 0).await;
    }
    tasks.shutdown(SOON).await.unwrap();
}

pub(crate) async fn backlog(rig: &Rig) -> u32 {
    let all = admin::backlog(&[rig.source()]).await.unwrap();
    assert_eq!(all.len(), 1);
    all[0].1.waiting
}
