//! Every text of the pages, in Korean and English.

mod account;
mod common;
mod control;
mod errors;
mod queue;
mod sale;
mod script;

use std::fmt;

use crate::money;

pub(crate) use self::script::{error, script};

/// Declares texts: a key with its Korean and its English form. A key without both does not compile.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($key:ident = $ko:literal, $en:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name {
            $(pub(crate) $key: &'static str,)*
        }

        impl $name {
            pub(super) const KO: Self = Self { $($key: $ko,)* };
            pub(super) const EN: Self = Self { $($key: $en,)* };

            #[cfg(test)]
            pub(super) const ALL: &'static [(&'static str, &'static str, &'static str)] =
                &[$((stringify!($key), $ko, $en),)*];
        }
    };
}
use words;

/// The supported languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lang {
    Ko,
    En,
}

impl Lang {
    pub(crate) const ALL: [Self; 2] = [Self::Ko, Self::En];

    /// The language tag, as in `lang` attributes and the cookie.
    pub(crate) const fn tag(self) -> &'static str {
        match self {
            Self::Ko => "ko",
            Self::En => "en",
        }
    }

    /// The name of the language in itself.
    pub(crate) const fn own_name(self) -> &'static str {
        match self {
            Self::Ko => "한국어",
            Self::En => "English",
        }
    }

    pub(crate) fn named(tag: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lang| lang.tag() == tag)
    }

    /// Picks one of two values.
    pub(crate) fn pick<T>(self, ko: T, en: T) -> T {
        match self {
            Self::Ko => ko,
            Self::En => en,
        }
    }

    /// The texts of this language.
    pub(crate) fn words(self) -> &'static Words {
        match self {
            Self::Ko => &KO,
            Self::En => &EN,
        }
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tag())
    }
}

/// Declares the sets of texts that templates use: a field of [`Words`] for each.
macro_rules! word_sets {
    ($($(#[$doc:meta])* $set:ident: $Set:ident;)*) => {
        $(pub(crate) use self::$set::$Set;)*

        /// The texts that templates use.
        #[derive(Debug)]
        pub(crate) struct Words {
            $($(#[$doc])* pub(crate) $set: $Set,)*
        }

        static KO: Words = Words { $($set: $Set::KO,)* };
        static EN: Words = Words { $($set: $Set::EN,)* };

        /// The texts of every set, by name.
        #[cfg(test)]
        const SETS: &[(&str, &[(&str, &str, &str)])] = &[$((stringify!($set), $Set::ALL),)*];
    };
}

word_sets! {
    /// The layout and error pages.
    common: CommonWords;
    /// Sign-in, registration and the account page.
    account: AccountWords;
    /// Events and their seats.
    sale: SaleWords;
    /// The waiting room.
    queue: QueueWords;
    /// The control room.
    control: ControlWords;
}

/// Replaces `{name}` by its number, and `[one|many]` by the form for the number before it.
pub(crate) fn fill(text: &str, numbers: &[(&str, u64)]) -> String {
    let (mut filled, mut rest, mut last) = (String::with_capacity(text.len()), text, 0);
    while let Some(at) = rest.find(['{', '[']) {
        let end = if rest[at..].starts_with('{') { '}' } else { ']' };
        let Some(inside) = rest[at + 1..].split(end).next() else { break };
        filled.push_str(&rest[..at]);
        if end == '}' {
            last = numbers.iter().find(|(name, _)| *name == inside).map_or(0, |(_, number)| *number);
            filled.push_str(&money::number(last));
        } else {
            let (one, many) = inside.split_once('|').unwrap_or((inside, inside));
            filled.push_str(if last == 1 { one } else { many });
        }
        rest = rest.get(at + inside.len() + 2..).unwrap_or_default();
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = (String, &'static str, &'static str)> {
        let templates = SETS.iter().flat_map(|(set, words)| {
            words.iter().map(move |(key, ko, en)| (format!("{set}.{key}"), *ko, *en))
        });
        templates.chain(script::all().map(|(key, ko, en)| (format!("script.{key}"), *ko, *en)))
    }

    fn is_hangul(letter: char) -> bool {
        ('가'..='힣').contains(&letter)
    }

    fn slots(text: &str) -> Vec<&str> {
        let mut found: Vec<_> =
            text.split('{').skip(1).map(|rest| rest.split('}').next().unwrap_or_default()).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn every_text_exists_in_both_languages() {
        for (key, ko, en) in all() {
            assert!(!ko.trim().is_empty() && !en.trim().is_empty(), "{key} is empty");
            assert!(!en.contains(is_hangul), "{key} has Korean in its English form: {en}");
            assert!(ko.contains(is_hangul), "{key} is not Korean: {ko}");
            assert_eq!(slots(ko), slots(en), "{key} has different placeholders");
        }
    }

    #[test]
    fn plural_forms_follow_the_number() {
        let text = "Up to {each} [seat|seats], {user} per person";
        assert_eq!(fill(text, &[("each", 1), ("user", 4)]), "Up to 1 seat, 4 per person");
        assert_eq!(fill(text, &[("each", 1_000), ("user", 1)]), "Up to 1,000 seats, 1 per person");
        assert_eq!(fill("nothing to fill", &[]), "nothing to fill");
    }

    /// Korean sentences use the formal style (합니다체), never 해요체.
    #[test]
    fn korean_sentences_are_formal() {
        for (key, ko, _) in all() {
            for sentence in ko.split(['.', '?', '!']).map(str::trim).filter(|sentence| !sentence.is_empty()) {
                let asks = ["주세요", "하세요", "두세요", "신가요", "셨네요", "으셨나요"]
                    .iter()
                    .any(|end| sentence.ends_with(end));
                assert!(asks || !sentence.ends_with('요'), "{key}: {ko}");
            }
        }
    }

    #[test]
    fn script_keys_are_unique() {
        let mut keys: Vec<_> = script::all().map(|(key, ..)| *key).collect();
        keys.sort_unstable();
        let all = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }
}
