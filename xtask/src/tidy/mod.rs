//! Rules that neither the compiler nor clippy checks. A finding has a location, a problem and a
//! remedy.
//!
//! The rules also run as a test, so `cargo test` reports what `cargo xtask tidy` reports. Each rule
//! has its own test with a fixture that violates it.

mod calls;
mod codes;
mod layers;
mod lex;
mod migrations;
mod papers;
mod shape;
mod sizes;
mod sources;
mod statements;
mod tree;
mod variables;

use std::{fmt, process::ExitCode};

use anyhow::Result;

use tree::Tree;

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    wrong: String,
    remedy: String,
}

impl Finding {
    fn new(path: &str, line: usize, wrong: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, wrong: wrong.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.wrong, self.remedy)
    }
}

pub(crate) fn main() -> Result<ExitCode> {
    let findings = findings()?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    if findings.is_empty() {
        eprintln!("tidy: no findings");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("tidy: {} findings", findings.len());
    Ok(ExitCode::FAILURE)
}

fn findings() -> Result<Vec<Finding>> {
    let tree = Tree::load()?;
    let packages = layers::packages()?;
    let mut findings = layers::check(&tree, &packages);
    let rules = [
        calls::check,
        codes::check,
        migrations::check,
        papers::check,
        shape::check,
        sizes::check,
        sources::check,
        statements::check,
        variables::check,
    ];
    findings.extend(rules.iter().flat_map(|check| check(&tree)));
    findings.sort();
    Ok(findings)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_has_no_findings() {
        let findings = super::findings().unwrap();
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }
}
