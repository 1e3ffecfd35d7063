//! A member of a Kafka consumer group: polls, runs one task per partition, commits offsets after
//! the effects.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll};

use futures_util::FutureExt as _;
use rdkafka::{
    Offset, TopicPartitionList,
    consumer::{CommitMode, Consumer as _},
    error::{KafkaError, RDKafkaErrorCode},
    message::{Message as _, OwnedHeaders},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use urr_jobs::{BoxError, Tasks, Woken, pause};

use super::{
    Cluster,
    lanes::{Beginning, GroupConsumer, LanePermit, Lanes, Rebalances},
    producer::{blames_the_record, forbids_the_topic},
    queues::{Queue, Queues, Split},
    read_errors::ReadErrors,
    wire::{self, Received, RecordOffset},
};
use crate::{
    Message,
    deliver::{DeadLetterOutcome, Delivery, Progress, Verdict},
};

pub(super) struct Group {
    pub(super) cluster: Arc<Cluster>,
    pub(super) delivery: Delivery,
    pub(super) tasks: Tasks,
}

impl Group {
    /// Stays in the group until shutdown. A client that failed is replaced by a new one.
    pub(super) async fn run(self) {
        let Delivery { clock, limits, stopping, .. } = &self.delivery;
        let group = self.delivery.group();
        let (mut outages, read_errors) = (0_u32, Arc::new(ReadErrors::new(group)));
        loop {
            let began = clock.ticks();
            let Err(error) = self.membership(&read_errors).await else { return };
            // A client that ran for long was healthy; restart the backoff.
            if clock.ticks().saturating_sub(began) > limits.outage.max {
                outages = 0;
            }
            outages = outages.saturating_add(1);
            if read_errors.is_news(clock.ticks()) {
                let cause = urr_telemetry::chain(&*error);
                tracing::error!(
                    group,
                    cause,
                    "the consumer group's Kafka client failed: messages wait while a new one is created"
                );
            }
            let wait = limits.outage.delay(outages, clock.ticks());
            if pause(stopping, None, wait).await == Woken::Stopping {
                return;
            }
        }
    }

    /// Runs one client. Returns `Ok` at shutdown.
    async fn membership(&self, read_errors: &Arc<ReadErrors>) -> Result<(), BoxError> {
        for topic in self.delivery.consumer.topics() {
            // An unreachable broker takes longer to time out than a shutdown may take.
            tokio::select! {
                biased;
                () = self.delivery.stopping.cancelled() => return Ok(()),
                ensured = self.cluster.topics.ensure(topic) => ensured?,
            }
        }
        let (lanes, queues) = (Arc::new(Lanes::default()), Arc::new(Queues::default()));
        let context = Rebalances {
            group: self.delivery.group(),
            lanes: Arc::clone(&lanes),
            queues: Arc::clone(&queues),
        };
        let config = self.cluster.config.consumer(self.delivery.group());
        let client: Arc<GroupConsumer> = Arc::new(config.create_with_context(context)?);
        let queues = Split::new(&client, queues);
        client.subscribe(self.delivery.consumer.topics())?;
        let read_errors = Arc::clone(read_errors);
        let member = Member { group: self, queues, client, lanes, read_errors, working: TaskTracker::new() };
        let ended = member.poll().await;
        if ended.is_err() {
            metrics::counter!("urr_bus_members_replaced_total", "group" => self.delivery.group())
                .increment(1);
        }
        member.leave().await;
        ended
    }
}

/// A Kafka client and its partition tasks.
struct Member<'g> {
    group: &'g Group,
    queues: Split,
    client: Arc<GroupConsumer>,
    lanes: Arc<Lanes>,
    read_errors: Arc<ReadErrors>,
    working: TaskTracker,
}

