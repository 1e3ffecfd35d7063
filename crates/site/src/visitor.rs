//! Who looks at a page, and in which language.

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

/// The most of a header that is looked at: browsers list a handful of languages.
const MAX_LANGUAGES: usize = 16;

/// Whoever asked for a page.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) lang: Lang,
    /// Whether the address asked for the language, so that it is to be remembered.
    pub(crate) chose: bool,
    pub(crate) actor: Actor,
    /// The session of the access token.
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

    /// What is around a page.
    pub(crate) fn shell(&self, title: &str, script: Option<&'static str>) -> Shell {
        Shell {
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

    /// What the address says about something. Of several the first counts; nothing in an address is refused.
    pub(crate) fn asked(&self, wanted: &str) -> Option<String> {
        asked(&self.uri, wanted)
    }

    /// Whether it is an operator without the second factor that operators need.
    pub(crate) fn is_unproven_admin(&self) -> bool {
        matches!(self.actor, Actor::User { role: Role::UnprovenAdmin, .. })
    }

    /// The same page in another language.
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

/// The language a browser likes best of those there are. One that likes neither is shown English; whoever says nothing, Korean.
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
    // Of equals the first counts.
    let best = weighed.fold(None, |best: Option<(Lang, f32)>, next| match best {
        Some(best) if best.1 >= next.1 => Some(best),
        _ => Some(next),
    });
    best.filter(|(_, weight)| *weight > 0.0).map_or(Lang::En, |(lang, _)| lang)
}

/// Makes a browser remember the language for a year. Scripts may read it: the page of the site waiting room is the same file for
/// everybody and chooses its language in the browser.
pub(crate) fn remember(lang: Lang) -> HeaderValue {
    HeaderValue::from_static(match lang {
        Lang::Ko => "lang=ko; Path=/; Max-Age=31536000; SameSite=Lax",
        Lang::En => "lang=en; Path=/; Max-Age=31536000; SameSite=Lax",
    })
}

/// What the layout needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Shell {
    pub(crate) lang: Lang,
    pub(crate) words: &'static Words,
    pub(crate) title: String,
    pub(crate) script: Option<&'static str>,
    /// Whether the address may carry a secret behind its `#`, which is taken out before anything else loads.
    pub(crate) carries: bool,
    pub(crate) signed_in: bool,
    /// Whether the menu has a link to the admin pages.
    pub(crate) operator: bool,
    /// The same page in each language.
    pub(crate) languages: [(Lang, String); 2],
}

impl Shell {
    /// For a page whose address may carry a secret.
    pub(crate) fn carrying(self) -> Self {
        Self { carries: true, ..self }
    }

    /// The address of an asset.
    #[expect(clippy::unused_self, reason = "templates reach it through what they have")]
    pub(crate) fn asset(&self, name: &str) -> &'static str {
        assets::address(name)
    }

    /// The address of the texts for modules.
    pub(crate) fn texts(&self) -> &'static str {
        assets::texts_address(self.lang)
    }

    /// Every module the page needs beyond its own.
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
    fn the_address_comes_before_the_cookie_and_the_cookie_before_the_browser() {
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
    fn the_other_language_keeps_the_rest_of_the_address() {
        let uri = "/login?next=%2Fa%3Fb%3D1&lang=ko".parse().unwrap();
        let shell = Visitor::of(&HeaderMap::new(), &uri).shell("x", None);
        assert_eq!(shell.languages[1].1, "/login?next=%2Fa%3Fb%3D1&lang=en");
    }
}
