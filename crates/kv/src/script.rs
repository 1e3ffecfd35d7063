//! Lua that runs inside Redis.

use std::sync::OnceLock;

use redis::Cmd;

/// A script. It is sent by its hash; a node that does not know it gets the source once and remembers it.
///
/// ```
/// static TAKE: urr_kv::Script = urr_kv::Script::new("room.take", "return redis.call('INCR', KEYS[1])");
/// assert_eq!(TAKE.name(), "room.take");
/// ```
#[derive(Debug)]
pub struct Script {
    name: &'static str,
    source: &'static str,
    sha: OnceLock<String>,
}

impl Script {
    /// A script with the name it has in metrics: `<domain>.<verb>`.
    pub const fn new(name: &'static str, source: &'static str) -> Self {
        Self { name, source, sha: OnceLock::new() }
    }

    /// The name in metrics.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The call by hash.
    pub(crate) fn by_sha(&self, keys: &[impl AsRef<str>], args: &[Arg<'_>]) -> Cmd {
        let sha = self.sha.get_or_init(|| redis::Script::new(self.source).get_hash().to_owned());
        command("EVALSHA", sha, keys, args)
    }

    /// The call that brings the source along.
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

/// Room for a UUID, its prefix and its hash tag, so that building the usual command allocates once.
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
