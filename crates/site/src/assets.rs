//! Styles, modules and the icon, under names that contain a hash of their content.
//!
//! Such a name can be cached forever, so a second visit loads only the page. Imports between
//! modules are rewritten to these names when the process first needs them; there is no other build
//! step.

use std::{collections::HashMap, fmt::Write as _, sync::LazyLock};

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest as _, Sha256};

use crate::words::{Lang, script};

/// The path prefix of assets.
const PLACE: &str = "/static/";

/// A year, the longest time that caches honour.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

const STYLE: &str = concat!(
    include_str!("../assets/css/tokens.css"),
    include_str!("../assets/css/base.css"),
    include_str!("../assets/css/parts.css"),
    include_str!("../assets/css/pages.css"),
    include_str!("../assets/css/sale.css"),
    include_str!("../assets/css/seats.css"),
    include_str!("../assets/css/control.css"),
    include_str!("../assets/css/charts.css"),
);

/// Modules, each after those it imports.
const MODULES: &[(&str, &str)] = &[
    ("carry.js", include_str!("../assets/js/carry.js")),
    ("texts.js", include_str!("../assets/js/texts.js")),
    ("api.js", include_str!("../assets/js/api.js")),
    ("forms.js", include_str!("../assets/js/forms.js")),
    ("clock.js", include_str!("../assets/js/clock.js")),
    ("dialogs.js", include_str!("../assets/js/dialogs.js")),
    ("entries.js", include_str!("../assets/js/entries.js")),
    ("shell.js", include_str!("../assets/js/shell.js")),
    ("login.js", include_str!("../assets/js/login.js")),
    ("register.js", include_str!("../assets/js/register.js")),
    ("links.js", include_str!("../assets/js/links.js")),
    ("second_factor.js", include_str!("../assets/js/second_factor.js")),
    ("account.js", include_str!("../assets/js/account.js")),
    ("event.js", include_str!("../assets/js/event.js")),
    ("seats.js", include_str!("../assets/js/seats.js")),
    ("queue.js", include_str!("../assets/js/queue.js")),
    ("charts.js", include_str!("../assets/js/charts.js")),
    ("live.js", include_str!("../assets/js/live.js")),
    ("control.js", include_str!("../assets/js/control.js")),
    ("rooms.js", include_str!("../assets/js/rooms.js")),
];

const ICON: &str = include_str!("../assets/icon.svg");

/// One file as it is served.
struct Asset {
    kind: &'static str,
    bytes: Bytes,
    tag: HeaderValue,
}

/// All assets.
struct Assets {
    /// By hashed name.
    served: HashMap<String, Asset>,
    /// URL by source name.
    addresses: HashMap<String, String>,
    /// Direct and indirect imports of each module.
    imports: HashMap<&'static str, Vec<&'static str>>,
}

static ASSETS: LazyLock<Assets> = LazyLock::new(|| {
    let mut assets = Assets { served: HashMap::new(), addresses: HashMap::new(), imports: HashMap::new() };
    assets.add("site.css", "text/css; charset=utf-8", STYLE.to_owned());
    assets.add("icon.svg", "image/svg+xml", ICON.to_owned());
    for lang in Lang::ALL {
        assets.add(&texts(lang), "text/javascript; charset=utf-8", script(lang));
    }
    for (name, source) in MODULES {
        assets.add_module(name, source);
    }
    assets
});

/// The name of the module with the texts of a language.
fn texts(lang: Lang) -> String {
    format!("texts-{lang}.js")
}

impl Assets {
    fn add(&mut self, name: &str, kind: &'static str, text: String) {
        let digest = Sha256::digest(text.as_bytes());
        let mark = digest.iter().take(8).fold(String::new(), |mut mark, byte| {
            write!(mark, "{byte:02x}").expect("writing to a String cannot fail");
            mark
        });
        let (stem, ending) = name.rsplit_once('.').expect("every asset has an ending");
        let served = format!("{stem}.{mark}.{ending}");
        let tag = HeaderValue::from_str(&format!("\"{mark}\"")).expect("digits are printable");
        self.addresses.insert(name.to_owned(), format!("{PLACE}{served}"));
        self.served.insert(served, Asset { kind, bytes: Bytes::from(text), tag });
    }

    fn add_module(&mut self, name: &'static str, source: &str) {
        let (mut text, mut imports) = (source.to_owned(), Vec::new());
        for (other, _) in MODULES {
            let import = format!("from \"./{other}\"");
            if text.contains(&import) {
                let address = self.addresses.get(*other).expect("a module is listed after those it imports");
                text = text.replace(&import, &format!("from \"{address}\""));
                imports.extend(self.imports[other].iter().copied().chain([*other]));
            }
        }
        imports.sort_unstable();
        imports.dedup();
        self.imports.insert(name, imports);
        self.add(name, "text/javascript; charset=utf-8", text);
    }
}

/// The URL of an asset by its source name.
///
/// # Panics
/// If the asset does not exist. A test renders every template.
pub(crate) fn address(name: &str) -> &'static str {
    ASSETS.addresses.get(name).unwrap_or_else(|| panic!("there is no asset {name}"))
}

/// The URLs of all modules that a module imports, so that the browser can load them in parallel.
pub(crate) fn imports(name: &str) -> Vec<&'static str> {
    ASSETS.imports.get(name).into_iter().flatten().map(|name| address(name)).collect()
}

/// The URL of the texts of a language.
pub(crate) fn texts_address(lang: Lang) -> &'static str {
    address(&texts(lang))
}

/// The response to a request for an asset.
pub(crate) fn serve(name: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = ASSETS.served.get(name) else { return StatusCode::NOT_FOUND.into_response() };
    let common = [(header::ETAG, asset.tag.clone()), (header::CACHE_CONTROL, FOR_EVER)];
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == asset.tag) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind))];
    (common, kind, asset.bytes.clone()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_import_uses_a_hashed_name() {
        for (name, _) in MODULES {
            let served = address(name).strip_prefix(PLACE).unwrap();
            let text = std::str::from_utf8(&ASSETS.served[served].bytes).unwrap();
            for import in text.lines().filter_map(|line| line.split_once(" from \"")) {
                assert!(import.1.starts_with(PLACE), "{name}: {}", import.1);
            }
        }
        assert!(imports("login.js").contains(&address("api.js")));
    }

    #[test]
    fn assets_are_cacheable_and_unknown_names_are_not_found() {
        let name = address("site.css").strip_prefix(PLACE).unwrap();
        let answer = serve(name, &HeaderMap::new());
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()[header::CACHE_CONTROL], FOR_EVER);
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, answer.headers()[header::ETAG].clone());
        assert_eq!(serve(name, &headers).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(serve("site.css", &HeaderMap::new()).status(), StatusCode::NOT_FOUND);
        assert_eq!(serve("../Cargo.toml", &HeaderMap::new()).status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn every_text_key_in_modules_exists() {
        let texts = script(Lang::En);
        for (name, source) in MODULES {
            for way in [" say(\"", "(say(\"", "tellNext(\"", "done(\"", "leave(\""] {
                for asked in source.split(way).skip(1) {
                    let key = asked.split('"').next().unwrap();
                    assert!(texts.contains(&format!("\"{key}\": ")), "{name} uses the missing key {key}");
                }
            }
        }
    }

    #[test]
    fn modules_do_not_insert_html() {
        for (name, source) in MODULES {
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!source.contains(way), "{name} uses {way}");
            }
        }
    }
}
