//! The interfaces between domains: one module per domain with its trait, requests, replies, errors
//! and facts.
//!
//! `docs/glossary.md` defines the words used here.

pub mod auth;
pub mod catalog;
pub mod queue;
pub mod tickets;
pub mod vwr;
