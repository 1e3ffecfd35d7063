//! An SQS FIFO queue: messages are sent, received, and deleted once processed.

use std::{fmt, sync::Arc, time::Duration};

use aws_sdk_sqs::{
    Client, Config,
    error::SdkError,
    operation::{create_queue::CreateQueueError, get_queue_attributes::GetQueueAttributesError},
    types::{DeleteMessageBatchRequestEntry, QueueAttributeName, SendMessageBatchRequestEntry},
};
use tokio::sync::OnceCell;
use urr_kernel::Clock;

use crate::{
    AwsConfig, ConfigError, Error,
    config::{self, BEHAVIOR},
    guard::Guard,
};

const SERVICE: &str = "SQS";

/// Messages per call: the limit of SQS.
pub const MAX_BATCH: usize = 10;

/// Time limit of calls that create queues: an operator or a deployment waits for them.
const SETTING_UP: Duration = Duration::from_secs(10);

/// Time limit of a receive call beyond its own wait.
const MARGIN: Duration = Duration::from_secs(5);

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Messages of a group are received in the order in which they were sent.
    pub group: String,
    /// Deduplication id: a second message with the same id within five minutes is dropped.
    pub name: String,
    /// The body.
    pub body: String,
}

/// A received message. It is delivered again unless it is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The body.
    pub body: String,
    /// The receipt handle, for deletion.
    pub receipt: String,
    /// How often it was received.
    pub times: u32,
}

/// One FIFO queue. Clones share the connection.
#[derive(Clone)]
pub struct Queue(Arc<Inner>);

struct Inner {
    config: AwsConfig,
    url: String,
    guard: Guard,
    client: OnceCell<Client>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queue").field(&self.0.url).finish()
    }
}

impl Queue {
    /// The queue at a URL. It connects on first use.
    pub fn connect(config: AwsConfig, url: impl Into<String>, clock: Clock) -> Result<Self, ConfigError> {
        config.check()?;
        let guard = Guard::new(SERVICE, clock);
        Ok(Self(Arc::new(Inner { config, url: url.into(), guard, client: OnceCell::new() })))
    }

    /// Creates a FIFO queue on a local emulator, for tests. Returns its URL.
    pub async fn create(config: AwsConfig, name: &str, clock: Clock) -> Result<String, Error> {
        let queue = Self::connect(config, "", clock);
        let queue = queue.map_err(|error| Error::Down { service: SERVICE, why: error.to_string() })?;
        let request = queue.client().await.create_queue().queue_name(name);
        let request = request.attributes(QueueAttributeName::FifoQueue, "true");
        let made =
            queue.0.guard.call::<_, CreateQueueError>("create", SETTING_UP, Box::pin(request.send())).await?;
        made.queue_url.ok_or_else(|| odd("the reply has no queue URL"))
    }

    /// Sends up to [`MAX_BATCH`] messages. Returns those that were rejected.
    pub async fn send(&self, notes: Vec<Note>) -> Result<Vec<Note>, Error> {
        let built = "id and body are given";
        let entries = notes.iter().enumerate().map(|(at, note)| {
            SendMessageBatchRequestEntry::builder()
                .id(at.to_string())
                .message_body(&note.body)
                .message_group_id(&note.group)
                .message_deduplication_id(&note.name)
                .build()
                .expect(built)
        });
        let request = self.client().await.send_message_batch().queue_url(&self.0.url);
        let request = request.set_entries(Some(entries.collect()));
        let sent = self.0.guard.call("send", self.0.config.deadline, Box::pin(request.send())).await?;
        let failed: Vec<usize> = sent.failed.iter().filter_map(|failed| failed.id.parse().ok()).collect();
        let left = notes.into_iter().enumerate().filter(|(at, _)| failed.contains(at));
        Ok(left.map(|(_, note)| note).collect())
    }

    /// Receives up to [`MAX_BATCH`] messages. Waits for the first for up to `wait`, in whole
    /// seconds and at most twenty.
    pub async fn receive(&self, wait: Duration) -> Result<Vec<Received>, Error> {
        let secs = i32::try_from(wait.as_secs().min(20)).unwrap_or(20);
        let request = self
            .client()
            .await
            .receive_message()
            .queue_url(&self.0.url)
            .max_number_of_messages(i32::try_from(MAX_BATCH).unwrap_or(10))
            .wait_time_seconds(secs)
            .message_system_attribute_names("ApproximateReceiveCount".into());
        let found = self.0.guard.call("receive", wait + MARGIN, Box::pin(request.send())).await?;
        found.messages.unwrap_or_default().into_iter().map(read).collect()
    }

    /// Deletes processed messages. Returns how many were deleted.
    pub async fn delete(&self, notes: &[Received]) -> Result<usize, Error> {
        if notes.is_empty() {
            return Ok(0);
        }
        let built = "id and receipt are given";
        let entries = notes.iter().enumerate().map(|(at, note)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(at.to_string());
            entry.receipt_handle(&note.receipt).build().expect(built)
        });
        let request = self.client().await.delete_message_batch().queue_url(&self.0.url);
        let request = request.set_entries(Some(entries.collect()));
        let done = self.0.guard.call("delete", SETTING_UP, Box::pin(request.send())).await?;
        Ok(done.successful.len())
    }

    /// The approximate number of messages in the queue. Fails if it is not a usable FIFO queue.
    pub async fn depth(&self) -> Result<u64, Error> {
        let request = self.client().await.get_queue_attributes().queue_url(&self.0.url);
        let request = request
            .attribute_names(QueueAttributeName::ApproximateNumberOfMessages)
            .attribute_names(QueueAttributeName::FifoQueue);
        let sent = Box::pin(async {
            match request.send().await {
                Ok(found) => Ok(found.attributes.unwrap_or_default()),
                Err(error) => Err::<_, SdkError<GetQueueAttributesError, _>>(error),
            }
        });
        let found = self.0.guard.call("attributes", SETTING_UP, sent).await?;
        if found.get(&QueueAttributeName::FifoQueue).is_none_or(|fifo| fifo != "true") {
            return Err(odd("it is not a FIFO queue"));
        }
        let depth = found.get(&QueueAttributeName::ApproximateNumberOfMessages);
        Ok(depth.and_then(|depth| depth.parse().ok()).unwrap_or(0))
    }

    async fn client(&self) -> &Client {
        self.0.client.get_or_init(async || client(&self.0.config).await).await
    }
}

fn odd(why: &str) -> Error {
    Error::Reply { service: SERVICE, why: why.to_owned() }
}

fn read(message: aws_sdk_sqs::types::Message) -> Result<Received, Error> {
    let times = message.attributes.as_ref().and_then(|attributes| {
        attributes.get(&"ApproximateReceiveCount".into()).and_then(|times| times.parse().ok())
    });
    let (Some(body), Some(receipt)) = (message.body, message.receipt_handle) else {
        return Err(odd("a message has no body or no receipt handle"));
    };
    Ok(Received { body, receipt, times: times.unwrap_or(1) })
}

async fn client(config: &AwsConfig) -> Client {
    let loaded = config.load().await;
    let mut builder = Config::builder()
        .behavior_version(BEHAVIOR())
        .region(loaded.region)
        .credentials_provider(loaded.credentials)
        .http_client(loaded.http)
        .retry_config(config::retries())
        .timeout_config(config::timeouts());
    builder.set_endpoint_url(loaded.endpoint);
    Client::from_conf(builder.build())
}
