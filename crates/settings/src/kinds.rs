//! Kinds of settings: how each is parsed, described in docs/config.md and printed without secrets.

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

/// A kind of setting. Flags, the environment and the file all provide text.
pub trait Kind {
    /// The parsed type.
    type Value;

    /// Whether the value must not be printed and may come from a file of its own (`*_file`).
    const SECRET: bool = false;

    /// Describes the allowed values, for docs/config.md.
    fn describe() -> String;

    /// Parses a value. The error completes the sentence "`key = value` …".
    fn parse(text: &str) -> Result<Self::Value, String>;

    /// The text with secrets redacted.
    fn show(text: &str) -> String {
        text.to_owned()
    }
}

/// The known name closest to a misspelt one, if it is similar enough.
pub fn nearest<'n>(wrong: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    // Below this similarity suggestions are mostly noise: `hold` and `hold_secs` score 0.89,
    // `cors.origins` and `bus.brokers` 0.61.
    const NEAR: f64 = 0.75;
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(wrong, name), name))
        .filter(|(score, _)| *score >= NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// One of several names. Declared with [`choice!`](crate::choice).
pub trait Choice: Kind<Value = Self> + Copy + 'static {
    /// All variants.
    const ALL: &'static [Self];

    /// The name used in configuration, on the command line and in logs.
    fn name(self) -> &'static str;
}

/// Declares an enum whose variants have the names used in configuration, on the command line and in
/// logs.
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* $vis:vis enum $enum:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $enum { $($(#[$doc])* $variant,)+ }

        impl $crate::Choice for $enum {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }

        impl $crate::Kind for $enum {
            type Value = Self;

            fn describe() -> String {
                [$(concat!("`", $name, "`")),+].join(", ")
            }

            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    wrong => {
                        let meant = $crate::nearest(wrong, [$($name),+])
                            .map(|name| format!("; did you mean `{name}`?"))
                            .unwrap_or_default();
                        Err(format!("is none of {}{meant}", [$($name),+].join(", ")))
                    }
                }
            }
        }
    };
}
impl Kind for bool {
    type Value = Self;

    fn describe() -> String {
        "`true` or `false`".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "is neither true nor false".to_owned())
    }
}

impl Kind for SocketAddr {
    type Value = Self;

    fn describe() -> String {
        "address and port".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "is not an address with a port, such as 127.0.0.1:3001".to_owned())
    }
}

impl Kind for PathBuf {
    type Value = Self;

    fn describe() -> String {
        "path".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("is empty; it must be a path".to_owned()) } else { Ok(Self::from(text)) }
    }
}

impl Kind for String {
    type Value = Self;

