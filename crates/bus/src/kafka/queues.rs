//! The queue of its own that each partition has.
//!
//! What the library fetches goes to the client's common queue unless the partition's queue has been split off. That is done
//! before the library is told that the partition is ours, and for as long as the client lives. Pausing a partition until
//! its lane is ready would do as well but for a race in the library (2.12): pausing and resuming take a number and then
//! a place in the line of what is to be done with the partition, its own start of fetching does the same on another
//! thread, and whichever comes second with the lower number is thrown away without a word: a partition that is
//! never read.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use rdkafka::{TopicPartitionList, consumer::stream_consumer::StreamPartitionQueue};

use super::lanes::{GroupConsumer, Partition, Rebalances, names};

pub(super) type Queue = StreamPartitionQueue<Rebalances>;

/// The queues of the partitions that this client has or had. One that comes back while its lane is at its last
/// transaction finds its queue here: of two handles of one, the first to be dropped silences the other.
#[derive(Default)]
pub(super) struct Queues {
    client: OnceLock<Weak<GroupConsumer>>,
    split: Mutex<HashMap<Partition, Arc<Queue>>>,
}

impl Queues {
    /// Splits off the queues of these partitions. `false` if that cannot be done.
    pub(super) fn split(&self, partitions: &TopicPartitionList) -> bool {
        let Some(client) = self.client.get().and_then(Weak::upgrade) else { return false };
        let mut split = self.lock();
        names(partitions).all(|partition| {
            // A handle that no lane has may be of a topic that was removed since and made anew, which has another queue.
            split.retain(|known, queue| *known != partition || Arc::strong_count(queue) > 1);
            match split.entry(partition) {
                Entry::Occupied(_) => true,
                Entry::Vacant(vacant) => {
                    let (topic, number) = vacant.key();
                    let queue = client.split_partition_queue(topic, *number);
                    queue.map(|queue| vacant.insert(Arc::new(queue))).is_some()
                }
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Partition, Arc<Queue>>> {
        self.split.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client's queues for as long as this lives. They keep their client alive and belong to it, so somebody has to let go.
pub(super) struct Split(Arc<Queues>);

impl Split {
    pub(super) fn new(client: &Arc<GroupConsumer>, queues: Arc<Queues>) -> Self {
        let known = queues.client.set(Arc::downgrade(client));
        debug_assert!(known.is_ok(), "queues belong to one client");
        Self(queues)
    }

    pub(super) fn of(&self, partition: &Partition) -> Option<Arc<Queue>> {
        self.0.lock().get(partition).cloned()
    }
}

impl Drop for Split {
    fn drop(&mut self) {
        // The last of them may end the client, which takes a while: not under the lock.
        let queues = std::mem::take(&mut *self.0.lock());
        drop(queues);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::config::KafkaConfig, super::lanes::Lanes, *};

    fn client(queues: &Arc<Queues>) -> Arc<GroupConsumer> {
        let context =
            Rebalances { group: "group", lanes: Arc::new(Lanes::default()), queues: Arc::clone(queues) };
        // Nobody listens there, and nobody is asked.
        let config = KafkaConfig::new("127.0.0.1:1").consumer("group");
        Arc::new(config.create_with_context(context).unwrap())
    }

    #[tokio::test]
    async fn a_partition_that_comes_back_finds_its_queue_and_none_keeps_the_client_alive() {
        let queues = Arc::new(Queues::default());
        let mut partitions = TopicPartitionList::new();
        partitions.add_partition("events", 0);
        assert!(!queues.split(&partitions), "there is no client yet");

        let client = client(&queues);
        let split = Split::new(&client, Arc::clone(&queues));
        assert!(queues.split(&partitions));
        let first = split.of(&("events".to_owned(), 0)).unwrap();
        assert!(queues.split(&partitions));
        let second = split.of(&("events".to_owned(), 0)).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert!(split.of(&("events".to_owned(), 1)).is_none());

        // No lane has it: it may belong to a topic that is gone.
        let idle = Arc::downgrade(&first);
        drop((first, second));
        assert!(queues.split(&partitions));
        assert!(idle.upgrade().is_none() && split.of(&("events".to_owned(), 0)).is_some());

        let known = Arc::downgrade(&client);
        drop((split, client));
        assert!(known.upgrade().is_none());
    }
}
