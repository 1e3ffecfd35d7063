//! One lane per partition: a bounded queue and a task that works it in order.
//!
//! The group's loop never waits for a lane. It keeps polling, so the broker never takes a slow handler for a dead
//! member; a partition whose lane is full is paused until there is room again.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rdkafka::{
    ClientContext, TopicPartitionList,
    config::RDKafkaLogLevel,
    consumer::{BaseConsumer, Consumer as _, ConsumerContext, Rebalance, StreamConsumer},
    error::KafkaError,
};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio_util::sync::CancellationToken;

use super::{config::Quiet, wire::Received};

/// Messages waiting in a lane. With payloads of at most 500 kB and 12 partitions per group this is 384 MB at the very
/// worst and some hundred kilobytes in practice, where payloads have a few hundred bytes.
pub(super) const LANE_MESSAGES: usize = 64;

pub(super) type Partition = (String, i32);

#[derive(Default)]
pub(super) struct Lanes(Mutex<HashMap<Partition, Lane>>);

struct Lane {
    queue: mpsc::Sender<Received>,
    /// What arrived between the queue filling up and the pause taking effect.
    held: VecDeque<Received>,
    stop: CancellationToken,
}

/// What [`Lanes::accept`] asks of its caller.
pub(super) enum Accepted {
    Queued,
    /// The lane is full: pause the partition.
    Full,
}

impl Lanes {
    /// Puts a record in its lane; `start` begins the work of a partition seen for the first time.
    pub(super) fn accept(
        &self,
        received: Received,
        start: impl FnOnce(&Partition, mpsc::Receiver<Received>) -> CancellationToken,
    ) -> Accepted {
        let partition = (received.place.topic.clone(), received.place.partition);
        let mut lanes = self.lock();
        let lane = lanes.entry(partition).or_insert_with_key(|partition| {
            let (queue, work) = mpsc::channel(LANE_MESSAGES);
            Lane { queue, held: VecDeque::new(), stop: start(partition, work) }
        });
        if !lane.held.is_empty() {
            lane.held.push_back(received);
            return Accepted::Queued;
        }
        match lane.queue.try_send(received) {
            Err(TrySendError::Full(received)) => {
                lane.held.push_back(received);
                Accepted::Full
            }
            // A closed lane is one that is stopping: whoever gets the partition next reads the record again.
            Ok(()) | Err(TrySendError::Closed(_)) => Accepted::Queued,
        }
    }

    /// Moves held records into lanes that have room, and names the partitions that may go on.
    pub(super) fn refill(&self) -> Vec<Partition> {
        let mut resumed = Vec::new();
        for (partition, lane) in &mut *self.lock() {
            if lane.held.is_empty() {
                continue;
            }
            while let Some(received) = lane.held.pop_front() {
                if let Err(TrySendError::Full(received)) = lane.queue.try_send(received) {
                    lane.held.push_front(received);
                    break;
                }
            }
            if lane.held.is_empty() {
                resumed.push(partition.clone());
            }
        }
        resumed
    }

    /// Ends the lanes of partitions that now belong to another member. A lane stops after the transaction it is in;
    /// should the new owner meet the same message, the inbox lets one of the two have its effect.
    fn revoke(&self, partitions: &TopicPartitionList) {
        let mut lanes = self.lock();
        for revoked in partitions.elements() {
            if let Some(lane) = lanes.remove(&(revoked.topic().to_owned(), revoked.partition())) {
                lane.stop.cancel();
            }
        }
    }

    /// Ends every lane.
    pub(super) fn close(&self) {
        for (_, lane) in self.lock().drain() {
            lane.stop.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Partition, Lane>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) type GroupConsumer = StreamConsumer<Rebalances>;

/// Hears of partitions that come and go. The callbacks run inside the group's own poll, so no record of a partition is
/// handed out between its revocation and the end of its lane.
pub(super) struct Rebalances {
    pub(super) group: &'static str,
    pub(super) lanes: std::sync::Arc<Lanes>,
}

impl ClientContext for Rebalances {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        Quiet.log(level, facility, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        Quiet.error(error, reason);
    }
}

impl ConsumerContext for Rebalances {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(partitions) = rebalance {
            tracing::debug!(
                group = self.group,
                partitions = partitions.count(),
                "partitions were taken away"
            );
            self.lanes.revoke(partitions);
        }
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(partitions) = rebalance {
            tracing::debug!(group = self.group, partitions = partitions.count(), "partitions were given");
            // A partition that was paused when it left may come back paused.
            if let Err(error) = consumer.resume(partitions) {
                tracing::warn!(group = self.group, %error, "given partitions could not be resumed");
            }
        }
    }
}