    fn describe() -> String {
        "text".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

/// An optional setting: empty text means absent.
impl<T: Kind> Kind for Option<T> {
    type Value = Option<T::Value>;

    const SECRET: bool = T::SECRET;

    fn describe() -> String {
        T::describe()
    }

    fn parse(text: &str) -> Result<Self::Value, String> {
        if text.is_empty() { Ok(None) } else { T::parse(text).map(Some) }
    }

    fn show(text: &str) -> String {
        if text.is_empty() { String::new() } else { T::show(text) }
    }
}

fn whole(text: &str, min: u64, max: u64) -> Result<u64, String> {
    match text.replace('_', "").parse() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        Ok(_) => Err(format!("is out of range; it must be between {min} and {max}")),
        Err(_) => Err(format!("is not a whole number between {min} and {max}")),
    }
}

/// Declares kinds of integers with inclusive bounds, and the type each one is converted to.
macro_rules! numbers {
    ($($(#[$meta:meta])* $name:ident => $value:ty: $make:expr;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name<const MIN: u64, const MAX: u64> {}

        impl<const MIN: u64, const MAX: u64> Kind for $name<MIN, MAX> {
            type Value = $value;

            fn describe() -> String {
                format!("{MIN} to {MAX}")
            }

            fn parse(text: &str) -> Result<$value, String> {
                const { assert!(MIN <= MAX && MAX <= u32::MAX as u64, "bounds must be ordered and fit 32 bits") }
                whole(text, MIN, MAX).map($make)
            }
        }
    )*};
}

numbers! {
    /// A number.
    Count => u32: |number| u32::try_from(number).expect("bounds fit 32 bits");
    /// A size or capacity.
    Size => usize: |number| usize::try_from(number).expect("bounds fit 32 bits");
    /// A time in milliseconds.
    Millis => Duration: Duration::from_millis;
    /// A time in seconds.
    Secs => Duration: Duration::from_secs;
    /// A time in days.
    Days => Duration: |days| Duration::from_hours(24 * days);
}

/// Several values, separated by commas.
#[derive(Clone, Copy, Debug)]
pub struct List<T>(std::marker::PhantomData<T>);

impl<T: Kind> Kind for List<T> {
    type Value = Vec<T::Value>;

    const SECRET: bool = T::SECRET;

    fn describe() -> String {
        format!("list of: {}", T::describe())
    }

    fn parse(text: &str) -> Result<Self::Value, String> {
        items(text).map(T::parse).collect()
    }

    fn show(text: &str) -> String {
        items(text).map(T::show).collect::<Vec<_>>().join(", ")
    }
}

/// The items of a list.
pub fn items(text: &str) -> impl Iterator<Item = &str> {
    // In a file of its own a list has one item per line.
    text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty())
}

/// A secret of at least `MIN` characters. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<const MIN: usize>(String);

impl<const MIN: usize> Secret<MIN> {
    /// The secret itself, for code that signs, compares or connects. Never log it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl<const MIN: usize> fmt::Debug for Secret<MIN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// Printed in place of a secret.
pub const REDACTED: &str = "(redacted)";

impl<const MIN: usize> Kind for Secret<MIN> {
    type Value = Self;

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

/// `name=value`; the value may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Property {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=***", self.name)
    }
}

impl Kind for Property {
    type Value = Self;

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
    fn numbers_out_of_bounds_are_rejected() {
        assert_eq!(Count::<1, 9_000>::parse("1_000"), Ok(1_000));
        assert_eq!(Size::<1, 9_000>::parse("7"), Ok(7));
        assert_eq!(Secs::<1, 90>::parse("60"), Ok(Duration::from_mins(1)));
        assert_eq!(Millis::<1, 90>::parse("60"), Ok(Duration::from_millis(60)));
        assert_eq!(Days::<1, 90>::parse("2"), Ok(Duration::from_hours(48)));
        assert!(Count::<1, 9>::parse("10").unwrap_err().contains("between 1 and 9"));
        assert!(Count::<1, 9>::parse("-1").unwrap_err().contains("whole number"));
        assert!(Count::<1, 9>::parse("1.5").is_err());
        assert!(Count::<1, 9>::parse("").is_err());
    }

    #[test]
    fn secrets_are_redacted_and_have_a_minimum_length() {
        let secret = Secret::<8>::parse("hunter2hunter2").unwrap();
        assert_eq!(format!("{secret:?}"), "(redacted)");
        let short = Secret::<8>::parse("hunter2").unwrap_err();
        assert!(short.contains("8 characters") && !short.contains("hunter2"));
    }

    #[test]
    fn properties_show_their_names_only() {
        let text = "security.protocol=SASL_SSL,\nsasl.password=hunter2=\n";
        let properties = List::<Property>::parse(text).unwrap();
        assert_eq!(properties[1].value, "hunter2=");
        assert!(!format!("{properties:?}").contains("hunter2"));
        assert_eq!(List::<Property>::show(text), "security.protocol=***, sasl.password=***");
        assert_eq!(List::<Property>::show("hunter2"), "(redacted)");
        assert!(List::<Property>::parse("hunter2").is_err());
    }
}
