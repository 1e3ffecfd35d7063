//! PostgreSQL, Redis, Redis Cluster, Kafka and emulators of DynamoDB and SQS on private ports with
//! temporary data, and nginx for tests that start it themselves.
//!
//! `start` leaves them running and records them in `target/services/state.json`; `run` stops them
//! when its command ends. Both first use what exists: a `URR_TEST_*` variable, then what `start`
//! started.

mod aws;
mod declared;
mod install;
mod java;
mod kafka;
mod nginx;
// Shared source file: a dependency on testkit would build the whole workspace.
#[expect(unreachable_pub, reason = "public in testkit, which shares this file")]
#[path = "../../../crates/testkit/src/ports.rs"]
mod ports;
mod postgres;
mod process;
mod redis;
mod set;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, ExitStatus},
};

use anyhow::{Context as _, Result, bail, ensure};

pub(crate) use self::declared::with_kafka;
use crate::{
    ambient::{self, Stopwatch},
    command::forget_cargo,
};
use process::Process;
use set::{Lock, Set, left_running};

/// A service that tests can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    Postgres,
    Redis,
    RedisCluster,
    Kafka,
    DynamoDb,
    Sqs,
    Nginx,
}

impl Service {
    const ALL: [Self; 7] = [
        Self::Postgres,
        Self::Redis,
        Self::RedisCluster,
        Self::Kafka,
        Self::DynamoDb,
        Self::Sqs,
        Self::Nginx,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
            Self::RedisCluster => "redis-cluster",
            Self::Kafka => "kafka",
            Self::DynamoDb => "dynamodb",
            Self::Sqs => "sqs",
            Self::Nginx => "nginx",
        }
    }

    /// The variable with the address for the tests.
    fn variable(self) -> &'static str {
        match self {
            Self::Postgres => "URR_TEST_POSTGRES",
            Self::Redis => "URR_TEST_REDIS",
            Self::RedisCluster => "URR_TEST_REDIS_CLUSTER",
            Self::Kafka => "URR_TEST_KAFKA",
            Self::DynamoDb => "URR_TEST_DYNAMODB",
            Self::Sqs => "URR_TEST_SQS",
            Self::Nginx => "URR_TEST_NGINX",
        }
    }

    fn named(name: &str) -> Result<Self> {
        let all = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|service| service.name() == name);
        found.with_context(|| format!("no service is called {name:?}; there are {all}"))
    }

    /// Starts the service below `dir` and waits until it is ready.
    fn start(self, dir: &Path, durable: bool, running: &mut Vec<Process>) -> Result<String> {
        match self {
            Self::Postgres => postgres::start(dir, durable, running),
            Self::Redis => redis::start_single(dir, running),
            Self::RedisCluster => redis::start_cluster(dir, running),
            Self::Kafka => kafka::start(dir, running),
            Self::DynamoDb => aws::start_dynamodb(dir, running),
            Self::Sqs => aws::start_sqs(dir, running),
            // Tests start nginx themselves, so they only need the path of the program.
            Self::Nginx => Ok(nginx::program().context("nginx is not installed")?.display().to_string()),
        }
    }
}

/// A service at `address`, with the processes that were started for it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Running {
    service: Service,
    address: String,
    durable: bool,
    dir: PathBuf,
    processes: Vec<Process>,
}

/// Options of the command line.
struct Wanted {
    services: Vec<Service>,
    durable: bool,
}

impl Wanted {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut wanted = Self { services: Service::ALL.to_vec(), durable: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--durable" => wanted.durable = true,
                "--only" => {
                    let list = words.next().context("--only needs a comma list of services")?;
                    wanted.services = list.split(',').map(Service::named).collect::<Result<_>>()?;
                }
                "--for" => {
                    let name = words.next().context("--for needs the name of a crate")?;
                    wanted.services = declared::of(name)?;
                }
                other => bail!("unknown option {other:?}"),
            }
        }
        Ok(wanted)
    }
}

pub(crate) fn main(words: &[&str]) -> Result<ExitCode> {
    match words {
        ["start", options @ ..] => start(&Wanted::parse(options)?),
        ["stop"] => stop(),
        ["env"] => print_env(),
        ["reap", dir] => set::reap(Path::new(dir), std::io::stdin()),
        ["run", rest @ ..] => {
            let split = rest.iter().position(|word| *word == "--");
            let split = split.context("services run needs `-- COMMAND…`")?;
            run(&Wanted::parse(&rest[..split])?, &rest[split + 1..])
        }
        _ => bail!("services needs one of start, stop, env, run; see `cargo xtask`"),
    }
}

fn start(wanted: &Wanted) -> Result<ExitCode> {
    let _lock = Lock::take()?;
    let mut set = Set::new()?;
    let reaper = set.watch()?;
    set.take_over(left_running()?, wanted);
    let skipped = bring_up(wanted, &mut set);
    set.save()?;
    reaper.dismiss()?;
    print_exports(&set.running)?;
    verdict(&skipped)
}

