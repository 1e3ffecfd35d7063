//! Formats an error and its causes on one line.

use std::{error::Error, fmt::Write as _};

/// Maximum causes written: real chains have three or four, and a cycle would never end.
const MAX_CAUSES: usize = 16;

/// `what failed: why: why that`, for a log line. Omits a cause that only repeats the text before
/// it. Line breaks become spaces, so that input cannot forge a second log line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut last = text.clone();
    let mut next = error.source();
    for _ in 0..MAX_CAUSES {
        let Some(cause) = next else { break };
        next = cause.source();
        let sentence = cause.to_string();
        if sentence != last {
            let _infallible = write!(text, ": {sentence}");
            last = sentence;
        }
    }
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as &(dyn Error + 'static))
        }
    }

    #[test]
    fn each_cause_appears_once_on_one_line() {
        let refused = Layer("connection\nrefused", None);
        let same = Layer("no database", Some(Box::new(refused)));
        let error = Layer("the hold failed", Some(Box::new(Layer("no database", Some(Box::new(same))))));
        assert_eq!(chain(&error), "the hold failed: no database: connection refused");
    }
}
