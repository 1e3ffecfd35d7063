//! SQL statements: one text for both engines, registered so that a test can prepare them all.

use std::{fmt, sync::OnceLock};

/// One SQL statement, declared with [`statements!`](crate::statements). Parameters are `$1`, `$2`,
/// …; for SQLite they are rewritten once to `?1`, `?2`, ….
pub struct Sql {
    name: &'static str,
    text: Text,
    for_sqlite: OnceLock<String>,
}

enum Text {
    Both(&'static str),
    Each { sqlite: &'static str, postgres: &'static str },
    Sqlite(&'static str),
    Postgres(&'static str),
}

impl Sql {
    const fn new(name: &'static str, text: Text) -> Self {
        Self { name, text, for_sqlite: OnceLock::new() }
    }

    /// The same text on both engines.
    pub const fn both(name: &'static str, text: &'static str) -> Self {
        Self::new(name, Text::Both(text))
    }

    /// A text per engine, where the engines differ.
    pub const fn each(name: &'static str, sqlite: &'static str, postgres: &'static str) -> Self {
        Self::new(name, Text::Each { sqlite, postgres })
    }

    /// A statement that only SQLite runs.
    pub const fn only_sqlite(name: &'static str, text: &'static str) -> Self {
        Self::new(name, Text::Sqlite(text))
    }

    /// A statement that only PostgreSQL runs.
    pub const fn only_postgres(name: &'static str, text: &'static str) -> Self {
        Self::new(name, Text::Postgres(text))
    }

    /// Module path and name, for errors and logs.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The text for SQLite; `None` if the statement is PostgreSQL only.
    pub(crate) fn sqlite(&self) -> Option<&str> {
        let text = match self.text {
            Text::Both(text) | Text::Sqlite(text) | Text::Each { sqlite: text, .. } => text,
            Text::Postgres(_) => return None,
        };
        Some(self.for_sqlite.get_or_init(|| number_parameters(text)))
    }

    /// The text for PostgreSQL; `None` if the statement is SQLite only.
    pub(crate) fn postgres(&self) -> Option<&'static str> {
        match self.text {
            Text::Both(text) | Text::Postgres(text) | Text::Each { postgres: text, .. } => Some(text),
            Text::Sqlite(_) => None,
        }
    }
}

impl fmt::Debug for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Rewrites `$n` to `?n`. SQLite treats `$n` as a *name* and numbers names by first appearance, so
/// the order would be wrong. Quoted text such as the JSON path `'$.seat'` is left alone. Comments
/// are removed because they may contain an unbalanced quote.
fn number_parameters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quote = None;
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        if let Some(open) = quote {
            if c == open {
                quote = None;
            }
        } else if c == '-' && next == Some('-') {
            chars.by_ref().find(|c| *c == '\n');
            out.push('\n');
            continue;
        } else if c == '$' && next.is_some_and(|c| c.is_ascii_digit()) {
            out.push('?');
            continue;
        } else if matches!(c, '\'' | '"') {
            quote = Some(c);
        }
        out.push(c);
    }
    out
}

