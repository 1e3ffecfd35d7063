//! One lane per partition: a task that processes it in order.
//!
//! The group's loop only polls, so a slow consumer is not taken for a dead member. Each lane reads
//! its own queue (`queues.rs`). If the lane is slow, the queue fills and librdkafka stops fetching.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rdkafka::{
    ClientContext, TopicPartitionList,
    config::RDKafkaLogLevel,
    consumer::{BaseConsumer, ConsumerContext, Rebalance, StreamConsumer},
    error::KafkaError,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{config::Quiet, queues::Queues};

/// Topic and partition.
pub(super) type Partition = (String, i32);

/// The partitions assigned to this member. Changed by rebalances, used by the group's loop.
#[derive(Default)]
pub(super) struct Lanes {
    state: Mutex<State>,
    /// Notified when partitions wait for a lane.
    pub(super) given: Notify,
    /// Cancelled when a lane ended without being stopped: a bug.
    pub(super) broken: CancellationToken,
}

#[derive(Default)]
struct State {
    waiting: Vec<Partition>,
    lanes: HashMap<Partition, LaneHandle>,
}

struct LaneHandle {
    permit: Arc<LanePermit>,
    ended: CancellationToken,
}

/// A lane's permission to take records from its partition's queue.
pub(super) struct LanePermit {
    pub(super) stop: CancellationToken,
    /// Locked while a record is taken and while the turn ends. A record taken after the end could
    /// belong to the partition's next lane, which would miss it.
    taking: Mutex<()>,
}

impl LanePermit {
    fn new(stop: CancellationToken) -> Self {
        Self { stop, taking: Mutex::new(()) }
    }

    /// Runs `take` unless the turn has ended. Must not block: ending the turn waits for it.
    pub(super) fn take<T>(&self, take: impl FnOnce() -> T) -> Option<T> {
        let _taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.stop.is_cancelled()).then(take)
    }

    fn end(&self) {
        let _taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        self.stop.cancel();
    }
}

/// Everything a new lane needs.
pub(super) struct Beginning {
    pub(super) partition: Partition,
    pub(super) permit: Arc<LanePermit>,
    /// Cancelled when the partition's previous lane has ended. A queue must not have two readers.
    pub(super) previous: Option<CancellationToken>,
    /// Signals the end of the lane, including a panic.
    pub(super) ending: Ending,
}

/// Dropped when a lane ends.
pub(super) struct Ending {
    stop: CancellationToken,
    ended: CancellationToken,
    broken: CancellationToken,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if !self.stop.is_cancelled() {
            self.broken.cancel();
        }
        self.ended.cancel();
    }
}

impl Lanes {
    /// Creates a lane for each waiting partition. All stop with the process.
    pub(super) fn begin(&self, stopping: &CancellationToken) -> Vec<Beginning> {
        let mut state = self.lock();
        let waiting = std::mem::take(&mut state.waiting);
        let begin = |partition: Partition| {
            let (permit, ended) =
                (Arc::new(LanePermit::new(stopping.child_token())), CancellationToken::new());
            let lane = LaneHandle { permit: Arc::clone(&permit), ended: ended.clone() };
            let previous = state.lanes.insert(partition.clone(), lane).map(|lane| lane.ended);
            let ending = Ending { stop: permit.stop.clone(), ended, broken: self.broken.clone() };
            Beginning { partition, permit, previous, ending }
        };
        waiting.into_iter().map(begin).collect()
    }

    /// Ends every lane.
    pub(super) fn close(&self) {
        for lane in self.lock().lanes.values() {
            lane.permit.end();
        }
    }

    fn give(&self, partitions: &TopicPartitionList) {
        self.lock().waiting.extend(names(partitions));
        self.given.notify_one();
    }

