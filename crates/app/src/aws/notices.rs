//! Notices of admissions in a FIFO queue of SQS: sent without anybody waiting for it, and read by the role `notices`.
//!
//! A notice is `{"action":"admitted","eventId","userId","slotId","timestamp"}`. Its group is the event, so that those who read it hear of one
//! event's admissions in order; its name is user, event and slot, so that SQS takes it once however many processes send it, and takes
//! the next one of somebody who left and came in again. It carries no token: what opens a sale is for its owner alone.

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

/// Notices that wait to be sent, of a few hundred bytes each: two megabytes. More are dropped and counted.
const WAITING: usize = 10_000;

/// What is still to be sent when the process stops may take this long.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long one question to an empty queue waits. The process stops without waiting for it.
const LONG_POLL: Duration = Duration::from_secs(20);

/// A notice that nobody understands is given up after so many tries, if the queue has not moved it away by then: it would hold up its
/// group for ever.
const MAX_TRIES: u32 = 5;

/// What is in a notice.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    action: String,
    event_id: EventId,
    user_id: UserId,
    slot_id: Uuid,
    /// In milliseconds since 1970.
    timestamp: i64,
}

const ADMITTED: &str = "admitted";

fn count(outcome: &'static str, notices: usize) {
    let notices = u64::try_from(notices).unwrap_or(u64::MAX);
    metrics::counter!("urr_queue_notices_total", "outcome" => outcome).increment(notices);
}

/// Sends notices.
pub(crate) struct Outgoing(Sender<Admitted>);

impl Outgoing {
    /// Starts the task that sends.
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

/// Sends what there is, ten at a time, until the process stops; then what is left, for a moment.
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

/// Sends them, or counts them as lost: the connection has tried more than once, and those behind them are waiting.
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
            tracing::debug!(error = urr_telemetry::chain(&error), notices = all, "notices were not sent");
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
    let body = serde_json::to_string(&body).expect("words and numbers are JSON");
    Note { group: event.to_string(), name: format!("{user}:{event}:{slot}"), body }
}

/// Reads notices until the process stops. Each is handed to `effect`, then deleted; what is not deleted comes again.
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
        tracing::warn!(error = urr_telemetry::chain(&error), failures, "notices cannot be read");
        let pause = tokio::time::sleep(Backoff::STORE.delay(failures, clock.ticks()));
        if stop.run_until_cancelled(pause).await.is_none() {
            return;
        }
    }
}

/// What comes of an admission in this product: a line in the log. It is there for those who follow one, and as what to begin with.
pub(crate) fn log(admitted: &Admitted, times: u32) {
    let Admitted { event, user, slot, at } = admitted;
    tracing::info!(%event, %user, %slot, %at, times, "somebody was admitted");
}

/// What comes of a notice. False if it is to come again.
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
        tracing::warn!(action, "a notice of something else is left aside");
        return true;
    }
    let given_up = note.times >= MAX_TRIES;
    count(if given_up { "given_up" } else { "unreadable" }, 1);
    tracing::warn!(times = note.times, given_up, "a notice cannot be read");
    given_up
}

fn admission(text: &str) -> Result<Body, serde_json::Error> {
    let body: Body = serde_json::from_str(text)?;
    if body.action == ADMITTED { Ok(body) } else { Err(serde::de::Error::custom("it is no admission")) }
}

/// A notice of whatever kind.
#[derive(Deserialize)]
struct Other {
    action: String,
}

#[cfg(test)]
mod tests;
