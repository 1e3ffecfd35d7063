//! DynamoDB: atomic changes of one item, reads of one or all items, creation of tables.

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

/// Time limit of calls that create tables: an operator or a deployment waits for them.
const SETTING_UP: Duration = Duration::from_secs(10);
/// A new table is usable within seconds.
const LOOKS: u32 = 60;
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// Maximum pages of a full scan, of a megabyte each. Larger tables must not be scanned.
const MAX_PAGES: usize = 16;

/// A connection to DynamoDB. Clones share it.
#[derive(Clone)]
pub struct Dynamo(Arc<Inner>);

struct Inner {
    config: AwsConfig,
    guard: Guard,
    /// Created by the first call: reading credentials may block on files, and the start must not.
    client: OnceCell<Client>,
}

impl fmt::Debug for Dynamo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dynamo").field(&self.0.config).finish()
    }
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A string.
    Text(String),
    /// An integer.
    Number(i64),
    /// A boolean.
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
    /// The string attribute of this name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_s().ok().map(String::as_str)
    }

    /// The integer attribute of this name.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_n().ok()?.parse().ok()
    }

    /// The boolean attribute of this name.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool().ok().copied()
    }
}

/// One atomic conditional update of an item.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    /// The table.
    pub table: &'a str,
    /// Name and value of the item's key.
    pub key: (&'static str, String),
    /// The update expression, such as `ADD count :n`.
    pub expression: &'static str,
    /// The condition expression, such as `isActive = :yes`.
    pub condition: &'static str,
    /// The values of the names with a colon.
    pub values: Vec<(&'static str, Value)>,
}

/// The result of a [`Change`].
#[derive(Clone, Debug, PartialEq)]
pub enum Changed {
    /// Applied; the item after the change.
    Yes(Item),
    /// The condition failed; the current item, or `None` if there is none.
    No(Option<Item>),
}

/// The state of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableState {
    /// Usable.
    Ready,
    /// Being created or updated.
    Busy,
    /// Does not exist.
    Missing,
}

impl Dynamo {
    /// Prepares a connection. It connects on first use.
    pub fn connect(config: AwsConfig, clock: Clock) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self(Arc::new(Inner { config, guard: Guard::new(SERVICE, clock), client: OnceCell::new() })))
    }

    /// Applies a conditional update, within the default deadline.
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

    /// Reads one item, strongly consistent, within the default deadline.
    pub async fn get(&self, table: &str, key: (&str, &str)) -> Result<Option<Item>, Error> {
        let request = self.client().await.get_item().table_name(table).consistent_read(true);
        let request = request.key(key.0, AttributeValue::S(key.1.to_owned()));
        let found = self.0.guard.call("get", self.0.config.deadline, Box::pin(request.send())).await?;
        Ok(found.item.map(Item))
    }

    /// Reads every item of a small table. Each page of a megabyte may take four times the default
    /// deadline.
    pub async fn scan(&self, table: &str) -> Result<Vec<Item>, Error> {
        let (mut items, mut after) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let request = self.client().await.scan().table_name(table).consistent_read(true);
            let request = request.set_exclusive_start_key(after);
            let page =
                self.0.guard.call("scan", self.0.config.deadline * 4, Box::pin(request.send())).await?;
            items.extend(page.items.unwrap_or_default().into_iter().map(Item));
            after = page.last_evaluated_key;
            if after.is_none() {
                return Ok(items);
            }
        }
        Err(Error::Reply { service: SERVICE, why: format!("{table} is too large for a full scan") })
    }

    /// The state of a table.
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

    /// Creates a table with on-demand billing unless it exists, and waits until it is usable.
    /// DynamoDB deletes items once their `expires` attribute (seconds since 1970) has passed.
    /// Returns whether it was created.
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
        let why = format!("the table {table} is still being created");
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
                    // Another process created it first.
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

/// Whether DynamoDB answers.
#[async_trait]
impl urr_telemetry::Check for Dynamo {
    async fn check(&self) -> Result<(), String> {
        let request = self.client().await.list_tables().limit(1);
        let answer = self.0.guard.call("list_tables", SETTING_UP, Box::pin(request.send())).await;
        answer.map(drop).map_err(|error| error.to_string())
    }
}