    /// Stops the lanes of revoked partitions, after their current transaction. If the new owner
    /// gets the same message, the inbox lets only one of them apply it.
    fn revoke(&self, partitions: &TopicPartitionList) {
        let mut state = self.lock();
        for partition in names(partitions) {
            state.waiting.retain(|waiting| *waiting != partition);
            if let Some(lane) = state.lanes.get(&partition) {
                lane.permit.end();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn names(partitions: &TopicPartitionList) -> impl Iterator<Item = Partition> {
    partitions.elements().into_iter().map(|one| (one.topic().to_owned(), one.partition()))
}

pub(super) type GroupConsumer = StreamConsumer<Rebalances>;

/// Rebalance callbacks, which run inside the group's poll.
pub(super) struct Rebalances {
    pub(super) group: &'static str,
    pub(super) lanes: Arc<Lanes>,
    pub(super) queues: Arc<Queues>,
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
        match rebalance {
            Rebalance::Assign(partitions) => {
                // Before the assignment, so that no record is fetched yet.
                if !self.queues.split(partitions) {
                    tracing::error!(
                        group = self.group,
                        "could not split the queues of assigned Kafka partitions: the client is replaced \
                         and they are assigned again"
                    );
                    self.lanes.broken.cancel();
                }
            }
            Rebalance::Revoke(partitions) => {
                let count = partitions.count();
                tracing::debug!(group = self.group, partitions = count, "partitions revoked");
                self.lanes.revoke(partitions);
            }
            Rebalance::Error(_) => {}
        }
    }

    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(partitions) = rebalance {
            tracing::debug!(group = self.group, partitions = partitions.count(), "partitions assigned");
            self.lanes.give(partitions);
        }
    }

    /// Result of an asynchronous commit. A lost commit causes redeliveries after a restart; one
    /// refused because the partition was reassigned is harmless.
    fn commit_callback(&self, result: Result<(), KafkaError>, _: &TopicPartitionList) {
        let Err(error) = result else { return };
        metrics::counter!("urr_bus_uncommitted_total", "group" => self.group).increment(1);
        tracing::debug!(group = self.group, %error, "offset not committed; messages may be delivered again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions(numbers: &[i32]) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for number in numbers {
            list.add_partition("events", *number);
        }
        list
    }

    #[test]
    fn a_reassigned_partition_waits_for_its_previous_lane() {
        let (lanes, stopping) = (Lanes::default(), CancellationToken::new());
        lanes.give(&partitions(&[0, 1]));
        let mut first = lanes.begin(&stopping);
        assert!(first.iter().all(|beginning| beginning.previous.is_none()));
        assert!(lanes.begin(&stopping).is_empty(), "each partition has one lane");

        lanes.revoke(&partitions(&[0]));
        assert_eq!(first[0].permit.take(|| "a record"), None, "the turn has ended");
        assert_eq!(first[1].permit.take(|| "a record"), Some("a record"));
        lanes.give(&partitions(&[0]));
        let second = lanes.begin(&stopping).remove(0);
        let previous = second.previous.unwrap();
        assert!(!previous.is_cancelled());
        drop(first.remove(0));
        assert!(previous.is_cancelled());
        assert!(!lanes.broken.is_cancelled(), "the lane was stopped");
    }

    #[test]
    fn a_partition_revoked_before_its_lane_started_gets_none() {
        let (lanes, stopping) = (Lanes::default(), CancellationToken::new());
        lanes.give(&partitions(&[0, 1]));
        lanes.revoke(&partitions(&[1]));
        let begun = lanes.begin(&stopping);
        assert_eq!(begun.len(), 1);
        assert_eq!(begun[0].partition, ("events".to_owned(), 0));
        stopping.cancel();
        assert!(begun[0].permit.stop.is_cancelled(), "a lane ends with the process");
    }

    #[test]
    fn a_lane_that_ends_unexpectedly_is_reported() {
        let (lanes, stopping) = (Lanes::default(), CancellationToken::new());
        lanes.give(&partitions(&[0]));
        drop(lanes.begin(&stopping));
        assert!(lanes.broken.is_cancelled());
    }
}
