//! The services that the tests of a crate use, declared in its manifest:
//!
//! ```toml
//! [package.metadata.urr]
//! services = ["postgres", "redis"]
//! ```
//!
//! A crate without this table uses none.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Service;
use crate::manifests::packages;

/// The services of one crate, named with or without the prefix `urr-`.
pub(super) fn of(name: &str) -> Result<Vec<Service>> {
    let packages = packages()?;
    let full = format!("urr-{name}");
    let package = packages.iter().find(|package| package["name"] == name || package["name"] == full);
    declared(package.with_context(|| format!("no crate of the workspace is called {name:?}"))?)
}

/// The names of the crates whose tests use Kafka.
pub(crate) fn with_kafka() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for package in packages()? {
        if declared(&package)?.contains(&Service::Kafka) {
            names.extend(package["name"].as_str().map(str::to_owned));
        }
    }
    Ok(names)
}

fn declared(package: &Value) -> Result<Vec<Service>> {
    let list = &package["metadata"]["urr"]["services"];
    if list.is_null() {
        return Ok(Vec::new());
    }
    let names = list.as_array().map(|list| list.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    let names = names.flatten().with_context(|| {
        format!("{}: package.metadata.urr.services is a list of names", package["manifest_path"])
    })?;
    names.into_iter().map(Service::named).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use serde_json::json;

    use super::*;

    /// What a test calls to use a service.
    const ASKED_WITH: &[(&str, Service)] = &[
        ("fresh_postgres(", Service::Postgres),
        ("fresh_database(", Service::Postgres),
        ("services::postgres(", Service::Postgres),
        ("DbKind::Postgres", Service::Postgres),
        ("postgres_behind_proxy(", Service::Postgres),
        ("redis()?", Service::Redis),
        ("redis_cluster()?", Service::RedisCluster),
        ("services::redis(", Service::Redis),
        ("services::redis_cluster(", Service::RedisCluster),
        ("services::kafka(", Service::Kafka),
        ("services::dynamodb(", Service::DynamoDb),
        ("services::sqs(", Service::Sqs),
        ("services::nginx(", Service::Nginx),
    ];

    fn sources(dir: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                found.extend(sources(&path));
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(fs::read_to_string(&path).unwrap());
            }
        }
        found
    }

    /// Otherwise `./test CRATE` would skip tests, and only the full run would notice.
    #[test]
    fn every_crate_declares_the_services_that_its_tests_use() {
        let packages = packages().unwrap();
        assert!(packages.len() > 20, "{}", packages.len());
        let mut declarations = 0;
        let others = ["xtask", "urr-testkit"].map(Value::from);
        for package in packages.iter().filter(|package| !others.contains(&package["name"])) {
            let declared = declared(package).unwrap();
            declarations += declared.len();
            let dir = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
            let sources = sources(dir);
            for (call, service) in ASKED_WITH {
                let asks = sources.iter().any(|text| text.contains(call));
                assert!(
                    !asks || declared.contains(service),
                    "{} asks for {} and does not declare it in package.metadata.urr.services",
                    package["name"],
                    service.name()
                );
            }
        }
        assert!(declarations > 0);
    }

    #[test]
    fn a_crate_without_a_declaration_uses_no_service() {
        assert_eq!(declared(&json!({ "metadata": null })).unwrap(), []);
        let some = json!({ "metadata": { "urr": { "services": ["redis", "kafka"] } } });
        assert_eq!(declared(&some).unwrap(), [Service::Redis, Service::Kafka]);
    }

    #[test]
    fn a_malformed_declaration_is_an_error() {
        for services in [json!("redis"), json!([1]), json!(["mysql"])] {
            let package = json!({ "metadata": { "urr": { "services": services } } });
            declared(&package).unwrap_err();
        }
    }

    #[test]
    fn a_crate_is_found_with_and_without_its_prefix() {
        assert_eq!(of("kernel").unwrap(), []);
        assert_eq!(of("urr-kernel").unwrap(), []);
        assert!(of("nothing").unwrap_err().to_string().contains("\"nothing\""));
    }
}