fn stop() -> Result<ExitCode> {
    let _lock = Lock::take()?;
    let left = left_running()?;
    if left.is_empty() {
        eprintln!("services: nothing is running");
    } else {
        set::forget(&left)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_env() -> Result<ExitCode> {
    let left = left_running()?;
    ensure!(!left.is_empty(), "nothing is running; `cargo xtask services start` starts it");
    print_exports(&left)?;
    Ok(ExitCode::SUCCESS)
}

fn run(wanted: &Wanted, command: &[&str]) -> Result<ExitCode> {
    let [program, arguments @ ..] = command else { bail!("services run needs a command after `--`") };
    let mut set = Set::new()?;
    let reaper = set.watch()?;
    set.borrow(left_running()?, wanted);
    let skipped = bring_up(wanted, &mut set);
    let status = verdict(&skipped).and_then(|_| run_with(&set, program, arguments));
    if status.as_ref().is_ok_and(ExitStatus::success) {
        set.stop();
        set.remove()?;
    } else {
        set.stop_keeping_logs();
    }
    reaper.dismiss()?;
    if status.is_ok() {
        // Repeated at the end, below the output of the command.
        tell(&skipped);
    }
    let code = status?.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}

fn run_with(set: &Set, program: &str, arguments: &[&str]) -> Result<ExitStatus> {
    let mut child = Command::new(program);
    child.args(arguments);
    forget_cargo(&mut child);
    for running in &set.running {
        child.env(running.service.variable(), &running.address);
    }
    child.status().with_context(|| format!("cannot run {program}"))
}

/// Starts what the set lacks of `wanted`, concurrently. Returns what is not available, with the
/// reason.
fn bring_up(wanted: &Wanted, set: &mut Set) -> Vec<(Service, String)> {
    for service in &wanted.services {
        if let Some(address) = ambient::variable(service.variable()) {
            eprintln!("services: {} as {} names it", service.name(), service.variable());
            let dir = PathBuf::new();
            set.put(Running {
                service: *service,
                address,
                durable: wanted.durable,
                dir,
                processes: Vec::new(),
            });
        }
    }
    let missing: Vec<Service> =
        wanted.services.iter().copied().filter(|service| !set.has(*service, wanted.durable)).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let mut skipped = install::whatever_is_missing(&missing);
    let startable = missing.iter().filter(|service| skipped.iter().all(|(name, _)| name != *service));
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let dir = &set.dir;
        let started: Vec<_> = startable
            .map(|service| (*service, scope.spawn(move || start_one(*service, dir, wanted.durable))))
            .collect();
        started.into_iter().map(|(service, thread)| (service, thread.join())).collect()
    });
    for (service, outcome) in outcomes {
        match outcome.map_err(|_| anyhow::anyhow!("starting it panicked")).flatten() {
            Ok(running) => set.put(running),
            Err(error) => skipped.push((service, format!("{error:#}"))),
        }
    }
    skipped
}

fn start_one(service: Service, dir: &Path, durable: bool) -> Result<Running> {
    let watch = Stopwatch::start();
    let mut processes = Vec::new();
    match service.start(dir, durable, &mut processes) {
        Ok(address) => {
            eprintln!(
                "services: {} at {address} after {:.1} s",
                service.name(),
                watch.elapsed().as_secs_f32()
            );
            Ok(Running { service, address, durable, dir: dir.to_path_buf(), processes })
        }
        Err(error) => {
            process::end(&processes);
            Err(error)
        }
    }
}

fn tell(skipped: &[(Service, String)]) {
    for (service, reason) in skipped {
        eprintln!("SKIPPED: {}: {reason}", service.name());
    }
}

/// Reports services that are not available. In CI they are a failure.
fn verdict(skipped: &[(Service, String)]) -> Result<ExitCode> {
    tell(skipped);
    if !skipped.is_empty() && ambient::in_ci() {
        bail!("{} of the services are not available, which is a failure with CI=true", skipped.len());
    }
    Ok(ExitCode::SUCCESS)
}

fn print_exports(list: &[Running]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for running in list {
        writeln!(out, "export {}='{}'", running.service.variable(), running.address)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_pick_services_and_durability() {
        let wanted = Wanted::parse(&["--only", "kafka,redis-cluster", "--durable"]).unwrap();
        assert_eq!(wanted.services, [Service::Kafka, Service::RedisCluster]);
        assert!(wanted.durable);
    }

    #[test]
    fn an_unknown_service_is_refused_by_name() {
        let error = Wanted::parse(&["--only", "mysql"]).err().expect("mysql is not a service of xtask");
        assert!(error.to_string().contains("\"mysql\""), "{error}");
        assert!(error.to_string().contains("redis-cluster"), "{error}");
    }

    #[test]
    fn every_service_has_a_unique_name_and_is_in_the_usage() {
        let words: Vec<&str> =
            crate::USAGE.split(|letter: char| !letter.is_alphanumeric() && !"-_".contains(letter)).collect();
        for service in Service::ALL {
            assert_eq!(Service::named(service.name()).unwrap(), service);
            for word in [service.name(), service.variable()] {
                assert!(words.contains(&word), "{word} is not in the usage");
            }
        }
    }
}
