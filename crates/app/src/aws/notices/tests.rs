//! Against a server that stands in for SQS, and against none.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use urr_aws::AwsConfig;
use urr_kernel::Ids;
use urr_telemetry::Metrics;
use urr_testkit::{free_port, services, until};

use super::*;

/// Far more than any story takes.
const LIMIT: Duration = Duration::from_mins(1);

fn admissions(ids: &Ids, clock: &Clock, events: &[EventId], each: usize) -> Vec<Admitted> {
    let all = (0..each).flat_map(|_| events);
    // Milliseconds are what a notice tells.
    let at = Timestamp::from_micros(clock.now().as_micros() / 1_000 * 1_000);
    all.map(|event| Admitted { event: *event, user: ids.next(), slot: ids.next(), at }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_who_comes_in_is_told_of_once_in_order_and_then_gone() {
    let Some(endpoint) = services::sqs() else { return };
    let clock = Clock::system();
    let ids = Ids::random(clock.clone());
    let config = AwsConfig { deadline: Duration::from_secs(20), ..AwsConfig::local(endpoint) };
    let name = format!("test-{}.fifo", ids.next::<Uuid>());
    let url = Queue::create(config.clone(), &name, clock.clone()).await.unwrap();
    let queue = Queue::connect(config, url, clock.clone()).unwrap();

    let events: [EventId; 2] = [ids.next(), ids.next()];
    let told = admissions(&ids, &clock, &events, 12);
    let sending = Tasks::new();
    let notices = Outgoing::start(queue.clone(), &sending);
    for admitted in told.iter().chain(&told[..5]) {
        notices.admitted(*admitted);
    }
    // Nothing that was taken is left behind when the process stops.
    sending.shutdown(LIMIT).await.unwrap();

    let heard: Arc<Mutex<Vec<Admitted>>> = Arc::default();
    let (reading, effect) = (Tasks::new(), Arc::clone(&heard));
    let reader = read(queue.clone(), reading.clone(), clock, move |admitted, _| {
        effect.lock().unwrap().push(*admitted);
    });
    reading.spawn("test.read", reader);
    until(LIMIT, async || heard.lock().unwrap().len() >= told.len()).await;
    until(LIMIT, async || queue.depth().await == Ok(0)).await;
    // It waits for twenty seconds for the next one, and yet it stops.
    reading.shutdown(Duration::from_secs(5)).await.unwrap();
    let heard = heard.lock().unwrap();
    for event in events {
        let of = |all: &[Admitted]| -> Vec<Admitted> {
            all.iter().filter(|admitted| admitted.event == event).copied().collect()
        };
        assert_eq!(of(&heard), of(&told));
    }
}

/// How many notices were dropped so far. No other test here drops any.
fn dropped(metrics: &Metrics) -> usize {
    let text = metrics.render();
    let line =
        text.lines().find_map(|line| line.strip_prefix(r#"urr_queue_notices_total{outcome="dropped"} "#));
    line.map_or(0, |count| count.parse().unwrap())
}

/// On one thread, so that nothing is taken from the queue before the first await and the numbers are exact.
#[tokio::test]
async fn while_nobody_takes_notices_admissions_do_not_wait_and_stopping_does_not_either() {
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
        // No await: whatever becomes of it, the admission goes on.
        notices.admitted(admitted);
    }
    assert_eq!(
        dropped(&metrics) - before,
        2 * WAITING,
        "what waits has a limit, and whatever is beyond it is counted"
    );
    tasks.shutdown(LAST_WORDS + Duration::from_secs(10)).await.unwrap();
}

#[test]
fn what_nobody_understands_comes_again_a_few_times_and_something_else_is_left_aside() {
    let note = |body: &str, times| Received { body: body.to_owned(), receipt: String::new(), times };
    let nobody = |_: &Admitted, _| panic!("nobody was admitted");
    assert!(take(&note(r#"{"action":"seat_reserve","seatIds":[]}"#, 1), nobody));
    for body in ["", "{}", r#"{"action":"admitted"}"#, r#"{"action":"admitted","eventId":"x"}"#] {
        assert!(!take(&note(body, 1), nobody), "{body}");
        assert!(take(&note(body, MAX_TRIES), nobody), "{body}");
    }
}

#[test]
fn a_notice_has_the_names_that_its_readers_know() {
    let id = |number| Uuid::from_u128(number);
    let (event, user) = (EventId::from_uuid(id(1)), UserId::from_uuid(id(2)));
    let at = Timestamp::from_micros(1_707_948_000_000_000);
    let Note { group, name, body } = note(Admitted { event, user, slot: id(3), at });
    assert_eq!(group, event.to_string());
    assert_eq!(name, format!("{user}:{event}:{}", id(3)));
    assert!(name.len() <= 128, "SQS takes no longer ones");
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
