//! What the program says to the person who typed the command. Answers go to stdout, complaints to stderr; a reader
//! that went away (`urr check-config | head`) is not an error.

use std::{fmt, io::Write as _};

/// Writes one line to stdout.
macro_rules! say {
    ($($arg:tt)*) => { $crate::say::line(format_args!($($arg)*)) };
}

/// Writes one line to stderr.
macro_rules! complain {
    ($($arg:tt)*) => { $crate::say::complaint(format_args!($($arg)*)) };
}

pub(crate) use {complain, say};

/// One line on stdout.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    // Nobody is left to be told when stdout is closed.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// One line on stderr.
pub(crate) fn complaint(text: fmt::Arguments<'_>) {
    // Nobody is left to be told when stderr is closed.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
