#![doc = include_str!("../README.md")]

mod config;
mod dynamo;
mod error;
mod guard;
mod sqs;
#[cfg(test)]
mod suite;

pub use self::{
    config::{AwsConfig, ConfigError},
    dynamo::{Change, Changed, Dynamo, Item, TableState, Value},
    error::Error,
    sqs::{MAX_BATCH, Note, Queue, Received},
};
