//! Notices of admissions in an SQS FIFO queue: sent in the background, read by the role `notices`.
//!
//! A notice is `{"action":"admitted","eventId","userId","slotId","timestamp"}`. The message group
//! is the event, so readers receive the admissions of one event in order. The deduplication id is
//! user, event and slot: SQS accepts a notice once, even if several processes send it, and accepts
//! the next one of a user who left and was admitted again. It has no token, because only the user
//! may have that.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::{
    sync::mpsc::{Receiver, Sender, channel, error::TrySendError},
    time::timeout,
};
use urr_aws::{MAX_BATCH, Note, Queue, Received};
use urr_jobs::{Backoff, Tasks};
use urr_kernel::{Clock, EventId, Timestamp, UserId};
use urr_queue::{Admitted, Notices};
use uuid::Uuid;

/// Maximum number of unsent notices: two megabytes at about 200 bytes each. More are dropped and
/// counted.
const WAITING: usize = 10_000;

/// Time to send the remaining notices at shutdown.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Duration of a long poll on an empty queue. Shutdown interrupts it.
const LONG_POLL: Duration = Duration::from_secs(20);

/// An undecodable notice is deleted after this many deliveries, unless the queue moved it to its
/// dead-letter queue before: it would block its message group forever.
const MAX_TRIES: u32 = 5;

/// The body of a notice.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    action: String,
    event_id: EventId,
    user_id: UserId,
    slot_id: Uuid,
    /// Milliseconds since 1970.
    timestamp: i64,
}

const ADMITTED: &str = "admitted";

fn count(outcome: &'static str, notices: usize) {
    let notices = u64::try_from(notices).unwrap_or(u64::MAX);
    metrics::counter!("urr_queue_notices_total", "outcome" => outcome).increment(notices);
}

/// Sends notices in the background.
pub(crate) struct Outgoing(Sender<Admitted>);

impl Outgoing {
    /// Starts the sending task.
    pub(crate) fn start(queue: Queue, tasks: &Tasks) -> Self {
        let (sender, receiver) = channel(WAITING);
        tasks.spawn("queue.notices", send(queue, receiver, tasks.clone()));
        Self(sender)
    }
}

impl Notices for Outgoing {
    fn admitted(&self, admitted: Admitted) {
        match self.0.try_send(admitted) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => count("dropped", 1),
        }
    }
}

/// Sends notices in batches of ten until shutdown, then the remaining ones within [`LAST_WORDS`].
async fn send(queue: Queue, mut waiting: Receiver<Admitted>, tasks: Tasks) {
    let stop = tasks.token();
    let mut batch = Vec::with_capacity(MAX_BATCH);
    loop {
        let taken = stop.run_until_cancelled(waiting.recv_many(&mut batch, MAX_BATCH)).await;
        match taken {
            Some(0) => return,
            Some(_) => send_batch(&queue, &mut batch).await,
            None => break,
        }
    }
    waiting.close();
    let rest = async {
        while waiting.recv_many(&mut batch, MAX_BATCH).await > 0 {
            send_batch(&queue, &mut batch).await;
        }
    };
    if timeout(LAST_WORDS, rest).await.is_err() {
        count("dropped", waiting.len());
    }
}

/// Sends a batch, or counts it as failed. No further attempt: the client has retried, and later
/// notices are waiting.
async fn send_batch(queue: &Queue, batch: &mut Vec<Admitted>) {
    let notes: Vec<Note> = batch.drain(..).map(note).collect();
    let all = notes.len();
    match queue.send(notes).await {
        Ok(refused) => {
            count("sent", all - refused.len());
            count("failed", refused.len());
        }
        Err(error) => {
            count("failed", all);
            tracing::debug!(
                error = urr_telemetry::chain(&error),
                notices = all,
                "sqs: admission notices were not sent and are dropped"
            );
        }
    }
}

fn note(admitted: Admitted) -> Note {
    let Admitted { event, user, slot, at } = admitted;
    let body = Body {
        action: ADMITTED.to_owned(),
        event_id: event,
        user_id: user,
        slot_id: slot,
        timestamp: at.as_micros() / 1_000,
    };
    let body = serde_json::to_string(&body).expect("strings and numbers serialise");
    Note { group: event.to_string(), name: format!("{user}:{event}:{slot}"), body }
}

/// Reads notices until shutdown. Each is passed to `effect` and then deleted. SQS delivers a notice
/// that was not deleted again.
pub(crate) async fn read(queue: Queue, tasks: Tasks, clock: Clock, effect: impl Fn(&Admitted, u32)) {
    let stop = tasks.token();
    let mut failures = 0;
    while !stop.is_cancelled() {
        let Some(received) = stop.run_until_cancelled(queue.receive(LONG_POLL)).await else { return };
        let outcome = match received {
            Ok(notes) => {
                let done: Vec<Received> = notes.into_iter().filter(|note| take(note, &effect)).collect();
                queue.delete(&done).await.map(drop)
            }
            Err(error) => Err(error),
        };
        let Err(error) = outcome else {
            failures = 0;
            continue;
        };
        failures += 1;
        tracing::warn!(
            error = urr_telemetry::chain(&error),
            failures,
            "sqs: cannot read admission notices; retrying with growing pauses"
        );
        let pause = tokio::time::sleep(Backoff::STORE.delay(failures, clock.ticks()));
        if stop.run_until_cancelled(pause).await.is_none() {
            return;
        }
    }
}

/// The effect of a notice here: a log line. Other readers can use it as a starting point.
pub(crate) fn log(admitted: &Admitted, times: u32) {
    let Admitted { event, user, slot, at } = admitted;
    tracing::info!(%event, %user, %slot, %at, times, "user admitted");
}

/// Handles a notice. Returns `false` if it should be delivered again.
fn take(note: &Received, effect: impl Fn(&Admitted, u32)) -> bool {
    if let Ok(Body { event_id: event, user_id: user, slot_id: slot, timestamp, .. }) = admission(&note.body) {
        let at = Timestamp::from_micros(timestamp.saturating_mul(1_000));
        effect(&Admitted { event, user, slot, at }, note.times);
        count("read", 1);
        return true;
    }
    if let Ok(Other { action }) = serde_json::from_str(&note.body)
        && action != ADMITTED
    {
        count("unknown", 1);
        tracing::warn!(action, "sqs: a notice with an unknown action was deleted");
        return true;
    }
    let given_up = note.times >= MAX_TRIES;
    count(if given_up { "given_up" } else { "unreadable" }, 1);
    tracing::warn!(
        times = note.times,
        given_up,
        "sqs: cannot decode a notice; it is delivered again unless given up"
    );
    given_up
}

fn admission(text: &str) -> Result<Body, serde_json::Error> {
    let body: Body = serde_json::from_str(text)?;
    if body.action == ADMITTED { Ok(body) } else { Err(serde::de::Error::custom("not an admission")) }
}

/// A notice of any kind.
#[derive(Deserialize)]
struct Other {
    action: String,
}

#[cfg(test)]
mod tests;
