//! Why a command failed, for the operator.

use std::fmt;

use crate::config::Problem;

/// One line per problem.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub Vec<String>);

impl Failure {
    /// One line.
    pub(crate) fn new(line: impl Into<String>) -> Self {
        Self(vec![line.into()])
    }

    /// What failed, with the chain of causes.
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

/// Errors of `urr-stampede`: the chain of causes, which may end with lines of a log.
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
