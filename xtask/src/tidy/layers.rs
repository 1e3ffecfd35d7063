//! Allowed dependencies between the crates, checked against `cargo metadata`.

use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Finding, calls, tree::Tree};
use crate::{ambient, command::output};

/// Layers 0 and 1 and the contracts: what a domain may depend on. A crate with a contract of its
/// name is a domain. Domains never depend on each other; only the app depends on more than one.
const GROUND: &[&str] = &[
    "kernel",
    "settings",
    "telemetry",
    "passes",
    "http",
    "rpc",
    "db",
    "kv",
    "aws",
    "jobs",
    "bus",
    "mail",
    "contracts",
];

/// Allowed dependencies of the other crates.
const LAYERS: &[(&str, &[&str])] = &[
    ("kernel", &[]),
    ("settings", &["kernel"]),
    ("telemetry", &["kernel", "settings"]),
    ("passes", &["kernel"]),
    ("http", &["kernel", "settings", "telemetry"]),
    ("rpc", &["kernel", "telemetry", "http"]),
    ("db", &["kernel", "settings", "telemetry"]),
    ("kv", &["kernel", "settings", "telemetry"]),
    ("aws", &["kernel", "telemetry"]),
    ("jobs", &["kernel", "telemetry", "db"]),
    ("bus", &["kernel", "settings", "telemetry", "db", "jobs"]),
    ("mail", &["kernel", "settings", "telemetry", "db", "jobs"]),
    ("contracts", &["kernel", "rpc"]),
    ("gateway", &["kernel", "settings", "telemetry", "passes", "http", "contracts", "kv"]),
    ("site", &["kernel", "passes", "http", "rpc", "contracts"]),
    // Tier 1 alone, as a Lambda function; its tests open rooms like an operator.
    ("lambda", &["kernel", "telemetry", "passes", "http", "rpc", "aws", "jobs", "contracts", "vwr"]),
    ("testkit", &["kernel", "passes", "http", "rpc", "db", "kv", "contracts"]),
    // The load generator uses the public HTTP API. In-process benchmarks reach domains through
    // traits that the app implements; they use `http`, `db` and `jobs` directly.
    ("stampede", &["kernel", "passes", "http", "rpc", "db", "jobs", "contracts"]),
    // It sends tokens that no server would sign.
    ("e2e", &["kernel", "passes", "stampede", "testkit"]),
    ("xtask", &[]),
];

/// Whether `me` may depend on `other`; `None` if `me` belongs to no layer.
fn may_know(domains: &[String], me: &str, other: &str) -> Option<bool> {
    let is_domain = |name: &str| domains.iter().any(|domain| domain == name);
    match me {
        "app" => {
            let others = ["gateway", "site", "stampede"];
            Some(GROUND.contains(&other) || is_domain(other) || others.contains(&other))
        }
        _ if is_domain(me) => Some(GROUND.contains(&other)),
        _ => LAYERS.iter().find(|(name, _)| *name == me).map(|(_, allowed)| allowed.contains(&other)),
    }
}

/// Drivers and the crates that may use them: a driver used by one crate can be replaced.
const DRIVERS: &[(&str, &[&str])] = &[
    ("redis", &["kv"]),
    ("fred", &["kv"]),
    ("rdkafka", &["bus"]),
    ("rdkafka-sys", &["bus"]),
    ("aws-config", &["aws"]),
    ("aws-sdk-dynamodb", &["aws"]),
    ("aws-sdk-sqs", &["aws"]),
    ("aws-smithy-http-client", &["aws"]),
    ("lambda_http", &["lambda"]),
    ("lettre", &["mail"]),
    ("rusqlite", &["db"]),
    ("libsqlite3-sys", &["db"]),
    // testkit creates the databases of the tests.
    ("tokio-postgres", &["db", "testkit"]),
    ("tokio-postgres-rustls", &["db"]),
    ("deadpool-postgres", &["db"]),
];

