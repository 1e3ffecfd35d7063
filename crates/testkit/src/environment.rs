//! The only code in the tests that reads the environment.

/// The variable's value, if it is set and not empty.
#[expect(clippy::disallowed_methods, reason = "the environment has the addresses of the stores")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether the variable is `1` or `true`.
pub(crate) fn is_on(name: &str) -> bool {
    variable(name).is_some_and(|value| value == "1" || value == "true")
}
