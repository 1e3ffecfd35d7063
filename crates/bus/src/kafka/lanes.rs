//! One lane per partition: a task that works it in order, at its own pace.
//!
//! The group's loop does nothing but poll, so the broker never takes a slow handler for a dead member. Each lane reads
//! its partition from a queue of its own (`queues.rs`); when the lane is slow the queue fills, and the library stops
//! fetching.

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

/// The partitions that belong to this member. Changed by rebalances, acted upon by the group's loop.
#[derive(Default)]
pub(super) struct Lanes {
    state: Mutex<State>,
    /// There are partitions without a lane.
    pub(super) given: Notify,
    /// A lane ended though nobody told it to, which only a bug can make it do.
    pub(super) broken: CancellationToken,
}

#[derive(Default)]
struct State {
    waiting: Vec<Partition>,
    lanes: HashMap<Partition, Lane>,
}

struct Lane {
    turn: Arc<Turn>,
    ended: CancellationToken,
}

/// A lane's right to take records of its partition out of the queue.
pub(super) struct Turn {
    pub(super) stop: CancellationToken,
    /// Held while a record is taken and while the turn is ended. A record taken a moment later could be one of the
    /// partition's next turn, whose lane would wait for it in vain.
    taking: Mutex<()>,
}

impl Turn {
    fn new(stop: CancellationToken) -> Self {
        Self { stop, taking: Mutex::new(()) }
    }

    /// Takes something if the turn goes on. Must not block: whoever ends the turn waits.
    pub(super) fn take<T>(&self, take: impl FnOnce() -> T) -> Option<T> {
        let _taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.stop.is_cancelled()).then(take)
    }

    fn end(&self) {
        let _taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        self.stop.cancel();
    }
}

/// What a lane is given when it begins.
pub(super) struct Beginning {
    pub(super) partition: Partition,
    pub(super) turn: Arc<Turn>,
    /// The partition's earlier lane, from before it was taken away. A queue cannot have two readers.
    pub(super) previous: Option<CancellationToken>,
    /// Tells the world when the lane is gone, however it went.
    pub(super) ending: Ending,
}

/// Held by a lane until its very end.
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
    /// Begins a lane for each partition that has none; each stops with the process at the latest.
    pub(super) fn begin(&self, stopping: &CancellationToken) -> Vec<Beginning> {
        let mut state = self.lock();
        let waiting = std::mem::take(&mut state.waiting);
        let begin = |partition: Partition| {
            let (turn, ended) = (Arc::new(Turn::new(stopping.child_token())), CancellationToken::new());
            let lane = Lane { turn: Arc::clone(&turn), ended: ended.clone() };
            let previous = state.lanes.insert(partition.clone(), lane).map(|lane| lane.ended);
            let ending = Ending { stop: turn.stop.clone(), ended, broken: self.broken.clone() };
            Beginning { partition, turn, previous, ending }
        };
        waiting.into_iter().map(begin).collect()
    }

    /// Ends every lane.
    pub(super) fn close(&self) {
        for lane in self.lock().lanes.values() {
            lane.turn.end();
        }
    }

    fn give(&self, partitions: &TopicPartitionList) {
        self.lock().waiting.extend(names(partitions));
        self.given.notify_one();
    }

    /// Ends the lanes of partitions that now belong to another member. A lane stops after the transaction it is in;
    /// should the new owner meet the same message, the inbox lets one of the two have its effect.
    fn revoke(&self, partitions: &TopicPartitionList) {
        let mut state = self.lock();
        for partition in names(partitions) {
            state.waiting.retain(|waiting| *waiting != partition);
            if let Some(lane) = state.lanes.get(&partition) {
                lane.turn.end();
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

/// Hears of partitions that come and go. The callbacks run inside the group's own poll.
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
                // Before the library has them, so that it does not fetch a record yet.
                if !self.queues.split(partitions) {
                    tracing::error!(group = self.group, "given partitions have no queues of their own");
                    self.lanes.broken.cancel();
                }
            }
            Rebalance::Revoke(partitions) => {
                let count = partitions.count();
                tracing::debug!(group = self.group, partitions = count, "partitions were taken away");
                self.lanes.revoke(partitions);
            }
            Rebalance::Error(_) => {}
        }
    }

    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(partitions) = rebalance {
            tracing::debug!(group = self.group, partitions = partitions.count(), "partitions were given");
            self.lanes.give(partitions);
        }
    }

    /// What a group's commit came to. One that is lost costs repeated deliveries after a restart; one that is refused because the
    /// partition has gone to another member is nobody's trouble.
    fn commit_callback(&self, result: Result<(), KafkaError>, _: &TopicPartitionList) {
        let Err(error) = result else { return };
        metrics::counter!("urr_bus_uncommitted_total", "group" => self.group).increment(1);
        tracing::debug!(group = self.group, %error, "an offset was not committed");
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
    fn a_partition_that_comes_back_waits_for_its_earlier_lane() {
        let (lanes, stopping) = (Lanes::default(), CancellationToken::new());
        lanes.give(&partitions(&[0, 1]));
        let mut first = lanes.begin(&stopping);
        assert!(first.iter().all(|beginning| beginning.previous.is_none()));
        assert!(lanes.begin(&stopping).is_empty(), "each partition has one lane");

        lanes.revoke(&partitions(&[0]));
        assert_eq!(first[0].turn.take(|| "a record"), None, "its turn is over");
        assert_eq!(first[1].turn.take(|| "a record"), Some("a record"));
        lanes.give(&partitions(&[0]));
        let second = lanes.begin(&stopping).remove(0);
        let previous = second.previous.unwrap();
        assert!(!previous.is_cancelled());
        drop(first.remove(0));
        assert!(previous.is_cancelled());
        assert!(!lanes.broken.is_cancelled(), "it was told to stop");
    }

    #[test]
    fn a_partition_taken_away_before_its_lane_began_gets_none() {
        let (lanes, stopping) = (Lanes::default(), CancellationToken::new());
        lanes.give(&partitions(&[0, 1]));
        lanes.revoke(&partitions(&[1]));
        let begun = lanes.begin(&stopping);
        assert_eq!(begun.len(), 1);
        assert_eq!(begun[0].partition, ("events".to_owned(), 0));
        stopping.cancel();
        assert!(begun[0].turn.stop.is_cancelled(), "a lane ends with the process");
    }

    #[test]
    fn a_lane_that_ends_by_itself_is_noticed() {
        let (lanes, stopping) = (Lanes::default(), CancellationToken::new());
        lanes.give(&partitions(&[0]));
        drop(lanes.begin(&stopping));
        assert!(lanes.broken.is_cancelled());
    }
}
