//! Why a command failed, in lines a person can act on.

use std::fmt;

use crate::config::Problem;

/// One line per thing that is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub Vec<String>);

impl Failure {
    /// One line.
    pub(crate) fn new(line: impl Into<String>) -> Self {
        Self(vec![line.into()])
    }

    /// What was tried, and the chain of why it failed.
    pub(crate) fn because(what: impl fmt::Display, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(format!("{what}: {}", urr_telemetry::chain(error)))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Failure {}

/// What `urr-stampede` reports: the chain of causes, which may have lines of a log at its end.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self(format!("{error:#}").lines().map(str::to_owned).collect())
    }
}

impl From<Vec<Problem>> for Failure {
    fn from(problems: Vec<Problem>) -> Self {
        Self(problems.into_iter().map(|problem| problem.to_string()).collect())
    }
}
