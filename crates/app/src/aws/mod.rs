//! DynamoDB and SQS. Without the feature `aws` the functions do nothing, and the configuration
//! check refuses settings that need them.

#[cfg(feature = "aws")]
mod live;

#[cfg(not(feature = "aws"))]
#[path = "off.rs"]
mod live;

#[cfg(feature = "aws")]
mod notices;

pub(crate) use live::{check, counters, examine, migrate, notices, read_notices};