/// Declares statements and registers them in `STATEMENTS`. One test per crate passes that list to
/// [`check_statements`](crate::check_statements).
///
/// ```
/// urr_db::statements! {
///     /// Names a seat.
///     NAME = "select name from seats where id = $1";
///     /// Locks the row until the transaction ends. SQLite has one writer and no row locks.
///     LOCKED = locking "select name from seats where id = $1";
///     /// The engines differ. A hot path may also need a statement of its own per engine.
///     NOW = sqlite "select datetime()" postgres "select now()::text";
/// }
/// # fn main() { assert_eq!(STATEMENTS.len(), 3); let _ = (&NAME, &LOCKED, &NOW); }
/// ```
#[macro_export]
macro_rules! statements {
    ($( $(#[$meta:meta])* $vis:vis $name:ident = $($engine:ident)? $text:literal $(postgres $postgres:literal)? ; )*) => {
        $(
            $(#[$meta])*
            $vis static $name: $crate::Sql =
                $crate::__statement!($name [$($engine)?] $text $(postgres $postgres)?);
        )*
        /// Every statement of this module; one test prepares them all on both engines.
        pub(crate) static STATEMENTS: &[&$crate::Sql] = &[$(&$name),*];
    };
}

/// One statement of [`statements!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __statement {
    ($name:ident [] $text:literal) => {
        $crate::Sql::both(concat!(module_path!(), "::", stringify!($name)), $text)
    };
    ($name:ident [locking] $text:literal) => {
        $crate::Sql::each(
            concat!(module_path!(), "::", stringify!($name)),
            $text,
            concat!($text, " for no key update"),
        )
    };
    ($name:ident [sqlite] $sqlite:literal postgres $postgres:literal) => {
        $crate::Sql::each(concat!(module_path!(), "::", stringify!($name)), $sqlite, $postgres)
    };
    ($name:ident [sqlite] $text:literal) => {
        $crate::Sql::only_sqlite(concat!(module_path!(), "::", stringify!($name)), $text)
    };
    ($name:ident [postgres] $text:literal) => {
        $crate::Sql::only_postgres(concat!(module_path!(), "::", stringify!($name)), $text)
    };
}

/// Maps an enum to a TEXT column. The table's CHECK constraint must list the same values.
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum State { Held, Sold }
/// urr_db::text_enum! { State { Held = "held", Sold = "sold" } }
/// # fn main() { assert_eq!(State::Sold.as_str(), "sold"); }
/// ```
#[macro_export]
macro_rules! text_enum {
    ($type:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        impl $type {
            /// The value stored in the database.
            pub(crate) const fn as_str(&self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl $crate::kernel::Scalar for $type {
            fn to_value(&self) -> $crate::kernel::Value<'_> {
                $crate::kernel::Value::Text(::std::borrow::Cow::Borrowed(self.as_str()))
            }

            fn from_value(
                value: $crate::kernel::Value<'_>,
            ) -> ::std::result::Result<Self, $crate::kernel::WrongValue> {
                match &value {
                    $($crate::kernel::Value::Text(text) if text == $text => Ok(Self::$variant),)+
                    _ => Err($crate::kernel::WrongValue { wanted: concat!("one of", $(" ", $text),+) }),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use urr_kernel::{Scalar as _, Value};

    use super::*;

    #[test]
    fn parameters_are_rewritten_except_in_quotes_and_comments() {
        assert_eq!(
            number_parameters(" select $2, '$1', \"$3\", json_extract(a, '$.x') -- it's $4\n, $10 "),
            "select ?2, '$1', \"$3\", json_extract(a, '$.x') \n, ?10"
        );
    }

    mod declared {
        crate::statements! {
            pub(super) BOTH = "select $1";
            pub(super) EACH = sqlite "select 's', $1" postgres "select 'p', $1";
            pub(super) ONLY = postgres "select pg_current_xact_id()";
        }
    }

    #[test]
    fn statement_has_its_path_as_name_and_a_text_per_engine() {
        assert_eq!(declared::STATEMENTS.len(), 3);
        assert!(declared::BOTH.name().ends_with("tests::declared::BOTH"));
        assert_eq!(declared::EACH.sqlite(), Some("select 's', ?1"));
        assert_eq!(declared::EACH.postgres(), Some("select 'p', $1"));
        assert_eq!(declared::ONLY.sqlite(), None);
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum State {
        Held,
        Sold,
    }
    crate::text_enum! { State { Held = "held", Sold = "sold" } }

    #[test]
    fn text_enum_round_trips_and_rejects_unknown_values() {
        assert_eq!(State::Held.to_value(), Value::Text("held".into()));
        assert_eq!(State::from_value(Value::Text("sold".into())), Ok(State::Sold));
        assert_eq!(
            State::from_value(Value::Text("lost".into())).unwrap_err().to_string(),
            "the column does not hold one of held sold"
        );
    }
}
