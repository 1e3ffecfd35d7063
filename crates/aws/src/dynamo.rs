//! DynamoDB: one item changed atomically, one or all of them read, tables made.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use aws_sdk_dynamodb::{
    Client, Config,
    error::SdkError,
    operation::{
        create_table::CreateTableError, describe_table::DescribeTableError, update_item::UpdateItemError,
    },
    types::{
        AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ReturnValue,
        ReturnValuesOnConditionCheckFailure, ScalarAttributeType, TableStatus, TimeToLiveSpecification,
    },
};
use tokio::{sync::OnceCell, time::sleep};
use urr_kernel::Clock;

use crate::{
    AwsConfig, ConfigError, Error,
    config::{self, BEHAVIOR},
    guard::Guard,
};

const SERVICE: &str = "DynamoDB";

/// What makes tables may take its time: a person waits, or a deployment.
const SETTING_UP: Duration = Duration::from_secs(10);
/// A new table is there within seconds.
const LOOKS: u32 = 60;
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// Pages of a table that is read whole, of a megabyte each. Larger ones are not for reading whole.
const MAX_PAGES: usize = 16;

/// A connection to DynamoDB. Clones share everything.
#[derive(Clone)]
pub struct Dynamo(Arc<Inner>);

struct Inner {
    config: AwsConfig,
    guard: Guard,
    /// Made by the first call: reading credentials may wait for files, and starting waits for nothing.
    client: OnceCell<Client>,
}

impl fmt::Debug for Dynamo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dynamo").field(&self.0.config).finish()
    }
}

/// What an attribute holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A string.
    Text(String),
    /// A whole number.
    Number(i64),
    /// Yes or no.
    Flag(bool),
}

impl From<Value> for AttributeValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Text(text) => Self::S(text),
            Value::Number(number) => Self::N(number.to_string()),
            Value::Flag(flag) => Self::Bool(flag),
        }
    }
}

/// One item of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Item(HashMap<String, AttributeValue>);

impl Item {
    /// The string of this name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_s().ok().map(String::as_str)
    }

    /// The whole number of this name.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_n().ok()?.parse().ok()
    }

    /// The yes or no of this name.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool().ok().copied()
    }
}

/// One atomic step: look at an item and change it, or leave it as it is.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    /// The table.
    pub table: &'a str,
    /// Name and value of the item's key.
    pub key: (&'static str, String),
    /// What changes, such as `ADD count :n`.
    pub expression: &'static str,
    /// When it may, such as `isActive = :yes`.
    pub condition: &'static str,
    /// What the names with a colon stand for.
    pub values: Vec<(&'static str, Value)>,
}

/// What came of a [`Change`].
#[derive(Clone, Debug, PartialEq)]
pub enum Changed {
    /// It was done, and this is the item now.
    Yes(Item),
    /// The condition does not hold for this item. Nothing if there is none.
    No(Option<Item>),
}

/// How a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableState {
    /// It can be used.
    Ready,
    /// It is being made or changed.
    Busy,
    /// There is none.
    Missing,
}

