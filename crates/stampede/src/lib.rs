//! Load, benchmarks, simulated fans and buyers, and the checks of what the server acknowledged.
//!
//! This crate uses the public HTTP API and starts `urr` as a process. Only the benchmarks inside
//! one process need more; they get it through [`host::Host`], which `app` implements. This crate
//! depends on no domain.
//!
//! * [`bench`] is `urr bench`; [`crowd`] is `urr stampede`. Both return a [`report::Report`], which
//!   `app` prints.
//! * [`http`] is the client of both and of the black-box tests; [`program`] starts, stops and kills
//!   `urr`.
//! * [`shop`], [`people`] and [`line`] call the public API: seats, accounts, the waiting room of an
//!   event.
//! * [`buyers`] hold and release seats, journal every acknowledgement, and compare it with the
//!   server's later state.

pub mod bench;
pub mod buyers;
pub mod crowd;
mod disk;
pub mod host;
pub mod http;
pub mod line;
mod machine;
pub mod people;
pub mod program;
pub mod report;
pub mod rng;
pub mod shop;
mod tokens;
