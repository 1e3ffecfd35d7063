//! The front door, seen from outside: behind the edge, in front of services here and elsewhere.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod docs;
mod door;
mod front;
mod hops;
mod leaving;
mod limits;
mod lines;
mod places;
mod proxy;
mod raw;
mod replicas;
mod sample;
mod sessions;
mod slots;
mod smuggling;
mod streams;
mod tricks;
mod world;
