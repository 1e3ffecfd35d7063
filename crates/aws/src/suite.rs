//! Tests against local emulators of AWS.

mod dynamo;
mod sqs;
