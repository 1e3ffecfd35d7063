//! The crowd: load, benchmarks, simulated fans and buyers, and the checks of what the server promised them.
//!
//! It knows the public HTTP API and starts `urr` as a process. Only the benchmarks that measure parts inside one process
//! need more, and they get it through [`host::Host`], which `app` implements: this crate depends on no domain.
//!
//! * [`bench`] is `urr bench`; [`crowd`] is `urr stampede`. Both return a [`report::Report`], which `app` prints.
//! * [`http`] is the client of both and of the black-box tests; [`program`] starts, stops and kills `urr`.
//! * [`shop`], [`people`] and [`line`] call the public API: seats, accounts, the waiting room of an event.
//! * [`buyers`] hold and release seats, journal every promise, and compare it with what the server says later.

pub mod bench;
pub mod buyers;
pub mod crowd;
pub mod dice;
mod disk;
pub mod host;
pub mod http;
pub mod line;
mod machine;
pub mod people;
pub mod program;
pub mod report;
pub mod shop;
mod tokens;
