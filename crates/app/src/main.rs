//! The `urr` binary.
fn main() {}
