//! Notices with a local substitute of SQS, and with an unreachable server.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use urr_aws::AwsConfig;
use urr_kernel::Ids;
use urr_telemetry::Metrics;
use urr_testkit::{free_port, services, until};

use super::*;

/// Far more than any test takes.
const LIMIT: Duration = Duration::from_mins(1);

fn admissions(ids: &Ids, clock: &Clock, events: &[EventId], each: usize) -> Vec<Admitted> {
    let all = (0..each).flat_map(|_| events);
    // A notice has milliseconds.
    let at = Timestamp::from_micros(clock.now().as_micros() / 1_000 * 1_000);
    all.map(|event| Admitted { event: *event, user: ids.next(), slot: ids.next(), at }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_admission_is_delivered_once_in_order_and_deleted() {
    let Some(endpoint) = services::sqs() else { return };
    let clock = Clock::system();
    let ids = Ids::random(clock.clone());
    let config = AwsConfig { deadline: Duration::from_secs(20), ..AwsConfig::local(endpoint) };
    let name = format!("test-{}.fifo", ids.next::<Uuid>());
    let url = Queue::create(config.clone(), &name, clock.clone()).await.unwrap();
    let queue = Queue::connect(config, url, clock.clone()).unwrap();

    let events: [EventId; 2] = [ids.next(), ids.next()];
    let sent = admissions(&ids, &clock, &events, 12);
    let sending = Tasks::new();
    let notices = Outgoing::start(queue.clone(), &sending);
    for admitted in sent.iter().chain(&sent[..5]) {
        notices.admitted(*admitted);
    }
    // Shutdown sends everything that was accepted.
    sending.shutdown(LIMIT).await.unwrap();

    let received: Arc<Mutex<Vec<Admitted>>> = Arc::default();
    let (reading, effect) = (Tasks::new(), Arc::clone(&received));
    let reader = read(queue.clone(), reading.clone(), clock, move |admitted, _| {
        effect.lock().unwrap().push(*admitted);
    });
    reading.spawn("test.read", reader);
    until(LIMIT, async || received.lock().unwrap().len() >= sent.len()).await;
    until(LIMIT, async || queue.depth().await == Ok(0)).await;
    // Shutdown interrupts the long poll of twenty seconds.
    reading.shutdown(Duration::from_secs(5)).await.unwrap();
    let received = received.lock().unwrap();
    for event in events {
        let of = |all: &[Admitted]| -> Vec<Admitted> {
            all.iter().filter(|admitted| admitted.event == event).copied().collect()
        };
        assert_eq!(of(&received), of(&sent));
    }
}

/// The number of dropped notices so far. No other test here drops any.
fn dropped(metrics: &Metrics) -> usize {
    let text = metrics.render();
    let line =
        text.lines().find_map(|line| line.strip_prefix(r#"urr_queue_notices_total{outcome="dropped"} "#));
    line.map_or(0, |count| count.parse().unwrap())
}

/// On one thread: nothing is sent before the first await, so the counts are exact.
#[tokio::test]
async fn an_unreachable_sqs_delays_neither_admissions_nor_shutdown() {
    let metrics = Metrics::install();
    let before = dropped(&metrics);
    let clock = Clock::system();
    let ids = Ids::random(clock.clone());
    let config = AwsConfig::local(format!("http://127.0.0.1:{}", free_port()));
    let queue = Queue::connect(config, "http://127.0.0.1/queue.fifo", clock.clone()).unwrap();
    let tasks = Tasks::new();
    let notices = Outgoing::start(queue, &tasks);
    let event = ids.next();
    for admitted in admissions(&ids, &clock, &[event], 3 * WAITING) {
        // Not async, so an admission cannot wait for it.
        notices.admitted(admitted);
    }
    assert_eq!(dropped(&metrics) - before, 2 * WAITING, "notices beyond the limit are dropped and counted");
    tasks.shutdown(LAST_WORDS + Duration::from_secs(10)).await.unwrap();
}

#[test]
fn an_undecodable_notice_is_retried_and_an_unknown_action_is_deleted() {
    let note = |body: &str, times| Received { body: body.to_owned(), receipt: String::new(), times };
    let no_effect = |_: &Admitted, _| panic!("there was no admission");
    assert!(take(&note(r#"{"action":"seat_reserve","seatIds":[]}"#, 1), no_effect));
    for body in ["", "{}", r#"{"action":"admitted"}"#, r#"{"action":"admitted","eventId":"x"}"#] {
        assert!(!take(&note(body, 1), no_effect), "{body}");
        assert!(take(&note(body, MAX_TRIES), no_effect), "{body}");
    }
}

#[test]
fn the_json_of_a_notice_is_as_documented() {
    let id = |number| Uuid::from_u128(number);
    let (event, user) = (EventId::from_uuid(id(1)), UserId::from_uuid(id(2)));
    let at = Timestamp::from_micros(1_707_948_000_000_000);
    let Note { group, name, body } = note(Admitted { event, user, slot: id(3), at });
    assert_eq!(group, event.to_string());
    assert_eq!(name, format!("{user}:{event}:{}", id(3)));
    assert!(name.len() <= 128, "SQS limits deduplication ids to 128 characters");
    let expected = format!(
        r#"{{"action":"admitted","eventId":"{event}","userId":"{user}","slotId":"{}","timestamp":1707948000000}}"#,
        id(3)
    );
    assert_eq!(body, expected);
    assert!(take(&Received { body, receipt: String::new(), times: 1 }, |admitted, _| assert_eq!(
        admitted.at,
        at
    )));
}
