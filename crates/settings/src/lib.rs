//! Typed settings. A crate declares its section with [`settings!`]: one struct has the name, the
//! type with bounds, the default and the doc of each setting. The parsed values, the names of
//! environment variables, the rejection of unknown keys, redaction and docs/config.md are derived
//! from it.
//!
//! Nothing here reads a file or the environment: `app` does, and passes texts to [`Section::read`].

mod addresses;
mod declare;
mod kinds;
mod problems;

pub use addresses::{Email, HostPort, HttpUrl, PostgresUrl, RedisUrl, is_loopback};
pub use kinds::{
    Choice, Count, Days, Kind, List, Millis, Property, REDACTED, Secret, Secs, Size, items, nearest,
};
pub use problems::{Problem, Problems};

/// Prefix of all environment variables.
pub const ENV_PREFIX: &str = "URR_";

/// Description of a setting, independent of its type.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// The dotted key: `sale.hold_secs` is `hold_secs` in the table `[sale]`.
    pub key: &'static str,
    /// The default as text; empty for an optional setting without a default.
    pub default: &'static str,
    /// What the setting does.
    pub doc: &'static str,
    /// Whether the value may come from a file of its own and must not be printed.
    pub secret: bool,
    /// Describes the allowed values.
    pub describe: fn() -> String,
    /// Validates a text. The error completes the sentence "`key = value` …".
    pub check: fn(&str) -> Result<(), String>,
    /// The text with secrets redacted.
    pub show: fn(&str) -> String,
}

impl Info {
    /// A setting of kind `K`.
    pub const fn new<K: Kind>(key: &'static str, default: &'static str, doc: &'static str) -> Self {
        fn check<K: Kind>(text: &str) -> Result<(), String> {
            K::parse(text).map(|_| ())
        }
        Self { key, default, doc, secret: K::SECRET, describe: K::describe, check: check::<K>, show: K::show }
    }

    /// The environment variable that sets it.
    pub fn env(&self) -> String {
        format!("{ENV_PREFIX}{}", self.key.replace('.', "_").to_uppercase())
    }

    /// The table of the file that contains it; empty for the top level.
    pub fn table(&self) -> &'static str {
        self.key.split_once('.').map_or("", |(table, _)| table)
    }
}

/// A table of the file, and its introduction in docs/config.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The name in brackets; empty for the top level.
    pub name: &'static str,
    /// The introduction; empty in further sections of the same table.
    pub about: &'static str,
}

/// A struct of settings. Implemented by [`settings!`].
pub trait Section: Sized {
    /// The tables of this section and of its subsections.
    fn tables() -> Vec<Table>;

    /// The settings of this section and of its subsections.
    fn infos() -> Vec<&'static Info>;

    /// Parses the values. Every text must have passed [`Info::check`].
    fn read(source: &dyn Source) -> Self;
}

/// Where the texts of settings come from.
pub trait Source {
    /// The text that was set, if any.
    fn text(&self, key: &str) -> Option<&str>;

    /// The place that set it, such as `urr.toml:3` or `URR_LISTEN`; `default` if nothing did.
    fn origin(&self, key: &str) -> String;
}

/// No texts: every setting has its default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Defaults;

impl Source for Defaults {
    fn text(&self, _: &str) -> Option<&str> {
        None
    }

    fn origin(&self, _: &str) -> String {
        "default".to_owned()
    }
}

/// The value of one setting.
///
/// # Panics
///
/// If the text does not parse. Callers check all texts with [`Info::check`] first and drop invalid
/// ones.
pub fn value<K: Kind>(source: &dyn Source, info: &Info) -> K::Value {
    K::parse(source.text(info.key).unwrap_or(info.default)).expect("texts are checked when they are loaded")
}

/// The setting with this key, at compile time.
///
/// # Panics
///
/// If there is none.
pub const fn find(infos: &'static [Info], key: &str) -> &'static Info {
    let mut at = 0;
    while at < infos.len() {
        if is_equal(infos[at].key.as_bytes(), key.as_bytes()) {
            return &infos[at];
        }
        at += 1;
    }
    panic!("no setting of the section has this key")
}

const fn is_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}
