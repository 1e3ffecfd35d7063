//! The effective configuration, for `urr check-config`.

use std::fmt::Write as _;

use super::{
    choices::Profile,
    load::{Source, Values},
    secrets,
    settings::{Info, PROFILE, SECTIONS, SETTINGS},
};

/// Every setting in the form of the file, secrets redacted, with the source of each that is not the default.
pub(crate) fn effective(values: &Values) -> String {
    let mut page = String::new();
    for (section, _) in SECTIONS {
        if !section.is_empty() {
            let _ = write!(page, "\n[{section}]\n");
        }
        for info in SETTINGS {
            let (table, name) = info.key.split_once('.').unwrap_or(("", info.key));
            if table == *section {
                page.push_str(&line(values, info, name));
            }
        }
    }
    page
}

fn line(values: &Values, info: &Info, name: &str) -> String {
    let text = (info.show)(values.text(info));
    match values.source(info) {
        Source::Default if text.is_empty() => format!("# {name} is not set{}\n", later(values, info)),
        Source::Default => format!("{name} = {}\n", quoted(&text)),
        source => format!("{name} = {}  # {source}\n", quoted(&text)),
    }
}

/// What will stand in for a secret that nobody configured.
fn later(values: &Values, info: &Info) -> &'static str {
    let generated = secrets::GENERATED.iter().any(|made| made.key == info.key);
    if generated && values.get(&PROFILE) == Profile::Local { "; made on first start" } else { "" }
}

/// As TOML has it: numbers and booleans bare, everything else as text.
fn quoted(text: &str) -> String {
    let bare = text == "true" || text == "false" || text.parse::<i64>().is_ok();
    if bare { text.to_owned() } else { toml::Value::String(text.to_owned()).to_string() }
}
