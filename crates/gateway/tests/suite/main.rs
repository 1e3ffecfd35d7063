//! Test suite of the gateway, behind the edge and in front of local and remote services.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod dispatcher;
mod docs;
mod front;
mod hops;
mod leaving;
mod limits;
mod lines;
mod proxy;
mod raw;
mod replicas;
mod sample;
mod sessions;
mod slots;
mod smuggling;
mod streams;
mod tier2_tokens;
mod tricks;
mod world;