impl Dynamo {
    /// A connection that nobody has used yet.
    pub fn connect(config: AwsConfig, clock: Clock) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self(Arc::new(Inner { config, guard: Guard::new(SERVICE, clock), client: OnceCell::new() })))
    }

    /// Changes an item, or not, in one step, within the usual deadline.
    pub async fn change(&self, change: Change<'_>) -> Result<Changed, Error> {
        let request = self.client().await.update_item().table_name(change.table);
        let request = request
            .key(change.key.0, AttributeValue::S(change.key.1))
            .update_expression(change.expression)
            .condition_expression(change.condition)
            .set_expression_attribute_values(Some(attributes(change.values)))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let sent = Box::pin(async {
            match request.send().await {
                Ok(done) => Ok(Changed::Yes(Item(done.attributes.unwrap_or_default()))),
                Err(SdkError::ServiceError(answer)) => match answer.err() {
                    UpdateItemError::ConditionalCheckFailedException(failed) => {
                        Ok(Changed::No(failed.item.clone().map(Item)))
                    }
                    _ => Err(SdkError::ServiceError(answer)),
                },
                Err(error) => Err(error),
            }
        });
        self.0.guard.call("update", self.0.config.deadline, sent).await
    }

    /// One item as it is now, within the usual deadline.
    pub async fn get(&self, table: &str, key: (&str, &str)) -> Result<Option<Item>, Error> {
        let request = self.client().await.get_item().table_name(table).consistent_read(true);
        let request = request.key(key.0, AttributeValue::S(key.1.to_owned()));
        let found = self.0.guard.call("get", self.0.config.deadline, Box::pin(request.send())).await?;
        Ok(found.item.map(Item))
    }

    /// Every item of a small table as it is now. `limit` is for each megabyte of it.
    pub async fn scan(&self, table: &str, limit: Duration) -> Result<Vec<Item>, Error> {
        let (mut items, mut after) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let request = self.client().await.scan().table_name(table).consistent_read(true);
            let request = request.set_exclusive_start_key(after);
            let page = self.0.guard.call("scan", limit, Box::pin(request.send())).await?;
            items.extend(page.items.unwrap_or_default().into_iter().map(Item));
            after = page.last_evaluated_key;
            if after.is_none() {
                return Ok(items);
            }
        }
        Err(Error::Reply { service: SERVICE, why: format!("{table} is too large to be read whole") })
    }

    /// How a table is.
    pub async fn table(&self, table: &str) -> Result<TableState, Error> {
        let request = self.client().await.describe_table().table_name(table);
        let sent = Box::pin(async {
            match request.send().await {
                Ok(found) => Ok(match found.table.and_then(|table| table.table_status) {
                    Some(TableStatus::Active) => TableState::Ready,
                    _ => TableState::Busy,
                }),
                Err(SdkError::ServiceError(answer)) => match answer.err() {
                    DescribeTableError::ResourceNotFoundException(_) => Ok(TableState::Missing),
                    _ => Err(SdkError::ServiceError(answer)),
                },
                Err(error) => Err(error),
            }
        });
        self.0.guard.call("describe", SETTING_UP, sent).await
    }

    /// Makes a table that is paid by the request, unless it is there, and waits until it can be used. Items whose `expires` (in
    /// seconds since 1970) has passed are removed by DynamoDB. Answers whether it was made.
    pub async fn create_table(&self, table: &str, key: &str, expires: &str) -> Result<bool, Error> {
        if self.table(table).await? == TableState::Ready {
            return Ok(false);
        }
        let is_new = self.create(table, key).await?;
        for _ in 0..LOOKS {
            if self.table(table).await? == TableState::Ready {
                if is_new {
                    self.expire_by(table, expires).await?;
                }
                return Ok(is_new);
            }
            sleep(BETWEEN_LOOKS).await;
        }
        let why = format!("the table {table} is still being made");
        Err(Error::Down { service: SERVICE, why })
    }

    async fn create(&self, table: &str, key: &str) -> Result<bool, Error> {
        let built = "name and type are given";
        let column =
            AttributeDefinition::builder().attribute_name(key).attribute_type(ScalarAttributeType::S);
        let hash = KeySchemaElement::builder().attribute_name(key).key_type(KeyType::Hash);
        let request = self
            .client()
            .await
            .create_table()
            .table_name(table)
            .attribute_definitions(column.build().expect(built))
            .key_schema(hash.build().expect(built))
            .billing_mode(BillingMode::PayPerRequest);
        let sent = Box::pin(async {
            match request.send().await {
                Ok(_) => Ok(true),
                Err(SdkError::ServiceError(answer)) => match answer.err() {
                    // Somebody else was quicker.
                    CreateTableError::ResourceInUseException(_) => Ok(false),
                    _ => Err(SdkError::ServiceError(answer)),
                },
                Err(error) => Err(error),
            }
        });
        self.0.guard.call("create_table", SETTING_UP, sent).await
    }

    async fn expire_by(&self, table: &str, attribute: &str) -> Result<(), Error> {
        let by = TimeToLiveSpecification::builder().attribute_name(attribute).enabled(true);
        let by = by.build().expect("name and switch are given");
        let request =
            self.client().await.update_time_to_live().table_name(table).time_to_live_specification(by);
        self.0.guard.call("expire_by", SETTING_UP, Box::pin(request.send())).await.map(drop)
    }

    async fn client(&self) -> &Client {
        self.0.client.get_or_init(async || client(&self.0.config).await).await
    }
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

fn attributes(values: Vec<(&'static str, Value)>) -> HashMap<String, AttributeValue> {
    values.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

/// Whether DynamoDB answers at all.
#[async_trait]
impl urr_telemetry::Check for Dynamo {
    async fn check(&self) -> Result<(), String> {
        let request = self.client().await.list_tables().limit(1);
        let answer = self.0.guard.call("list_tables", SETTING_UP, Box::pin(request.send())).await;
        answer.map(drop).map_err(|error| error.to_string())
    }
}
