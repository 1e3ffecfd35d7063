//! Lua scripts.

use std::sync::OnceLock;

use redis::Cmd;

/// A script. Sent with EVALSHA, and with EVAL if the node does not have it cached.
///
/// ```
/// static TAKE: urr_kv::Script =
///     urr_kv::Script::new("room.take", "return redis.call('INCR', KEYS[1])");
/// assert_eq!(TAKE.name(), "room.take");
/// ```
#[derive(Debug)]
pub struct Script {
    name: &'static str,
    source: &'static str,
    sha: OnceLock<String>,
}

impl Script {
    /// A script and its name in metrics: `<domain>.<verb>`.
    pub const fn new(name: &'static str, source: &'static str) -> Self {
        Self { name, source, sha: OnceLock::new() }
    }

    /// The name in metrics.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The EVALSHA command.
    pub(crate) fn by_sha(&self, keys: &[impl AsRef<str>], args: &[Arg<'_>]) -> Cmd {
        let sha = self.sha.get_or_init(|| redis::Script::new(self.source).get_hash().to_owned());
        command("EVALSHA", sha, keys, args)
    }

    /// The EVAL command, with the source.
    pub(crate) fn by_source(&self, keys: &[impl AsRef<str>], args: &[Arg<'_>]) -> Cmd {
        command("EVAL", self.source, keys, args)
    }
}

/// One argument of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg<'a> {
    /// A whole number.
    Int(i64),
    /// Text or bytes.
    Bytes(&'a [u8]),
}

impl From<i64> for Arg<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Self::Bytes(text.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Arg<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

/// Estimated bytes per argument: a UUID with prefix and hash tag. Saves reallocations.
const USUAL_KEY_BYTES: usize = 96;

fn command(verb: &str, script: &str, keys: &[impl AsRef<str>], args: &[Arg<'_>]) -> Cmd {
    let parts = keys.len() + args.len();
    let mut command = Cmd::with_capacity(3 + parts, verb.len() + script.len() + parts * USUAL_KEY_BYTES);
    command.arg(verb).arg(script).arg(keys.len());
    for key in keys {
        command.arg(key.as_ref());
    }
    for arg in args {
        match arg {
            Arg::Int(number) => command.arg(number),
            Arg::Bytes(bytes) => command.arg(bytes),
        };
    }
    command
}
