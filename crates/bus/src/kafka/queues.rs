//! One queue per partition.
//!
//! librdkafka puts fetched records into the client's common queue unless the partition's queue is
//! split off. That is done before the partition is assigned, and stays so for the life of the
//! client. Pausing a partition until its lane is ready would work too, but for a race in librdkafka
//! 2.12: pause, resume and the start of fetching each take a version number and then enqueue an
//! operation, on different threads. The operation that is enqueued second with the lower version is
//! dropped silently, and the partition is never read.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use rdkafka::{TopicPartitionList, consumer::stream_consumer::StreamPartitionQueue};

use super::lanes::{GroupConsumer, Partition, Rebalances, names};

pub(super) type Queue = StreamPartitionQueue<Rebalances>;

/// Queues of all partitions that this client has or had. A partition that is assigned again while
/// its lane is in its last transaction reuses its queue: of two handles to one queue, dropping the
/// first silences the other.
#[derive(Default)]
pub(super) struct Queues {
    client: OnceLock<Weak<GroupConsumer>>,
    split: Mutex<HashMap<Partition, Arc<Queue>>>,
}

impl Queues {
    /// Splits off the queues of these partitions. Returns `false` on failure.
    pub(super) fn split(&self, partitions: &TopicPartitionList) -> bool {
        let Some(client) = self.client.get().and_then(Weak::upgrade) else { return false };
        let mut split = self.lock();
        names(partitions).all(|partition| {
            // An unused handle may belong to a topic that was deleted and created again, with a new
            // queue.
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

/// Owner of a client's queues. Queues and client reference each other, so dropping this breaks the
/// cycle.
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
        // Dropping the last queue may close the client, which is slow: not under the lock.
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
        // An address without a listener; the test never connects.
        let config = KafkaConfig::new("127.0.0.1:1").consumer("group");
        Arc::new(config.create_with_context(context).unwrap())
    }

    #[tokio::test]
    async fn queues_are_reused_while_in_use_and_do_not_leak_the_client() {
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

        // No lane uses the queue, so it is replaced: its topic may have been deleted.
        let idle = Arc::downgrade(&first);
        drop((first, second));
        assert!(queues.split(&partitions));
        assert!(idle.upgrade().is_none() && split.of(&("events".to_owned(), 0)).is_some());

        let known = Arc::downgrade(&client);
        drop((split, client));
        assert!(known.upgrade().is_none());
    }
}
