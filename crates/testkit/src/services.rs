//! Addresses of the real stores. `./test` and `cargo xtask services run` start them and set the
//! environment variables.
//!
//! A test whose store is missing is skipped with a warning, and fails with `CI=true`: a suite that
//! silently ran on SQLite alone proves nothing about concurrency.

use std::{
    collections::BTreeSet,
    io::Write as _,
    sync::{Mutex, PoisonError},
};

use crate::environment;

/// The PostgreSQL superuser's URL of the database `postgres`.
pub fn postgres() -> Option<String> {
    address("postgres", "URR_TEST_POSTGRES")
}

/// The URL of a single Redis.
pub fn redis() -> Option<String> {
    address("redis", "URR_TEST_REDIS")
}

/// The URLs of a Redis Cluster's nodes, separated by commas.
pub fn redis_cluster() -> Option<String> {
    address("redis-cluster", "URR_TEST_REDIS_CLUSTER")
}

/// Kafka's `host:port`.
pub fn kafka() -> Option<String> {
    address("kafka", "URR_TEST_KAFKA")
}

/// The URL of the DynamoDB emulator.
pub fn dynamodb() -> Option<String> {
    address("dynamodb", "URR_TEST_DYNAMODB")
}

/// The URL of the SQS emulator.
pub fn sqs() -> Option<String> {
    address("sqs", "URR_TEST_SQS")
}

/// The path of the nginx binary.
pub fn nginx() -> Option<String> {
    address("nginx", "URR_TEST_NGINX")
}

/// Reports that a program a test starts by itself is not installed: a skip, or a failure with
/// `CI=true`.
pub fn not_installed(program: &'static str) {
    found(program, None, "it is not installed");
}

fn address(service: &'static str, variable: &str) -> Option<String> {
    let why = format!("{variable} is not set; `cargo xtask services run -- COMMAND` sets it");
    found(service, environment::variable(variable), &why)
}

/// Returns the address, if any. `why` is the reason for the skip.
fn found(service: &'static str, address: Option<String>, why: &str) -> Option<String> {
    match decide(address, environment::is_on("URR_TEST_NONE"), environment::is_on("CI")) {
        Outcome::Use(address) => Some(address),
        Outcome::LeaveOut => None,
        Outcome::Skip => {
            tell_once(service, why);
            None
        }
        Outcome::Fail => panic!("{service}: {why}. With CI=true nothing is skipped"),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Use(String),
    /// `./test fast` excludes services and prints that itself.
    LeaveOut,
    Skip,
    Fail,
}

fn decide(address: Option<String>, none_wanted: bool, in_ci: bool) -> Outcome {
    match address {
        _ if none_wanted => Outcome::LeaveOut,
        Some(address) => Outcome::Use(address),
        None if in_ci => Outcome::Fail,
        None => Outcome::Skip,
    }
}

/// Prints once per service and test binary, directly to stderr: the test runner captures
/// `eprintln!` of passing tests.
fn tell_once(service: &'static str, why: &str) {
    static TOLD: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(service) {
        // If stderr cannot be written, the skip cannot be reported.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {service}: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOMEWHERE: &str = "redis://127.0.0.1:1";

    #[test]
    fn configured_service_is_used_in_ci_and_elsewhere() {
        for in_ci in [true, false] {
            assert_eq!(decide(Some(SOMEWHERE.to_owned()), false, in_ci), Outcome::Use(SOMEWHERE.to_owned()));
        }
    }

    #[test]
    fn missing_service_is_skipped_but_fails_in_ci() {
        assert_eq!(decide(None, false, false), Outcome::Skip);
        assert_eq!(decide(None, false, true), Outcome::Fail);
    }

    #[test]
    fn fast_run_ignores_configured_services() {
        assert_eq!(decide(Some(SOMEWHERE.to_owned()), true, false), Outcome::LeaveOut);
        assert_eq!(decide(None, true, true), Outcome::LeaveOut);
    }
}
