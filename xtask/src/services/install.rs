//! Installs the packages of the services with apt as root; otherwise prints what to install.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use super::{Service, nginx, postgres};
use crate::command::{find, output};

/// The Debian packages that a service needs and that are not installed.
fn packages(service: Service) -> Vec<&'static str> {
    let absent = |program: &str, package| find(program).is_none().then_some(package);
    match service {
        Service::Postgres => postgres::binaries().is_none().then_some("postgresql").into_iter().collect(),
        Service::Redis | Service::RedisCluster => {
            let needed = [absent("redis-server", "redis-server"), absent("redis-cli", "redis-tools")];
            needed.into_iter().flatten().collect()
        }
        Service::Nginx => nginx::program().is_none().then_some("nginx-light").into_iter().collect(),
        Service::Kafka | Service::DynamoDb | Service::Sqs => {
            [absent("java", "default-jre-headless"), absent("mvn", "maven")].into_iter().flatten().collect()
        }
    }
}

/// Installs what `services` need. Returns the services that are still incomplete, each with a
/// remedy.
pub(crate) fn whatever_is_missing(services: &[Service]) -> Vec<(Service, String)> {
    let mut needed: Vec<&str> = services.iter().flat_map(|service| packages(*service)).collect();
    needed.sort_unstable();
    needed.dedup();
    if needed.is_empty() {
        return Vec::new();
    }
    eprintln!("services: installing {}", needed.join(", "));
    let failure = apt_install(&needed).err();
    services
        .iter()
        .map(|service| (*service, packages(*service)))
        .filter(|(_, missing)| !missing.is_empty())
        .map(|(service, missing)| {
            let why = failure.as_ref().map(|error| format!("{error:#}")).unwrap_or_default();
            (service, format!("{} missing: {why}", missing.join(" and ")))
        })
        .collect()
}

fn apt_install(packages: &[&str]) -> Result<()> {
    let install = format!("apt-get install -y {}", packages.join(" "));
    if find("apt-get").is_none() {
        bail!("apt-get is not available; install the equivalent of `{install}`");
    }
    if output(Command::new("id").arg("-u"))?.trim() != "0" {
        bail!("run `sudo {install}`");
    }
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        // At run level 1, Debian's scripts do not start servers on the default ports.
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("RUNLEVEL", "1")
            .stdin(Stdio::null())
            .args(words);
        output(&mut command).map(drop)
    };
    let mut words = vec!["install", "-y", "--no-install-recommends"];
    words.extend(packages);
    // On a fresh machine the package lists are empty or outdated.
    apt(&["update"])?;
    apt(&words)
}
