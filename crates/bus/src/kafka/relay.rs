//! Publishes one outbox to Kafka: claims rows, sends them, marks them.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::future::join_all;
use rdkafka::error::RDKafkaErrorCode;
use tokio_util::sync::CancellationToken;
use urr_db::{
    Tx,
    outbox::{self, Claimed},
    transaction,
};
use urr_jobs::{BoxError, Nudge, Woken, pause};
use urr_kernel::Clock;

use super::{Cluster, producer::blames_the_record, topics::TopicError, wire};
use crate::{Limits, Source};

/// Messages in flight, each of another key. At 10 ms per round trip this is 50,000 per second.
const BATCH: u32 = 500;

/// Duration of a claim: longer than the 10 s of waiting for space in the producer's queue plus the
/// 10 s of waiting for the broker. Messages claimed by a crashed relay are delayed this long.
const CLAIM: Duration = Duration::from_secs(30);

pub(super) struct Relay {
    pub(super) cluster: Arc<Cluster>,
    pub(super) source: Source,
    pub(super) limits: Arc<Limits>,
    pub(super) clock: Clock,
    pub(super) stopping: CancellationToken,
}

/// Results of a batch.
#[derive(Default)]
struct Sorted {
    published: Vec<i64>,
    /// The broker rejects the message itself.
    refused: Vec<(Claimed, String)>,
    /// The broker was unavailable. One of the errors is kept for the log.
    unsent: Vec<i64>,
    outage: Option<BoxError>,
}

impl Relay {
    pub(super) async fn run(self) {
        let nudge = Nudge::from(self.source.db.outbox_nudge());
        let mut outages = 0_u32;
        while !self.stopping.is_cancelled() {
            let woken = match self.round().await {
                Ok(0) => {
                    self.recovered(&mut outages);
                    pause(&self.stopping, Some(&nudge), self.limits.poll).await
                }
                Ok(_) => {
                    self.recovered(&mut outages);
                    Woken::Elapsed
                }
                Err(error) => {
                    outages = outages.saturating_add(1);
                    if outages == 1 {
                        let cause = urr_telemetry::chain(&*error);
                        let source = self.source.domain;
                        tracing::error!(
                            source,
                            cause,
                            "messages cannot be published; they wait in the outbox"
                        );
                    }
                    let wait = self.limits.outage.delay(outages, self.clock.ticks());
                    pause(&self.stopping, None, wait).await
                }
            };
            if woken == Woken::Stopping {
                return;
            }
        }
    }

    fn recovered(&self, outages: &mut u32) {
        if *outages > 0 {
            tracing::info!(source = self.source.domain, "messages are published again");
        }
        *outages = 0;
    }

    /// Publishes one batch and returns the number of claimed rows. Fails if the broker or the
    /// database is unavailable.
    async fn round(&self) -> Result<usize, BoxError> {
        let now = self.clock.now();
        let claimed = transaction!(self.source.db, "bus.claim", async |tx: &mut Tx<'_>| {
            outbox::claim(tx, now, BATCH, CLAIM).await
        })?;
        let count = claimed.len();
        if count == 0 {
            return Ok(0);
        }
        let mut sorted = Sorted::default();
        let ensured: Result<(), BoxError> = tokio::select! {
            biased;
            // An unreachable broker takes longer to time out than a shutdown may take.
            () = self.stopping.cancelled() => Err("the process is stopping".into()),
            ensured = self.ensure_topics(&claimed) => ensured.map_err(BoxError::from),
        };
        if let Err(error) = ensured {
            sorted.unsent = claimed.iter().map(|claimed| claimed.seq).collect();
            self.note(&sorted).await?;
            return Err(error);
        }
        for (claimed, sent) in join_all(claimed.into_iter().map(|claimed| self.publish(claimed))).await {
            match sent {
                Ok(()) => sorted.published.push(claimed.seq),
                Err(Unsent::Refused(reason)) => sorted.refused.push((claimed, reason)),
                Err(Unsent::Outage(error)) => {
                    sorted.unsent.push(claimed.seq);
                    sorted.outage = Some(error);
                }
            }
        }
        self.note(&sorted).await?;
        sorted.outage.map_or(Ok(count), Err)
    }

    async fn ensure_topics(&self, claimed: &[Claimed]) -> Result<(), TopicError> {
        let topics: BTreeSet<&str> = claimed.iter().map(|claimed| claimed.message.topic.as_str()).collect();
        for topic in topics {
            self.cluster.topics.ensure(topic).await?;
        }
        Ok(())
    }

    async fn publish(&self, claimed: Claimed) -> (Claimed, Result<(), Unsent>) {
        let sent = self.send(&claimed).await;
        (claimed, sent)
    }

    async fn send(&self, claimed: &Claimed) -> Result<(), Unsent> {
        let message = &claimed.message;
        let (key, payload) = (message.key.as_bytes(), message.payload.as_bytes());
        let sent = self
            .cluster
            .producer
            .send(&message.topic, Some(key), Some(payload), wire::headers(message))
            .await;
        match sent {
            Ok(()) => Ok(()),
            Err(error) if blames_the_record(&error) => Err(Unsent::Refused(error.to_string())),
            Err(error) => {
                let code = error.rdkafka_error_code();
                if matches!(
                    code,
                    Some(RDKafkaErrorCode::UnknownTopic | RDKafkaErrorCode::UnknownTopicOrPartition)
                ) {
                    self.cluster.topics.forget(&message.topic).await;
                }
                Err(Unsent::Outage(error.into()))
            }
        }
    }

    /// Stores the results. If this fails, the rows are published again later; consumers filter out
    /// the duplicates.
    async fn note(&self, sorted: &Sorted) -> Result<(), urr_db::Error> {
        let (now, source) = (self.clock.now(), self.source.domain);
        let dead = transaction!(self.source.db, "bus.published", async |tx: &mut Tx<'_>| {
            outbox::published(tx, &sorted.published, now).await?;
            outbox::released(tx, &sorted.unsent, now).await?;
            let mut dead = 0;
            for (claimed, reason) in &sorted.refused {
                dead += u64::from(outbox::failed(tx, claimed, reason, now).await?);
            }
            Ok::<u64, urr_db::Error>(dead)
        })?;
        let published = u64::try_from(sorted.published.len()).unwrap_or(u64::MAX);
        metrics::counter!("urr_bus_published_total", "source" => source).increment(published);
        metrics::counter!("urr_bus_unpublished_total", "source" => source).increment(dead);
        for (claimed, reason) in &sorted.refused {
            let (message, kind) = (claimed.message.id, &claimed.message.kind);
            tracing::error!(
                source, %message, kind, reason,
                "Kafka refused a message: it is retried, and after four attempts listed by `urr outbox dead`"
            );
        }
        Ok(())
    }
}

enum Unsent {
    Refused(String),
    Outage(BoxError),
}
