//! Project tasks: `services` starts real stores for the tests, `tests` runs test binaries
//! concurrently, `tidy` checks rules that the compiler does not, and `fuzz` runs the fuzz targets.

mod ambient;
mod command;
mod fuzz;
mod manifests;
mod runner;
mod services;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask <command>

  services start [OPTIONS]               start what the tests need and leave it running
  services stop                          stop what `start` started
  services env                           print the export lines of what `start` started
  services run [OPTIONS] -- COMMAND…     run COMMAND with the services up, then stop what this started
  tests -- ARGUMENTS…                    run what `cargo test ARGUMENTS…` runs, several test binaries at once
  tidy                                   check the rules that the compiler does not check
  fuzz [--seconds N]                     run every fuzz target for N seconds, 30 by default

Options of `start` and `run`: --only LIST, --for CRATE, --durable. LIST is a comma list of postgres, redis, redis-cluster, kafka,
dynamodb, sqs, nginx; --for takes the list from `package.metadata.urr.services` in the manifest of CRATE. Without either, all are started.
DynamoDB and SQS are emulators. nginx is only installed: tests start it themselves. --durable makes
PostgreSQL sync to disk, for benchmarks. A service that URR_TEST_POSTGRES, URR_TEST_REDIS, URR_TEST_REDIS_CLUSTER,
URR_TEST_KAFKA, URR_TEST_DYNAMODB, URR_TEST_SQS or URR_TEST_NGINX names already is used as it is.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["services", rest @ ..] => services::main(rest),
        ["tests", rest @ ..] => runner::main(rest),
        ["tidy"] => tidy::main(),
        ["fuzz", rest @ ..] => fuzz::main(rest),
        _ => Err(anyhow::anyhow!("unknown command: {}\n\n{USAGE}", arguments.join(" "))),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