/// One workspace member and its dependencies.
pub(super) struct Package {
    name: String,
    needs: Vec<Dependency>,
}

struct Dependency {
    name: String,
    only_for_tests: bool,
}

/// The name of a workspace package without the prefix `urr-`; `None` for third-party packages.
fn ours(name: &str) -> Option<&str> {
    name.strip_prefix("urr-").or_else(|| (name == "xtask").then_some(name))
}

/// Required in every manifest.
const LINTS: &str = "[lints]\nworkspace = true\n";

pub(super) fn packages() -> Result<Vec<Package>> {
    let mut cargo = Command::new(ambient::variable("CARGO").unwrap_or_else(|| "cargo".to_owned()));
    cargo.current_dir(ambient::root()).args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&output(&mut cargo)?)?;
    parse(&metadata).context("cannot parse the output of cargo metadata")
}

fn parse(metadata: &Value) -> Option<Vec<Package>> {
    let package = |package: &Value| {
        let needs = package["dependencies"].as_array()?.iter().map(|dependency| {
            let name = dependency["name"].as_str()?.to_owned();
            Some(Dependency { name, only_for_tests: dependency["kind"] == "dev" })
        });
        Some(Package { name: package["name"].as_str()?.to_owned(), needs: needs.collect::<Option<_>>()? })
    };
    metadata["packages"].as_array()?.iter().map(package).collect()
}

pub(super) fn check(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let (domains, mut findings) = (calls::domains(tree), Vec::new());
    for package in packages {
        let me = ours(&package.name).unwrap_or(&package.name);
        let manifest =
            if me == "xtask" { "xtask/Cargo.toml".to_owned() } else { format!("crates/{me}/Cargo.toml") };
        let line = |needle: &str| tree.get(&manifest).map_or(1, |file| file.line_of(needle));
        if may_know(&domains, me, me).is_none() {
            let remedy =
                "declare its service in crates/contracts, or add it to LAYERS in xtask/src/tidy/layers.rs";
            findings.push(Finding::new(&manifest, 1, format!("{me} belongs to no layer"), remedy));
            continue;
        }
        if tree.get(&manifest).is_some_and(|file| !file.text.contains(LINTS)) {
            let remedy = "add `[lints]` and `workspace = true`";
            findings.push(Finding::new(
                &manifest,
                1,
                format!("{me} is outside the workspace's lints"),
                remedy,
            ));
        }
        for dependency in &package.needs {
            let problem = ours(&dependency.name)
                .and_then(|other| wrong_layer(&domains, me, other, dependency.only_for_tests))
                .or_else(|| wrong_driver(me, &dependency.name));
            if let Some((wrong, remedy)) = problem {
                findings.push(Finding::new(&manifest, line(&dependency.name), wrong, remedy));
            }
        }
    }
    findings
}

fn wrong_layer(domains: &[String], me: &str, other: &str, only_for_tests: bool) -> Option<(String, String)> {
    let for_tests = only_for_tests && other == "testkit";
    (!for_tests && may_know(domains, me, other) != Some(true)).then(|| {
        let remedy = "move the shared code to a lower layer, or use the contracts or a message";
        (format!("{me} must not depend on {other}"), remedy.to_owned())
    })
}

