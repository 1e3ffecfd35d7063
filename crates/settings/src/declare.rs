//! The macro that declares a section.

/// Declares a struct of settings.
///
/// ```
/// urr_settings::settings! {
///     /// Settings of ticket sales.
///     pub struct Settings in "sale" "Ticket sales." {
///         /// Seconds an unpaid reservation keeps its seats.
///         pub hold("hold_secs"): urr_settings::Secs<5, 3_600> = "300",
///         /// Seats of one order.
///         pub seats: urr_settings::Count<1, 100> = "4",
///     }
/// }
/// assert_eq!(Settings::default().hold, std::time::Duration::from_secs(300));
/// ```
///
/// Each field has a doc comment (the text in docs/config.md, of one or more lines), a name, the key
/// if it differs from the name, a [`Kind`](crate::Kind) and a default as text. The type of the
/// field is the kind's `Value`. The string after the table's name introduces the table; further
/// sections of the same table omit it.
///
/// The struct may be followed by `tables { … }`, fields that are sections themselves, and by
/// `beside { … }`, fields that are not settings and have a default in code.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident in $table:tt $($about:literal)? {
            $(
                $(#[doc = $doc:literal])+
                $field_vis:vis $field:ident $(($key:literal))?: $kind:ty = $default:literal,
            )*
        }
        $(tables { $($(#[$table_meta:meta])* $table_vis:vis $section:ident: $section_type:ty,)* })?
        $(beside { $($(#[$extra_meta:meta])* $extra_vis:vis $extra:ident: $extra_type:ty = $value:expr,)* })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        $vis struct $name {
            $($(#[doc = $doc])+ $field_vis $field: <$kind as $crate::Kind>::Value,)*
            $($($(#[$table_meta])* $table_vis $section: $section_type,)*)?
            $($($(#[$extra_meta])* $extra_vis $extra: $extra_type,)*)?
        }

        impl $name {
            const INFOS: &'static [$crate::Info] = &[$(
                $crate::Info::new::<$kind>(
                    $crate::settings!(@key $table $field $($key)?),
                    $default,
                    concat!($($doc),+),
                ),
            )*];

            /// The setting with this key. In a `const` block a misspelt key does not compile.
            $vis const fn info(key: &str) -> &'static $crate::Info {
                $crate::find(Self::INFOS, key)
            }
        }

        impl $crate::Section for $name {
            fn tables() -> Vec<$crate::Table> {
                let own = $crate::Table { name: $table, about: concat!($($about)?) };
                let tables = vec![own];
                $($(let tables = [tables, <$section_type as $crate::Section>::tables()].concat();)*)?
                tables
            }

            fn infos() -> Vec<&'static $crate::Info> {
                let infos: Vec<&'static $crate::Info> = Self::INFOS.iter().collect();
                $($(let infos = [infos, <$section_type as $crate::Section>::infos()].concat();)*)?
                infos
            }

            fn read(source: &dyn $crate::Source) -> Self {
                Self {
                    $($field: $crate::value::<$kind>(
                        source,
                        const { Self::info($crate::settings!(@key $table $field $($key)?)) },
                    ),)*
                    $($($section: <$section_type as $crate::Section>::read(source),)*)?
                    $($($extra: $value,)*)?
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                <Self as $crate::Section>::read(&$crate::Defaults)
            }
        }
    };
    (@key "" $field:ident) => { stringify!($field) };
    (@key "" $field:ident $key:literal) => { $key };
    (@key $table:tt $field:ident) => { concat!($table, ".", stringify!($field)) };
    (@key $table:tt $field:ident $key:literal) => { concat!($table, ".", $key) };
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{Count, List, Secret, Secs, Section as _, Source};

    settings! {
        /// Inside another section.
        #[derive(PartialEq, Eq)]
        pub(crate) struct Inner in "shop.till" {
            /// How many
            /// tills there are.
            pub(crate) tills: Count<1, 9> = "2",
        }
    }

    settings! {
        /// A section with everything.
        struct Shop in "shop" "What is sold." {
            /// Seconds until closing.
            closing("closing_secs"): Secs<1, 60> = "30",
            /// The key of the safe.
            safe: Option<Secret<4>> = "",
            /// Names of the goods.
            goods: List<String> = "",
        }
        tables {
            /// The tills.
            till: Inner,
        }
        beside {
            /// Not a setting.
            doors: u8 = 3,
        }
    }

    settings! {
        /// The top of a file.
        struct Top in "" "Everything." {
            /// Whether it is open.
            open: bool = "true",
        }
    }

    struct Texts(&'static [(&'static str, &'static str)]);

    impl Source for Texts {
        fn text(&self, key: &str) -> Option<&str> {
            self.0.iter().find(|(name, _)| *name == key).map(|(_, text)| *text)
        }

        fn origin(&self, key: &str) -> String {
            format!("test:{key}")
        }
    }

    #[test]
    fn section_reads_its_values_and_those_of_its_subsections() {
        let shop = Shop::default();
        assert_eq!((shop.closing, shop.safe, shop.goods.len()), (Duration::from_secs(30), None, 0));
        assert_eq!((shop.till, shop.doors), (Inner { tills: 2 }, 3));
        let texts = [("shop.closing_secs", "5"), ("shop.till.tills", "9"), ("shop.safe", "hunter2")];
        let shop = Shop::read(&Texts(Box::leak(Box::new(texts))));
        assert_eq!((shop.closing, shop.till.tills), (Duration::from_secs(5), 9));
        assert!(!format!("{shop:?}").contains("hunter2"), "{shop:?}");
        assert!(Top::default().open);
    }

    #[test]
    fn infos_name_keys_variables_tables_and_docs() {
        let infos = Shop::infos();
        let keys: Vec<_> = infos.iter().map(|info| info.key).collect();
        assert_eq!(keys, ["shop.closing_secs", "shop.safe", "shop.goods", "shop.till.tills"]);
        assert_eq!(infos[0].env(), "URR_SHOP_CLOSING_SECS");
        assert_eq!((infos[0].table(), infos[3].table()), ("shop", "shop"));
        assert_eq!(infos[3].doc, " How many tills there are.");
        assert!(infos[1].secret && !infos[2].secret);
        assert_eq!(Shop::tables()[0].about, "What is sold.");
        assert_eq!(Shop::info("shop.safe").key, "shop.safe");
        assert_eq!(Top::info("open").table(), "");
    }

    #[test]
    #[should_panic(expected = "no setting of the section")]
    fn unknown_key_panics() {
        Shop::info("shop.unsafe");
    }
}
