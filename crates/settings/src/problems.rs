//! Reports settings that are valid alone but do not fit together.

use std::fmt;

use crate::{Info, Source};

/// One problem, in one line: where it came from, what is wrong, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(pub String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Collects problems, so that one run reports them all.
pub struct Problems<'s> {
    source: &'s dyn Source,
    /// The problems found so far.
    pub found: Vec<Problem>,
}

impl<'s> Problems<'s> {
    /// No problems yet.
    pub fn new(source: &'s dyn Source) -> Self {
        Self { source, found: Vec::new() }
    }

    /// Whether the setting was set to any value.
    pub fn is_set(&self, info: &Info) -> bool {
        self.source.text(info.key).is_some()
    }

    /// Reports a setting that is set although it has no effect, because of `why`.
    pub fn stray(&mut self, info: &Info, why: &str) {
        if self.is_set(info) {
            self.about(info, &format!("`{}` {why}", info.key));
        }
    }

    /// Reports a setting that is not set although `why` requires it.
    pub fn missing(&mut self, info: &Info, why: &str) {
        let file = if info.secret { format!(" or {}_FILE", info.env()) } else { String::new() };
        let fix = format!("set it in the file or as {}{file}", info.env());
        self.add(format!("`{}` is not set, but {why}; {fix}", info.key));
    }

    /// Reports a problem with a setting, with the place it came from.
    pub fn about(&mut self, info: &Info, what: &str) {
        self.add(format!("{}: {what}", self.source.origin(info.key)));
    }

    /// Reports any other problem.
    pub fn add(&mut self, what: String) {
        self.found.push(Problem(what));
    }
}

impl fmt::Debug for Problems<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Problems").field("found", &self.found).finish_non_exhaustive()
    }
}
