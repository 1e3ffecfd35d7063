//! The effective configuration, for `urr check-config`.

use std::fmt::Write as _;

use urr_settings::{Section as _, Source as _};

use super::{
    Config, Info, Profile, docs, infos,
    load::{Source, Values},
    secrets,
};

/// Every setting in the form of the file, secrets redacted, with the source of each that is not the
/// default.
pub(crate) fn effective(values: &Values) -> String {
    let mut page = String::new();
    for table in docs::tables() {
        let section = table.name;
        if !section.is_empty() {
            let _ = write!(page, "\n[{section}]\n");
        }
        for info in infos() {
            let (table, name) = info.key.split_once('.').unwrap_or(("", info.key));
            if table == section {
                page.push_str(&line(values, info, name));
            }
        }
    }
    page
}

fn line(values: &Values, info: &Info, name: &str) -> String {
    let text = (info.show)(values.text(info.key).unwrap_or(info.default));
    match values.source(info.key) {
        Source::Default if text.is_empty() => format!("# {name} is not set{}\n", later(values, info)),
        Source::Default => format!("{name} = {}\n", quoted(&text)),
        source => format!("{name} = {}  # {source}\n", quoted(&text)),
    }
}

/// A remark on a secret that will be generated.
fn later(values: &Values, info: &Info) -> &'static str {
    let generated = secrets::GENERATED.iter().any(|made| made.key == info.key);
    if generated && Config::read(values).profile == Profile::Local {
        "; generated on first start"
    } else {
        ""
    }
}

/// A TOML value: numbers and booleans bare, everything else as a string.
fn quoted(text: &str) -> String {
    let bare = text == "true" || text == "false" || text.parse::<i64>().is_ok();
    if bare { text.to_owned() } else { toml::Value::String(text.to_owned()).to_string() }
}
