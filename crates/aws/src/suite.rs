//! Against servers that stand in for AWS.

mod dynamo;
mod sqs;
