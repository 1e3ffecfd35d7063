//! A consumer group's member in this process: polls, spreads records over lanes, commits after the effect.

use std::sync::Arc;

use rdkafka::{
    Offset, TopicPartitionList,
    consumer::{CommitMode, Consumer as _},
    error::KafkaError,
    message::OwnedHeaders,
};
use tokio::sync::{Notify, mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use urr_jobs::{BoxError, Tasks, Woken, pause};

use super::{
    Cluster,
    lanes::{Accepted, GroupConsumer, Lanes, Partition, Rebalances},
    wire::{self, Place, Received},
};
use crate::{
    Message,
    deliver::{Delivery, Progress, SetAside, Verdict},
};

pub(super) struct Group {
    pub(super) cluster: Arc<Cluster>,
    pub(super) delivery: Delivery,
    pub(super) tasks: Tasks,
}

impl Group {
    /// Stays in the group until the process stops. A client that can go no further is replaced by a new one.
    pub(super) async fn run(self) {
        let group = self.delivery.group();
        let mut outages = 0_u32;
        while let Err(error) = self.membership(&mut outages).await {
            outages = outages.saturating_add(1);
            if outages == 1 {
                let cause = urr_telemetry::chain(&*error);
                tracing::error!(group, cause, "the group cannot consume; it tries again");
            }
            let wait = self.delivery.limits.outage.delay(outages, self.delivery.clock.ticks());
            if pause(&self.delivery.stopping, None, wait).await == Woken::Stopping {
                return;
            }
        }
    }

    /// One client's life. `Ok` when the process is stopping.
    async fn membership(&self, outages: &mut u32) -> Result<(), BoxError> {
        for topic in self.delivery.consumer.topics() {
            self.cluster.topics.ensure(topic).await?;
        }
        let lanes = Arc::new(Lanes::default());
        let context = Rebalances { group: self.delivery.group(), lanes: Arc::clone(&lanes) };
        let config = self.cluster.config.consumer(self.delivery.group());
        let client: Arc<GroupConsumer> = Arc::new(config.create_with_context(context)?);
        client.subscribe(self.delivery.consumer.topics())?;
        let member = Member { group: self, client, lanes, room: Arc::default(), working: TaskTracker::new() };
        let ended = member.poll(outages).await;
        member.leave().await;
        ended
    }
}

/// A client with its lanes.
struct Member<'g> {
    group: &'g Group,
    client: Arc<GroupConsumer>,
    lanes: Arc<Lanes>,
    /// A lane took records out of its queue.
    room: Arc<Notify>,
    working: TaskTracker,
}

impl Member<'_> {
    async fn poll(&self, outages: &mut u32) -> Result<(), BoxError> {
        let stopping = &self.group.delivery.stopping;
        loop {
            let record = tokio::select! {
                biased;
                () = stopping.cancelled() => return Ok(()),
                () = self.room.notified() => {
                    self.resume(&self.lanes.refill())?;
                    continue;
                }
                record = self.client.recv() => record,
            };
            match record {
                Ok(record) => {
                    *outages = 0;
                    self.accept(Received::from_record(&record))?;
                }
                Err(error @ KafkaError::MessageConsumptionFatal(_)) => return Err(error.into()),
                // The client reconnects by itself; there is nothing to do but to go on asking.
                Err(error) => tracing::debug!(group = self.group.delivery.group(), %error, "no message"),
            }
        }
    }

    fn accept(&self, received: Received) -> Result<(), KafkaError> {
        let partition = (received.place.topic.clone(), received.place.partition);
        match self.lanes.accept(received, |partition, queue| self.start_lane(partition, queue)) {
            Accepted::Queued => Ok(()),
            Accepted::Full => self.client.pause(&list(&[partition])),
        }
    }

    fn resume(&self, partitions: &[Partition]) -> Result<(), KafkaError> {
        if partitions.is_empty() { Ok(()) } else { self.client.resume(&list(partitions)) }
    }

    fn start_lane(&self, partition: &Partition, queue: mpsc::Receiver<Received>) -> CancellationToken {
        let delivery = &self.group.delivery;
        let stop = delivery.stopping.child_token();
        let lane = Lane {
            delivery: Delivery { stopping: stop.clone(), ..delivery.clone() },
            cluster: Arc::clone(&self.group.cluster),
            client: Arc::clone(&self.client),
            room: Arc::clone(&self.room),
        };
        let name = format!("bus.{}.{}.{}", delivery.group(), partition.0, partition.1);
        self.group.tasks.spawn(name, self.working.track_future(lane.run(queue)));
        stop
    }

    /// Lets the lanes finish the transactions they are in, then leaves the group, so that the other members get the
    /// partitions at once and not after a session timeout.
    async fn leave(self) {
        self.lanes.close();
        self.working.close();
        self.working.wait().await;
        // Leaving talks to the broker and blocks until it has answered or the socket timed out.
        let left = tokio::task::spawn_blocking(move || drop(self.client)).await;
        if left.is_err() {
            tracing::warn!("leaving a consumer group panicked");
        }
    }
}