fn wrong_driver(me: &str, driver: &str) -> Option<(String, String)> {
    let (_, owners) = DRIVERS.iter().find(|(name, _)| *name == driver)?;
    (!owners.contains(&me)).then(|| {
        let wrong = format!("only {} may depend on {driver}", owners.join(" and "));
        (wrong, format!("use the API of {}", owners[0]))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(name: &str, dependencies: &[(&str, Option<&str>)]) -> Vec<String> {
        let dependencies: Vec<Value> =
            dependencies.iter().map(|(name, kind)| json!({"name": name, "kind": kind})).collect();
        let packages = parse(&json!({"packages": [{"name": name, "dependencies": dependencies}]})).unwrap();
        check(&Tree::of(&calls::CONTRACTS), &packages).into_iter().map(|finding| finding.wrong).collect()
    }

    #[test]
    fn a_domain_may_not_know_another() {
        assert_eq!(found("urr-tickets", &[("urr-catalog", None)]), ["tickets must not depend on catalog"]);
        assert_eq!(
            found("urr-tickets", &[("urr-catalog", Some("dev"))]),
            ["tickets must not depend on catalog"]
        );
        assert!(
            found("urr-tickets", &[("urr-contracts", None), ("urr-db", None), ("serde", None)]).is_empty()
        );
        assert!(found("urr-app", &[("urr-catalog", None), ("urr-tickets", None)]).is_empty());
        assert!(
            found("urr-telemetry", &[("http", None)]).is_empty(),
            "the third-party crate of the same name is allowed"
        );
    }

    #[test]
    fn no_crate_depends_on_a_higher_layer() {
        assert_eq!(found("urr-db", &[("urr-bus", None)]), ["db must not depend on bus"]);
        assert_eq!(found("urr-contracts", &[("urr-db", None)]), ["contracts must not depend on db"]);
        assert_eq!(found("urr-gateway", &[("urr-db", None)]), ["gateway must not depend on db"]);
    }

    #[test]
    fn stampede_depends_on_no_domain_and_only_the_app_on_stampede() {
        assert_eq!(found("urr-stampede", &[("urr-queue", None)]), ["stampede must not depend on queue"]);
        assert_eq!(found("urr-stampede", &[("urr-app", None)]), ["stampede must not depend on app"]);
        assert_eq!(found("urr-tickets", &[("urr-stampede", None)]), ["tickets must not depend on stampede"]);
        assert!(found("urr-app", &[("urr-stampede", None)]).is_empty());
    }

    #[test]
    fn the_testkit_is_for_tests_only() {
        assert_eq!(found("urr-db", &[("urr-testkit", None)]), ["db must not depend on testkit"]);
        assert!(found("urr-db", &[("urr-testkit", Some("dev"))]).is_empty());
    }

    #[test]
    fn a_driver_belongs_to_one_crate() {
        assert_eq!(found("urr-tickets", &[("redis", None)]), ["only kv may depend on redis"]);
        assert_eq!(found("urr-e2e", &[("rusqlite", Some("dev"))]), ["only db may depend on rusqlite"]);
        assert!(found("urr-testkit", &[("tokio-postgres", None)]).is_empty());
    }

    #[test]
    fn a_new_crate_must_be_given_a_layer() {
        assert_eq!(found("urr-lottery", &[]), ["lottery belongs to no layer"]);
    }

    #[test]
    fn a_new_crate_must_use_the_workspace_lints() {
        let packages = parse(&json!({"packages": [{"name": "urr-kv", "dependencies": []}]})).unwrap();
        let wrong = |manifest: &str| {
            let tree = Tree::of(&[("crates/kv/Cargo.toml", manifest)]);
            check(&tree, &packages).into_iter().map(|finding| finding.wrong).collect::<Vec<_>>()
        };
        assert_eq!(wrong("[package]\n"), ["kv is outside the workspace's lints"]);
        assert!(wrong("[package]\n\n[lints]\nworkspace = true\n").is_empty());
    }

    #[test]
    fn a_finding_has_the_line_of_the_manifest() {
        let tree = Tree::of(&[(
            "crates/kv/Cargo.toml",
            "[dependencies]\nurr-db.workspace = true\n\n[lints]\nworkspace = true\n",
        )]);
        let packages = parse(
            &json!({"packages": [{"name": "urr-kv", "dependencies": [{"name": "urr-db", "kind": null}]}]}),
        );
        let findings = check(&tree, &packages.unwrap());
        assert_eq!((findings[0].path.as_str(), findings[0].line), ("crates/kv/Cargo.toml", 2));
    }
}
