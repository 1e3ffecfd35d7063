//! The visitor of a page: language, path and session.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::{HeaderMap, HeaderValue, Uri, header, request::Parts};
use urr_kernel::{Actor, Role};
use urr_passes::access::Verified;

use crate::{
    assets,
    words::{Lang, Words},
};

/// The query parameter and the cookie that choose a language.
const LANG: &str = "lang";

/// Maximum number of entries of `Accept-Language` that are parsed.
const MAX_LANGUAGES: usize = 16;

/// The visitor who requested a page.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) lang: Lang,
    /// Whether the URL chose the language, so that a cookie must be set.
    pub(crate) chose: bool,
    pub(crate) actor: Actor,
    /// The verified access token.
    pub(crate) verified: Option<Verified>,
    uri: Uri,
}

impl Visitor {
    pub(crate) fn of(headers: &HeaderMap, uri: &Uri) -> Self {
        let chosen = chosen(uri);
        Self {
            lang: chosen.unwrap_or_else(|| remembered(headers).unwrap_or_else(|| preferred(headers))),
            chose: chosen.is_some(),
            actor: Actor::Anonymous,
            verified: None,
            uri: uri.clone(),
        }
    }

    /// The values of the layout.
    pub(crate) fn shell(&self, title: &str, script: Option<&'static str>) -> Layout {
        Layout {
            lang: self.lang,
            words: self.lang.words(),
            title: title.to_owned(),
            script,
            carries: false,
            signed_in: self.actor.user().is_some(),
            operator: self.actor.is_admin() || self.is_unproven_admin(),
            languages: Lang::ALL.map(|lang| (lang, self.in_language(lang))),
        }
    }

    /// A query parameter of the URL. The first counts; malformed parameters are ignored.
    pub(crate) fn asked(&self, wanted: &str) -> Option<String> {
        asked(&self.uri, wanted)
    }

    /// Whether this is an admin without the second factor that admins need.
    pub(crate) fn is_unproven_admin(&self) -> bool {
        matches!(self.actor, Actor::User { role: Role::UnprovenAdmin, .. })
    }

    /// The URL of the same page in another language.
    fn in_language(&self, lang: Lang) -> String {
        let query = self.uri.query().unwrap_or_default();
        let kept = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != LANG);
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(kept)
            .append_pair(LANG, lang.tag())
            .finish();
        format!("{}?{query}", self.uri.path())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let actor = parts.extensions.get::<Actor>().copied().unwrap_or(Actor::Anonymous);
        let verified = parts.extensions.get::<Verified>().cloned();
        Ok(Self { actor, verified, ..Self::of(&parts.headers, &parts.uri) })
    }
}

fn asked(uri: &Uri, wanted: &str) -> Option<String> {
    let query = uri.query().unwrap_or_default();
    let (_, value) = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == wanted)?;
    Some(value.into_owned())
}

fn chosen(uri: &Uri) -> Option<Lang> {
    Lang::named(&asked(uri, LANG)?)
}

fn remembered(headers: &HeaderMap) -> Option<Lang> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let (_, tag) = pairs.find(|(name, _)| name.trim() == LANG)?;
    Lang::named(tag.trim())
}

/// The best supported language of `Accept-Language`: English if it names only others, Korean
/// without the header.
fn preferred(headers: &HeaderMap) -> Lang {
    let Some(asked) = headers.get(header::ACCEPT_LANGUAGE).and_then(|asked| asked.to_str().ok()) else {
        return Lang::Ko;
    };
    let weighed = asked.split(',').take(MAX_LANGUAGES).filter_map(|entry| {
        let (tag, weight) = entry.split_once(';').unwrap_or((entry, "q=1"));
        let weight: f32 = weight.trim().strip_prefix("q=")?.parse().ok()?;
        let primary = tag.trim().split('-').next().unwrap_or_default().to_ascii_lowercase();
        Some((Lang::named(&primary)?, weight))
    });
    // The first of equal weights wins.
    let best = weighed.fold(None, |best: Option<(Lang, f32)>, next| match best {
        Some(best) if best.1 >= next.1 => Some(best),
        _ => Some(next),
    });
    best.filter(|(_, weight)| *weight > 0.0).map_or(Lang::En, |(lang, _)| lang)
}

/// Stores the language in a cookie for a year. Scripts may read it: the page of the site waiting
/// room is one static file and chooses its language in the browser.
pub(crate) fn remember(lang: Lang) -> HeaderValue {
    HeaderValue::from_static(match lang {
        Lang::Ko => "lang=ko; Path=/; Max-Age=31536000; SameSite=Lax",
        Lang::En => "lang=en; Path=/; Max-Age=31536000; SameSite=Lax",
    })
}

/// The values of the layout.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) lang: Lang,
    pub(crate) words: &'static Words,
    pub(crate) title: String,
    pub(crate) script: Option<&'static str>,
    /// Whether the URL may contain a secret after `#`, which is removed before anything else loads.
    pub(crate) carries: bool,
    pub(crate) signed_in: bool,
    /// Whether the menu has a link to the admin pages.
    pub(crate) operator: bool,
    /// The URL of the same page in each language.
    pub(crate) languages: [(Lang, String); 2],
}

impl Layout {
    /// For a page whose URL may contain a secret.
    pub(crate) fn carrying(self) -> Self {
        Self { carries: true, ..self }
    }

    /// The URL of an asset.
    #[expect(clippy::unused_self, reason = "templates can call it only on a value")]
    pub(crate) fn asset(&self, name: &str) -> &'static str {
        assets::address(name)
    }

    /// The URL of the texts for modules.
    pub(crate) fn texts(&self) -> &'static str {
        assets::texts_address(self.lang)
    }

    /// All modules of the page besides its own.
    pub(crate) fn imports(&self) -> Vec<&'static str> {
        assets::imports(self.script.unwrap_or("shell.js"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lang(uri: &str, cookie: &'static str, accept: &'static str) -> Lang {
        let mut headers = HeaderMap::new();
        for (name, value) in [(header::COOKIE, cookie), (header::ACCEPT_LANGUAGE, accept)] {
            if !value.is_empty() {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
        Visitor::of(&headers, &uri.parse().unwrap()).lang
    }

    #[test]
    fn language_comes_from_the_url_then_the_cookie_then_the_browser() {
        assert_eq!(lang("/?lang=en", "lang=ko", "ko"), Lang::En);
        assert_eq!(lang("/", "a=b; lang=en", "ko"), Lang::En);
        assert_eq!(lang("/?lang=xx", "lang=yy", "en-GB,ko;q=0.5"), Lang::En);
        assert_eq!(lang("/", "", "fr, ko;q=0.5, en;q=0.9"), Lang::En);
        assert_eq!(lang("/", "", "fr, en;q=0.5, ko-KR;q=0.9"), Lang::Ko);
        assert_eq!(lang("/", "", "fr"), Lang::En);
        assert_eq!(lang("/", "", "ko;q=nonsense, en;q=0"), Lang::En);
        assert_eq!(lang("/", "", ""), Lang::Ko);
    }

    #[test]
    fn the_other_language_keeps_the_other_query_parameters() {
        let uri = "/login?next=%2Fa%3Fb%3D1&lang=ko".parse().unwrap();
        let shell = Visitor::of(&HeaderMap::new(), &uri).shell("x", None);
        assert_eq!(shell.languages[1].1, "/login?next=%2Fa%3Fb%3D1&lang=en");
    }
}