fn list(partitions: &[Partition]) -> TopicPartitionList {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for (topic, partition) in partitions {
        list.add_partition(topic, *partition);
    }
    list
}

/// Works one partition in order.
struct Lane {
    delivery: Delivery,
    cluster: Arc<Cluster>,
    client: Arc<GroupConsumer>,
    room: Arc<Notify>,
}

impl Lane {
    async fn run(self, mut queue: mpsc::Receiver<Received>) {
        let most = self.delivery.limits.batch as usize;
        let mut batch = Vec::with_capacity(most);
        loop {
            let taken = tokio::select! {
                biased;
                () = self.delivery.stopping.cancelled() => return,
                taken = queue.recv_many(&mut batch, most) => taken,
            };
            if taken == 0 {
                return;
            }
            self.room.notify_one();
            if !self.work(&batch).await {
                return;
            }
            batch.clear();
        }
    }

    /// Applies a batch in one transaction, or if that fails one by one. `false` if the lane must stop.
    async fn work(&self, batch: &[Received]) -> bool {
        let readable: Option<Vec<&Message>> =
            batch.iter().map(|received| received.content.as_ref().ok()).collect();
        if let (Some(messages), Some(last)) = (readable, batch.last())
            && self.delivery.together(&messages, Progress::Broker).await.is_ok()
        {
            self.commit(&last.place);
            return true;
        }
        for received in batch {
            if !self.work_one(received).await {
                return false;
            }
            self.commit(&received.place);
        }
        true
    }

    async fn work_one(&self, received: &Received) -> bool {
        match &received.content {
            Ok(message) => match self.delivery.one(message, Progress::Broker).await {
                Verdict::Applied => true,
                Verdict::Dead { cause, attempts } => {
                    self.delivery.set_aside(message, Progress::Broker, &cause, attempts).await
                        == SetAside::Done
                        && self.dead_letter(received, wire::headers(message), &cause, attempts).await
                }
                Verdict::Moved | Verdict::Stopped => false,
            },
            Err(unreadable) => self.dead_letter(received, OwnedHeaders::new(), &unreadable.reason, 1).await,
        }
    }

    /// Copies a record to the dead-letter topic, however long the broker takes: the offset moves on only after it.
    async fn dead_letter(
        &self,
        received: &Received,
        headers: OwnedHeaders,
        cause: &str,
        attempts: u32,
    ) -> bool {
        let (group, place) = (self.delivery.group(), &received.place);
        let topic = wire::dead_letter_topic(&place.topic);
        let headers = wire::dead_letter_headers(headers, group, place, cause, attempts);
        let (key, payload) = match &received.content {
            Ok(message) => (Some(message.key.as_bytes()), Some(message.payload.as_bytes())),
            Err(unreadable) => (unreadable.key.as_deref(), unreadable.payload.as_deref()),
        };
        tracing::error!(
            group,
            topic = place.topic,
            partition = place.partition,
            offset = place.offset,
            cause,
            attempts,
            "a record was set aside as a dead letter"
        );
        let mut outages = 0_u32;
        loop {
            match self.cluster.producer.send(&topic, key, payload, headers.clone()).await {
                Ok(()) => return true,
                Err(error) => {
                    outages = outages.saturating_add(1);
                    if !self.delivery.sit_out(outages, &error).await {
                        return false;
                    }
                }
            }
        }
    }

    /// Tells the broker how far the group is. A lost commit costs a repeated delivery, which the inbox notices.
    fn commit(&self, done: &Place) {
        let mut list = TopicPartitionList::with_capacity(1);
        let next = list.add_partition_offset(&done.topic, done.partition, Offset::Offset(done.offset + 1));
        let committed = next.and_then(|()| self.client.commit(&list, CommitMode::Async));
        if let Err(error) = committed {
            tracing::debug!(group = self.delivery.group(), %error, "an offset was not committed");
        }
    }
}