impl Member<'_> {
    async fn poll(&self) -> Result<(), BoxError> {
        let Delivery { stopping, clock, .. } = &self.group.delivery;
        loop {
            tokio::select! {
                biased;
                () = stopping.cancelled() => return Ok(()),
                () = self.lanes.broken.cancelled() => return Err("a partition task ended unexpectedly".into()),
                () = self.lanes.given.notified() => {
                    self.lanes.begin(stopping).into_iter().for_each(|beginning| self.start_lane(beginning));
                }
                record = self.client.recv() => match record {
                    // Must not happen: a partition gets its own queue before its first record. The
                    // offset is not committed, so the record is delivered again.
                    Ok(record) => return Err(format!("a record of {} bypassed its queue", record.topic()).into()),
                    Err(error) if goes_on_by_itself(&error) => self.read_errors.note(&error, clock.ticks()),
                    Err(error) => return Err(error.into()),
                },
            }
        }
    }

    fn start_lane(&self, beginning: Beginning) {
        let (topic, partition) = &beginning.partition;
        let name = format!("bus.{}.{topic}.{partition}", self.group.delivery.group());
        // Without a queue, dropping `beginning` marks the lane as broken and the client is
        // replaced.
        let Some(queue) = self.queues.of(&beginning.partition) else { return };
        let lane = self.lane(&beginning.permit.stop);
        self.group.tasks.spawn(name, self.working.track_future(lane.run(beginning, queue)));
    }

    fn lane(&self, stop: &CancellationToken) -> PartitionWorker {
        PartitionWorker {
            delivery: Delivery { stopping: stop.clone(), ..self.group.delivery.clone() },
            cluster: Arc::clone(&self.group.cluster),
            client: Arc::clone(&self.client),
            read_errors: Arc::clone(&self.read_errors),
        }
    }

    /// Waits for the lanes' current transactions, then leaves the group, so that other members get
    /// the partitions at once instead of after the session timeout.
    async fn leave(self) {
        self.lanes.close();
        self.working.close();
        self.working.wait().await;
        drop(self.queues);
        // Closing the client blocks until the broker responds or the socket times out.
        #[expect(clippy::disallowed_methods, reason = "awaited right here")]
        let left = tokio::task::spawn_blocking(move || drop(self.client)).await;
        if left.is_err() {
            tracing::warn!(
                "closing the Kafka consumer panicked: its partitions are reassigned after the session timeout"
            );
        }
    }
}

/// The next record of a partition, or an error. `None` when the lane's turn is over.
async fn next(queue: &Queue, permit: &LanePermit) -> Option<Result<Received, KafkaError>> {
    let mut coming = pin!(queue.recv());
    let record = poll_fn(|cx| match permit.take(|| coming.as_mut().poll(cx)) {
        Some(polled) => polled.map(Some),
        None => Poll::Ready(None),
    });
    let taken = permit.stop.run_until_cancelled(record).await.flatten()?;
    Some(taken.map(|record| Received::from_record(&record)))
}

/// Whether librdkafka recovers from the error itself: an unreachable broker, refused credentials, a
/// topic that does not exist yet, or a rejoin. After any other error some partitions may never be
/// fetched, for instance if the coordinator moves during an offset fetch, and no rebalance repairs
/// that.
fn goes_on_by_itself(error: &KafkaError) -> bool {
    matches!(
        error,
        KafkaError::MessageConsumption(
            RDKafkaErrorCode::BrokerTransportFailure
                | RDKafkaErrorCode::AllBrokersDown
                | RDKafkaErrorCode::Resolve
                | RDKafkaErrorCode::Authentication
                | RDKafkaErrorCode::SSL
                | RDKafkaErrorCode::OperationTimedOut
                | RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::PollExceeded
        )
    )
}

/// Processes one partition in order.
struct PartitionWorker {
    delivery: Delivery,
    cluster: Arc<Cluster>,
    client: Arc<GroupConsumer>,
    read_errors: Arc<ReadErrors>,
}

impl PartitionWorker {
    async fn run(self, beginning: Beginning, queue: Arc<Queue>) {
        let Beginning { permit, previous, ending: _ending, partition: _ } = beginning;
        if let Some(previous) = previous {
            previous.cancelled().await;
        }
        self.work_queue(&queue, &permit).await;
    }

    async fn work_queue(&self, queue: &Queue, permit: &LanePermit) {
        let most = self.delivery.limits.batch as usize;
        let mut batch = Vec::with_capacity(most);
        while let Some(first) = next(queue, permit).await {
            batch.extend(self.readable(first));
            // Add records that are already queued, without waiting for more.
            while (1..most).contains(&batch.len())
                && let Some(Some(more)) = next(queue, permit).now_or_never()
            {
                batch.extend(self.readable(more));
            }
            if !batch.is_empty() && !self.work(&batch).await {
                return;
            }
            batch.clear();
        }
    }

    /// The record, or `None` on an error, which librdkafka retries.
    fn readable(&self, taken: Result<Received, KafkaError>) -> Option<Received> {
        match &taken {
            Ok(_) => self.read_errors.over(),
            Err(error) => self.read_errors.note(error, self.delivery.clock.ticks()),
        }
        taken.ok()
    }

