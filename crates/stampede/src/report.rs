//! The result of a run, printed by the command line.

use std::fmt;

use crate::machine::Machine;

/// The outcome of a benchmark or of a simulated crowd.
#[derive(Debug, Default)]
pub struct Report {
    /// Figures, line by line.
    pub text: String,
    /// Failed checks; empty if all passed.
    pub faults: Vec<String>,
    /// The signal that ended the run early.
    pub interrupted_by: Option<u8>,
}

impl Report {
    /// Adds a line.
    pub(crate) fn line(&mut self, line: impl fmt::Display) {
        self.text.push_str(&line.to_string());
        self.text.push('\n');
    }

    /// Adds machine and build, and the command that repeats the run.
    pub(crate) fn conditions(&mut self, command: impl fmt::Display) {
        for line in Machine::here().lines() {
            self.line(line);
        }
        self.line(format_args!("again    {command}"));
    }
}
