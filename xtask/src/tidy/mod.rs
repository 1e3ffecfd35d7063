//! Rules that neither the compiler nor clippy knows. Each finding says where, what is wrong and what to do.
//!
//! The same rules run as a test, so `cargo test` finds what `cargo xtask tidy` would. Every rule has a test of its own
//! with a fixture that breaks it: a rule that cannot fail holds nothing.

mod calls;
mod codes;
mod layers;
mod lex;
mod migrations;
mod papers;
mod sizes;
mod sources;
mod statements;
mod tree;
mod variables;

use std::{fmt, process::ExitCode};

use anyhow::Result;

use tree::Tree;

/// Something that breaks a rule.
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
        eprintln!("tidy: nothing found");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("tidy: {} found", findings.len());
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
    fn the_tree_is_tidy() {
        let findings = super::findings().unwrap();
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }
}
