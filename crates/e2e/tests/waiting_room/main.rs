//! The waiting room of the real binary: killed, frozen, without its store or what that knew, and in front of the sale.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod flushed;
mod frozen;
mod kill;
mod outage;
mod sale;
