//! Which providers people may sign in with: each is on once it has a client id.

use urr_auth::{GoogleConfig, OAuthConfig, SocialConfig};
use urr_contracts::auth::Sensitive;

use super::{
    HttpUrl, Secret,
    resolve::{Problems, is_this_machine},
    settings::{self as s, Info, Setting},
};

/// The settings of a provider that speaks OAuth 2.
struct OAuthSettings {
    client_id: &'static Setting<Option<String>>,
    client_secret: &'static Setting<Option<Secret<1>>>,
    authorize_url: &'static Setting<HttpUrl>,
    token_url: &'static Setting<HttpUrl>,
    user_url: &'static Setting<HttpUrl>,
}

static KAKAO: OAuthSettings = OAuthSettings {
    client_id: &s::AUTH_KAKAO_CLIENT_ID,
    client_secret: &s::AUTH_KAKAO_CLIENT_SECRET,
    authorize_url: &s::AUTH_KAKAO_AUTHORIZE_URL,
    token_url: &s::AUTH_KAKAO_TOKEN_URL,
    user_url: &s::AUTH_KAKAO_USER_URL,
};

static NAVER: OAuthSettings = OAuthSettings {
    client_id: &s::AUTH_NAVER_CLIENT_ID,
    client_secret: &s::AUTH_NAVER_CLIENT_SECRET,
    authorize_url: &s::AUTH_NAVER_AUTHORIZE_URL,
    token_url: &s::AUTH_NAVER_TOKEN_URL,
    user_url: &s::AUTH_NAVER_USER_URL,
};

impl Problems<'_> {
    /// Which providers are on.
    pub(super) fn social(&mut self) -> SocialConfig {
        let kakao = self.oauth(&KAKAO);
        let naver = self.oauth(&NAVER);
        if naver.as_ref().is_some_and(|naver| naver.client_secret.is_none()) {
            self.missing(&s::AUTH_NAVER_CLIENT_SECRET.info, "auth.naver.client_id is");
        }
        SocialConfig { google: self.google(), kakao, naver, ..SocialConfig::default() }
    }

    fn google(&mut self) -> Option<GoogleConfig> {
        let Some(client_id) = self.values.get(&s::AUTH_GOOGLE_CLIENT_ID) else {
            self.off(
                &s::AUTH_GOOGLE_CLIENT_ID.info,
                &[&s::AUTH_GOOGLE_CLIENT_SECRET.info, &s::AUTH_GOOGLE_ISSUER.info],
            );
            return None;
        };
        let client_secret = self.values.get(&s::AUTH_GOOGLE_CLIENT_SECRET).as_ref().map(sensitive);
        Some(GoogleConfig { client_id, client_secret, issuer: self.over_tls(&s::AUTH_GOOGLE_ISSUER) })
    }

    fn oauth(&mut self, settings: &OAuthSettings) -> Option<OAuthConfig> {
        let OAuthSettings { client_id, client_secret, authorize_url, token_url, user_url } = settings;
        let Some(id) = self.values.get(client_id) else {
            self.off(
                &client_id.info,
                &[&client_secret.info, &authorize_url.info, &token_url.info, &user_url.info],
            );
            return None;
        };
        Some(OAuthConfig {
            client_id: id,
            client_secret: self.values.get(client_secret).as_ref().map(sensitive),
            authorize_url: self.over_tls(authorize_url),
            token_url: self.over_tls(token_url),
            user_url: self.over_tls(user_url),
        })
    }

    /// A provider is off; whatever else is said about it was meant for one that is on.
    fn off(&mut self, client_id: &Info, rest: &[&Info]) {
        for info in rest {
            self.stray(
                info,
                &format!("is only for a provider that is on; set {} too, or remove it", client_id.key),
            );
        }
    }

    /// Secrets and tokens travel there.
    fn over_tls(&mut self, setting: &Setting<HttpUrl>) -> String {
        let url = self.values.get(setting).expose().to_owned();
        let plain = url.strip_prefix("http://").map(|rest| rest.split([':', '/']).next().unwrap_or_default());
        if plain.is_some_and(|host| !is_this_machine(host)) {
            self.stray(&setting.info, "is on another machine and must start with https://");
        }
        url
    }
}

fn sensitive(secret: &Secret<1>) -> Sensitive {
    Sensitive::new(secret.expose())
}

#[cfg(test)]
mod tests {
    use crate::config::tests::of_env as load;

    #[test]
    fn a_provider_is_off_until_it_has_a_client_id() {
        let social = load(&[]).unwrap().auth.social;
        assert!(social.google.is_none() && social.kakao.is_none() && social.naver.is_none());
        let settings = [
            ("GOOGLE_CLIENT_ID", "us.apps.googleusercontent.com"),
            ("URR_AUTH_KAKAO_CLIENT_ID", "kakao-id"),
            ("URR_AUTH_NAVER_CLIENT_ID", "naver-id"),
            ("URR_AUTH_NAVER_CLIENT_SECRET", "hush, hush"),
        ];
        let config = load(&settings).unwrap();
        let social = &config.auth.social;
        assert_eq!(social.google.as_ref().unwrap().issuer, urr_auth::GoogleConfig::ISSUER);
        assert_eq!(social.kakao.as_ref().unwrap().user_url, "https://kapi.kakao.com/v2/user/me");
        assert_eq!(social.naver.as_ref().unwrap().client_secret.as_ref().unwrap().expose(), "hush, hush");
        assert!(!format!("{config:?}").contains("hush"), "secrets are not printed");
    }

    #[test]
    fn half_of_a_provider_is_refused() {
        let refused = |settings: &[(&str, &str)]| {
            let problems = load(settings).unwrap_err();
            assert_eq!(problems.len(), 1, "{problems:?}");
            problems[0].to_string()
        };
        let stray = refused(&[("URR_AUTH_GOOGLE_CLIENT_SECRET", "hush")]);
        assert!(stray.contains("auth.google.client_id") && !stray.contains("hush"), "{stray}");
        let naver = refused(&[("URR_AUTH_NAVER_CLIENT_ID", "id")]);
        assert!(naver.contains("auth.naver.client_secret"), "{naver}");
        let plain =
            [("URR_AUTH_KAKAO_CLIENT_ID", "id"), ("URR_AUTH_KAKAO_TOKEN_URL", "http://kakao.example/token")];
        let plain = refused(&plain);
        assert!(plain.contains("https://"), "{plain}");
        let here = [("URR_AUTH_GOOGLE_CLIENT_ID", "id"), ("URR_AUTH_GOOGLE_ISSUER", "http://127.0.0.1:9/")];
        assert_eq!(load(&here).unwrap().auth.social.google.unwrap().issuer, "http://127.0.0.1:9");
    }
}
