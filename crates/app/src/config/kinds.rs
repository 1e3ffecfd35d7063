//! The types a setting can have: how each reads from text, describes itself in docs/config.md and prints without
//! giving a secret away.

use std::{fmt, net::SocketAddr, path::PathBuf};

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// A type of setting. Values arrive as text from flags, the environment and the file alike.
pub(crate) trait Kind: Sized {
    /// Whether the text must not be printed, and may come from a file of its own (`*_file`).
    const SECRET: bool = false;

    /// What may stand there, for docs/config.md.
    fn describe() -> String;

    /// Reads the value, or says what is wrong in words that follow "`key = value` …".
    fn parse(text: &str) -> Result<Self, String>;

    /// The text as it may be printed.
    fn show(text: &str) -> String {
        text.to_owned()
    }
}

/// The known name nearest to a misspelt one, if any is near enough to be meant.
pub(crate) fn nearest<'n>(wrong: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    // Below this similarity a suggestion is more often noise than help: `hold` and `hold_secs` score 0.89 and
    // `cors.origins` and `bus.brokers` 0.61.
    const NEAR: f64 = 0.75;
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(wrong, name), name))
        .filter(|(score, _)| *score >= NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// One of a few named things. Made with [`choice!`].
pub(crate) trait Choice: Kind + Copy + 'static {
    /// Every one of them.
    const ALL: &'static [Self];

    /// The name used in configuration, on the command line and in logs.
    fn name(self) -> &'static str;
}

/// Declares an enum whose variants have the names used in configuration, on the command line and in logs.
macro_rules! choice {
    ($(#[$meta:meta])* $vis:vis enum $enum:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $enum { $($(#[$doc])* $variant,)+ }

        impl $crate::config::Choice for $enum {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }

        impl $crate::config::Kind for $enum {
            fn describe() -> String {
                [$(concat!("`", $name, "`")),+].join(", ")
            }

            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    wrong => {
                        let meant = $crate::config::nearest(wrong, [$($name),+])
                            .map(|name| format!("; did you mean `{name}`?"))
                            .unwrap_or_default();
                        Err(format!("is none of {}{meant}", [$($name),+].join(", ")))
                    }
                }
            }
        }
    };
}
pub(crate) use choice;

impl Kind for bool {
    fn describe() -> String {
        "`true` or `false`".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "is neither true nor false".to_owned())
    }
}

impl Kind for SocketAddr {
    fn describe() -> String {
        "address and port".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "is not an address with a port, such as 127.0.0.1:3001".to_owned())
    }
}

impl Kind for PathBuf {
    fn describe() -> String {
        "path".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("is empty; it must be a path".to_owned()) } else { Ok(Self::from(text)) }
    }
}

impl Kind for String {
    fn describe() -> String {
        "text".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

/// A setting that may be left out: empty text means it is.
impl<T: Kind> Kind for Option<T> {
    const SECRET: bool = T::SECRET;

    fn describe() -> String {
        T::describe()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(None) } else { T::parse(text).map(Some) }
    }

    fn show(text: &str) -> String {
        if text.is_empty() { String::new() } else { T::show(text) }
    }
}

/// A whole number between two bounds, both allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Int<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Int<MIN, MAX> {
    /// The number.
    pub(crate) fn get(self) -> u64 {
        self.0
    }

    /// The number as a size or count in memory.
    pub(crate) fn size(self) -> usize {
        usize::try_from(self.0).expect("the bounds of settings are below 2^32")
    }

    /// The number as a 32-bit count.
    pub(crate) fn count(self) -> u32 {
        u32::try_from(self.0).expect("the bounds of settings are below 2^32")
    }
}

impl<const MIN: u64, const MAX: u64> Kind for Int<MIN, MAX> {
    fn describe() -> String {
        format!("{MIN} to {MAX}")
    }

    fn parse(text: &str) -> Result<Self, String> {
        const { assert!(MIN <= MAX && MAX <= u32::MAX as u64, "bounds are in order and fit 32 bits") }
        match text.replace('_', "").parse() {
            Ok(number) if (MIN..=MAX).contains(&number) => Ok(Self(number)),
            Ok(_) => Err(format!("is out of range; it must be between {MIN} and {MAX}")),
            Err(_) => Err(format!("is not a whole number between {MIN} and {MAX}")),
        }
    }
}

/// Several values; in text they are separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct List<T>(pub Vec<T>);

impl<T: Kind> Kind for List<T> {
    const SECRET: bool = T::SECRET;

    fn describe() -> String {
        format!("list of: {}", T::describe())
    }

    fn parse(text: &str) -> Result<Self, String> {
        parts(text).map(T::parse).collect::<Result<_, _>>().map(Self)
    }

    fn show(text: &str) -> String {
        parts(text).map(T::show).collect::<Vec<_>>().join(", ")
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    // A list in a file of its own stands one item per line.
    text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty())
}

