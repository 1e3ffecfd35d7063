//! Validation of return paths and of provider data. Pure.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use urr_contracts::auth::{Error, Provider, Sensitive};

use crate::accounts::rules::{self, MAX_NAME_CHARS, invalid};

/// Maximum length of a return path: it is stored in a cookie, which browsers limit to 4,096 bytes.
const MAX_RETURN_LEN: usize = 512;

/// Maximum length of a subject. OpenID Connect allows 255; the others use numbers or short texts.
const MAX_SUBJECT_LEN: usize = 255;

/// The default return path.
pub(super) const HOME: &str = "/";

/// Validates a path on this site. Browsers treat `//host` and `/\host` as another site and strip
/// tabs and line breaks first, so anything that is not plainly a path is refused. API paths are
/// refused too.
pub(super) fn return_path(asked: Option<&str>) -> Result<String, Error> {
    let Some(path) = asked.filter(|path| !path.is_empty()) else { return Ok(HOME.to_owned()) };
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b'<' | b'>');
    let good = path.starts_with('/')
        && !path.starts_with("//")
        && path.len() <= MAX_RETURN_LEN
        && path.bytes().all(plain)
        && !is_api(path);
    if good { Ok(path.to_owned()) } else { Err(invalid("returnTo", "It must be a path of this site")) }
}

fn is_api(path: &str) -> bool {
    let page = path.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    page == "/api" || page.starts_with("/api/")
}

/// Validated data about a provider's user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) provider: Provider,
    /// The provider's id of the user. It never changes and is unique.
    pub(crate) subject: String,
    /// Normalised e-mail address.
    pub(crate) email: Option<String>,
    /// Whether the provider verified the address.
    pub(crate) email_verified: bool,
    pub(crate) name: Option<String>,
    pub(crate) picture: Option<String>,
}

/// Data from a provider, not yet validated.
#[derive(Clone, Debug, Default)]
pub(super) struct Claimed {
    pub(super) subject: String,
    pub(super) email: Option<String>,
    pub(super) email_verified: bool,
    pub(super) name: Option<String>,
    pub(super) picture: Option<String>,
}

impl Claimed {
    /// Validates the data. An invalid address or name is dropped; without a subject the result is
    /// `None`.
    pub(super) fn believe(self, provider: Provider) -> Option<Profile> {
        let good = (1..=MAX_SUBJECT_LEN).contains(&self.subject.len());
        let email = self.email.and_then(|email| rules::email(&email).ok());
        let name = self.name.map(|name| name.trim().chars().take(MAX_NAME_CHARS).collect::<String>());
        let is_link = |picture: &String| picture.starts_with("https://") && picture.len() <= MAX_RETURN_LEN;
        good.then(|| Profile {
            provider,
            subject: self.subject,
            email_verified: self.email_verified && email.is_some(),
            email,
            name: name.and_then(|name| rules::name(&name).ok()),
            picture: self.picture.filter(is_link),
        })
    }
}

/// The three secrets of a redirect. All are derived from the browser's state token, so nothing is
/// stored, and none reveals another: the provider sees the state, the nonce and the challenge, and
/// cannot compute the verifier.
pub(super) struct RedirectSecrets {
    /// Binds the return to the browser that started.
    pub(super) state: String,
    /// Binds the ID token to this redirect.
    pub(super) nonce: String,
    /// Binds the code to us (PKCE, RFC 7636).
    pub(super) verifier: String,
}

impl RedirectSecrets {
    pub(super) fn of(state_token: &Sensitive) -> Self {
        let secret = |purpose: &str| {
            let hash =
                Sha256::new().chain_update(purpose).chain_update([0]).chain_update(state_token.expose());
            URL_SAFE_NO_PAD.encode(hash.finalize())
        };
        Self { state: secret("state"), nonce: secret("nonce"), verifier: secret("verifier") }
    }

    /// The PKCE challenge of the verifier.
    pub(super) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(&self.verifier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_paths_stay_on_this_site() {
        for good in [
            "/",
            "/events/7?seat=A-1#map",
            "/my-reservations",
            "/a%2F%2Fevil",
            "/x?next=https://y",
            "/apiary",
        ] {
            assert_eq!(return_path(Some(good)).as_deref(), Ok(good));
        }
        assert_eq!(return_path(None).as_deref(), Ok("/"));
        assert_eq!(return_path(Some("")).as_deref(), Ok("/"));
        for bad in [
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "\\evil.example",
            "https://evil.example",
            "https:evil.example",
            "javascript:alert(1)",
            "evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            " //evil.example",
            "/x y",
            "/x\\..\\evil",
            "/\u{2044}/evil",
            "/<script>",
            "/api/auth/kakao/start",
            "/API/auth/logout",
            "/api",
            &format!("/{}", "x".repeat(MAX_RETURN_LEN)),
        ] {
            assert!(return_path(Some(bad)).is_err(), "{bad:?}");
        }
    }

    fn claimed() -> Claimed {
        Claimed {
            subject: "1".to_owned(),
            email: Some(" Minji@Example.com".to_owned()),
            email_verified: true,
            name: Some(" 김민지 ".to_owned()),
            picture: Some("https://example.com/p.png".to_owned()),
        }
    }

    #[test]
    fn provider_data_is_normalised() {
        let profile = claimed().believe(Provider::Google).unwrap();
        assert_eq!(profile.email.as_deref(), Some("minji@example.com"));
        assert_eq!((profile.name.as_deref(), profile.email_verified), (Some("김민지"), true));
        assert_eq!(profile.picture.as_deref(), Some("https://example.com/p.png"));
    }

    #[test]
    fn invalid_provider_data_is_dropped() {
        let odd = Claimed {
            email: Some("nonsense".to_owned()),
            name: Some("\u{7}".to_owned()),
            picture: Some("javascript:alert(1)".to_owned()),
            ..claimed()
        };
        let profile = odd.believe(Provider::Kakao).unwrap();
        assert_eq!(
            (profile.email, profile.email_verified),
            (None, false),
            "without an address nothing is verified"
        );
        assert_eq!((profile.name, profile.picture), (None, None));
        let long = Claimed { name: Some("가".repeat(300)), ..claimed() };
        let name = long.believe(Provider::Kakao).unwrap().name.unwrap();
        assert_eq!(name.chars().count(), MAX_NAME_CHARS);
        for subject in [String::new(), "x".repeat(256)] {
            assert_eq!(Claimed { subject, ..claimed() }.believe(Provider::Naver), None);
        }
    }

    #[test]
    fn redirect_secrets_are_unique_and_distinct() {
        let (one, two) =
            (RedirectSecrets::of(&Sensitive::new("one")), RedirectSecrets::of(&Sensitive::new("two")));
        let all = [&one.state, &one.nonce, &one.verifier, &one.challenge(), &two.state, &two.verifier];
        let different: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert!(all.iter().all(|text| text.len() == 43), "RFC 7636 wants 43 to 128 characters");
        assert_eq!(RedirectSecrets::of(&Sensitive::new("one")).state, one.state);
    }
}