    /// Applies a batch in one transaction or, if that fails, one by one. Returns `false` if the
    /// lane must stop.
    async fn work(&self, batch: &[Received]) -> bool {
        let readable: Option<Vec<&Message>> =
            batch.iter().map(|received| received.content.as_ref().ok()).collect();
        if let (Some(messages), Some(last)) = (readable, batch.last())
            && self.delivery.apply_all(&messages, Progress::Broker).await.is_ok()
        {
            self.commit(&last.record_offset);
            return true;
        }
        for received in batch {
            if !self.work_one(received).await {
                return false;
            }
            self.commit(&received.record_offset);
        }
        true
    }

    async fn work_one(&self, received: &Received) -> bool {
        match &received.content {
            Ok(message) => match self.delivery.one(message, Progress::Broker).await {
                Verdict::Applied => true,
                Verdict::Dead { cause, attempts } => {
                    self.delivery.set_aside(message, Progress::Broker, &cause, attempts).await
                        == DeadLetterOutcome::Done
                        && self.dead_letter(received, wire::headers(message), &cause, attempts).await
                }
                Verdict::Moved | Verdict::Stopped => false,
            },
            Err(unreadable) => {
                metrics::counter!("urr_bus_dead_letters_total", "group" => self.delivery.group())
                    .increment(1);
                self.dead_letter(received, OwnedHeaders::new(), &unreadable.reason, 1).await
            }
        }
    }

    /// Copies a record to the dead-letter topic and retries while the broker is unavailable; the
    /// offset is committed only afterwards. A record that is too large, as other producers may
    /// write, is sent without its content. If that is refused too, or writing is forbidden, it is
    /// logged and dropped, or the partition would be stuck. A deleted topic is created again.
    async fn dead_letter(
        &self,
        received: &Received,
        headers: OwnedHeaders,
        cause: &str,
        attempts: u32,
    ) -> bool {
        let (group, record_offset) = (self.delivery.group(), &received.record_offset);
        let topic = wire::dead_letter_topic(&record_offset.topic);
        let story =
            |cause: &str| wire::dead_letter_headers(headers.clone(), group, record_offset, cause, attempts);
        let (mut key, mut payload) = match &received.content {
            Ok(message) => (Some(message.key.as_bytes()), Some(message.payload.as_bytes())),
            Err(unreadable) => (unreadable.key.as_deref(), unreadable.payload.as_deref()),
        };
        tracing::error!(
            group,
            topic = record_offset.topic,
            partition = record_offset.partition,
            offset = record_offset.offset,
            cause,
            attempts,
            "a record was set aside as a dead letter on its .dlq topic"
        );
        let (mut outages, mut headers) = (0_u32, story(cause));
        loop {
            match self.cluster.producer.send(&topic, key, payload, headers.clone()).await {
                Ok(()) => return true,
                Err(error) if blames_the_record(&error) && (key, payload) != (None, None) => {
                    (key, payload) = (None, None);
                    headers = story(&format!("kept without its content, because {error}: {cause}"));
                }
                Err(error) if blames_the_record(&error) || forbids_the_topic(&error) => {
                    self.lost(record_offset, &error);
                    return true;
                }
                Err(error) => {
                    outages = outages.saturating_add(1);
                    if !self.delivery.sit_out(outages, &error).await {
                        return false;
                    }
                    self.look_for_topic(&record_offset.topic).await;
                }
            }
        }
    }

    async fn look_for_topic(&self, topic: &str) {
        let look = async {
            self.cluster.topics.forget(topic).await;
            self.cluster.topics.ensure(topic).await
        };
        // An unreachable broker takes longer to time out than a shutdown may take.
        if let Some(Err(error)) = self.delivery.stopping.run_until_cancelled(look).await {
            let group = self.delivery.group();
            tracing::debug!(group, %error, "cannot create the dead-letter topic; will retry");
        }
    }

    fn lost(&self, record_offset: &RecordOffset, error: &KafkaError) {
        let RecordOffset { topic, partition, offset } = record_offset;
        let group = self.delivery.group();
        tracing::error!(
            group, topic, partition, offset, %error,
            "Kafka refused a dead letter: the record is skipped and stays only in its own topic, for seven days"
        );
        metrics::counter!("urr_bus_lost_letters_total", "group" => group).increment(1);
    }

    /// Commits the offset. A lost commit causes a redelivery, which the inbox filters out.
    fn commit(&self, done: &RecordOffset) {
        let mut list = TopicPartitionList::with_capacity(1);
        let next = list.add_partition_offset(&done.topic, done.partition, Offset::Offset(done.offset + 1));
        let committed = next.and_then(|()| self.client.commit(&list, CommitMode::Async));
        if let Err(error) = committed {
            let group = self.delivery.group();
            tracing::debug!(group, %error, "offset not committed; messages may be delivered again");
        }
    }
}
