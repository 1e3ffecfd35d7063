//! Settings of the sign-in providers. Each is enabled by its client id.

use urr_contracts::auth::Sensitive;
use urr_settings::{HttpUrl, Info, Problems, Secret, is_loopback, settings};

use super::{GoogleConfig, OAuthConfig};

settings! {
    /// `[auth.google]`.
    pub struct Google in "auth.google" {
        /// The OAuth client id at Google; enables sign-in with Google. Register
        /// `/api/auth/google/callback` of `public_url` there.
        pub client_id: Option<String> = "",
        /// The OAuth client secret. Without it ID tokens of Google's own button are accepted, but
        /// browsers are not redirected to Google.
        pub client_secret: Option<Secret<1>> = "",
        /// The issuer of Google's ID tokens; its endpoints and keys are discovered from here.
        pub issuer: HttpUrl = "https://accounts.google.com",
    }
}

settings! {
    /// `[auth.kakao]`.
    pub struct Kakao in "auth.kakao" {
        /// The REST API key at Kakao; enables sign-in with Kakao. Register
        /// `/api/auth/kakao/callback` there.
        pub client_id: Option<String> = "",
        /// The client secret, if it is enabled at Kakao.
        pub client_secret: Option<Secret<1>> = "",
        /// Kakao's authorization endpoint.
        pub authorize_url: HttpUrl = "https://kauth.kakao.com/oauth/authorize",
        /// Kakao's token endpoint.
        pub token_url: HttpUrl = "https://kauth.kakao.com/oauth/token",
        /// Kakao's user info endpoint.
        pub user_url: HttpUrl = "https://kapi.kakao.com/v2/user/me",
    }
}

settings! {
    /// `[auth.naver]`.
    pub struct Naver in "auth.naver" {
        /// The client id at Naver; enables sign-in with Naver. Register `/api/auth/naver/callback`
        /// there.
        pub client_id: Option<String> = "",
        /// The client secret.
        pub client_secret: Option<Secret<1>> = "",
        /// Naver's authorization endpoint.
        pub authorize_url: HttpUrl = "https://nid.naver.com/oauth2.0/authorize",
        /// Naver's token endpoint.
        pub token_url: HttpUrl = "https://nid.naver.com/oauth2.0/token",
        /// Naver's user info endpoint.
        pub user_url: HttpUrl = "https://openapi.naver.com/v1/nid/me",
    }
}

impl Google {
    /// Google's configuration, if enabled.
    pub fn config(&self) -> Option<GoogleConfig> {
        Some(GoogleConfig {
            client_id: self.client_id.clone()?,
            client_secret: self.client_secret.as_ref().map(sensitive),
            issuer: self.issuer.expose().to_owned(),
        })
    }

    /// Reports a secret without a client id, and an issuer without TLS.
    pub fn check(&self, problems: &mut Problems<'_>) {
        let urls = [(const { Self::info("auth.google.issuer") }, &self.issuer)];
        let (id, secret) =
            const { (Self::info("auth.google.client_id"), Self::info("auth.google.client_secret")) };
        check(problems, self.client_id.is_some(), id, secret, &urls);
    }
}

/// OAuth 2 providers differ in their names and defaults only.
macro_rules! oauth {
    ($($name:ident: $id:literal, $secret:literal, $authorize:literal, $token:literal, $user:literal;)*) => {$(
        impl $name {
            /// The provider's configuration, if enabled.
            pub fn config(&self) -> Option<OAuthConfig> {
                Some(OAuthConfig {
                    client_id: self.client_id.clone()?,
                    client_secret: self.client_secret.as_ref().map(sensitive),
                    authorize_url: self.authorize_url.expose().to_owned(),
                    token_url: self.token_url.expose().to_owned(),
                    user_url: self.user_url.expose().to_owned(),
                })
            }

            /// Reports a secret or a URL without a client id, and a URL without TLS.
            pub fn check(&self, problems: &mut Problems<'_>) {
                let urls = [
                    (const { Self::info($authorize) }, &self.authorize_url),
                    (const { Self::info($token) }, &self.token_url),
                    (const { Self::info($user) }, &self.user_url),
                ];
                let (id, secret) = const { (Self::info($id), Self::info($secret)) };
                check(problems, self.client_id.is_some(), id, secret, &urls);
            }
        }
    )*};
}

oauth! {
    Kakao: "auth.kakao.client_id", "auth.kakao.client_secret", "auth.kakao.authorize_url",
        "auth.kakao.token_url", "auth.kakao.user_url";
    Naver: "auth.naver.client_id", "auth.naver.client_secret", "auth.naver.authorize_url",
        "auth.naver.token_url", "auth.naver.user_url";
}

/// Secrets and tokens are sent to these URLs, so only a server on this machine may do without TLS.
fn check(
    problems: &mut Problems<'_>,
    is_on: bool,
    id: &Info,
    secret: &Info,
    urls: &[(&'static Info, &HttpUrl)],
) {
    if !is_on {
        let why = format!("is only for a provider that is on; set {} too, or remove it", id.key);
        problems.stray(secret, &why);
        for (info, _) in urls {
            problems.stray(info, &why);
        }
        return;
    }
    for (info, url) in urls {
        if url.expose().starts_with("http://") && !is_loopback(url.host()) {
            problems.stray(info, "is on another machine and must start with https://");
        }
    }
}

fn sensitive(secret: &Secret<1>) -> Sensitive {
    Sensitive::new(secret.expose())
}
