//! Output of commands: results on stdout, errors on stderr. A closed pipe
//! (`urr check-config | head`) is not an error.

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
    // A closed stdout cannot be reported anywhere.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// One line on stderr.
pub(crate) fn complaint(text: fmt::Arguments<'_>) {
    // A closed stderr cannot be reported anywhere.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