/// A secret of at least `MIN` characters. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret<const MIN: usize>(String);

impl<const MIN: usize> Secret<MIN> {
    /// The secret itself: for the code that signs, compares or connects, never for a log.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl<const MIN: usize> fmt::Debug for Secret<MIN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// What is printed in place of a secret.
pub(crate) const REDACTED: &str = "(redacted)";

impl<const MIN: usize> Kind for Secret<MIN> {
    const SECRET: bool = true;

    fn describe() -> String {
        format!("secret of {MIN} characters or more")
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.chars().count() < MIN {
            Err(format!(
                "is too short; it needs {MIN} characters or more, such as from `openssl rand -hex 32`"
            ))
        } else if text.chars().any(char::is_control) {
            Err("contains a line break or another control character".to_owned())
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    fn show(_: &str) -> String {
        REDACTED.to_owned()
    }
}

/// The secret that signing keys are derived from. Too short and too simple ones are refused by whoever derives.
#[derive(Clone, Debug)]
pub(crate) struct SigningSecret(pub urr_passes::Secret);

impl Kind for SigningSecret {
    const SECRET: bool = true;

    fn describe() -> String {
        "secret of 32 bytes or more".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let made = urr_passes::Secret::new(text).map(Self);
        made.map_err(|weak| format!("is too weak: {weak}; make one with `openssl rand -hex 32`"))
    }

    fn show(_: &str) -> String {
        REDACTED.to_owned()
    }
}

/// `id:key`: a key that seals personal data, and the name under which sealed values remember it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PiiKey {
    /// Which key.
    pub id: String,
    /// The key itself.
    pub key: [u8; 32],
}

impl fmt::Debug for PiiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:***", self.id)
    }
}

impl Kind for PiiKey {
    const SECRET: bool = true;

    fn describe() -> String {
        "`id:key`, the key as 32 bytes in base64".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        const WANTED: &str = "is not id:key with 32 bytes in base64, such as from `openssl rand -base64 32`";
        let (id, key) = text.split_once(':').ok_or(WANTED)?;
        let key =
            BASE64_STANDARD.decode(key.trim()).ok().and_then(|key| key.try_into().ok()).ok_or(WANTED)?;
        Ok(Self { id: id.trim().to_owned(), key })
    }

    fn show(text: &str) -> String {
        text.split_once(':').map_or_else(|| REDACTED.to_owned(), |(id, _)| format!("{id}:***"))
    }
}

/// `name=value`, whose value may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Property {
    /// Which property.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=***", self.name)
    }
}

impl Kind for Property {
    const SECRET: bool = true;

    fn describe() -> String {
        "`name=value`".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok(Self { name: name.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err("is not name=value".to_owned()),
        }
    }

    fn show(text: &str) -> String {
        text.split_once('=').map_or_else(|| REDACTED.to_owned(), |(name, _)| format!("{name}=***"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_bounds() {
        assert_eq!(Int::<1, 9_000>::parse("1_000").unwrap().get(), 1_000);
        assert!(Int::<1, 9>::parse("10").unwrap_err().contains("between 1 and 9"));
        assert!(Int::<1, 9>::parse("-1").unwrap_err().contains("whole number"));
        assert!(Int::<1, 9>::parse("1.5").is_err());
        assert!(Int::<1, 9>::parse("").is_err());
    }

    #[test]
    fn secrets_do_not_print_and_must_be_long_enough() {
        let secret = Secret::<8>::parse("hunter2hunter2").unwrap();
        assert_eq!(format!("{secret:?}"), "(redacted)");
        let short = Secret::<8>::parse("hunter2").unwrap_err();
        assert!(short.contains("8 characters") && !short.contains("hunter2"));
    }

    #[test]
    fn keys_of_personal_data_have_a_name_and_32_bytes_and_do_not_print() {
        let text = "2026:q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=";
        let key = PiiKey::parse(text).unwrap();
        assert_eq!((key.id.as_str(), key.key), ("2026", [171; 32]));
        assert_eq!(PiiKey::show(text), "2026:***");
        assert_eq!(format!("{key:?}"), "2026:***");
        for wrong in ["q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=", "2026:q6ur", "2026:hunter2!"] {
            let said = PiiKey::parse(wrong).unwrap_err();
            assert!(said.contains("openssl rand") && !said.contains(wrong), "{said}");
        }
    }

    #[test]
    fn properties_show_their_names_only() {
        let text = "security.protocol=SASL_SSL,\nsasl.password=hunter2=\n";
        let List(properties) = List::<Property>::parse(text).unwrap();
        assert_eq!(properties[1].value, "hunter2=");
        assert!(!format!("{properties:?}").contains("hunter2"));
        assert_eq!(List::<Property>::show(text), "security.protocol=***, sasl.password=***");
        assert_eq!(List::<Property>::show("hunter2"), "(redacted)");
        assert!(List::<Property>::parse("hunter2").is_err());
    }
}
