//! Configuration of the providers.

use std::time::Duration;

use urr_contracts::auth::Sensitive;

/// The enabled providers.
#[derive(Clone, Debug)]
pub struct SocialConfig {
    /// Google, if enabled.
    pub google: Option<GoogleConfig>,
    /// Kakao, if enabled.
    pub kakao: Option<OAuthConfig>,
    /// Naver, if enabled.
    pub naver: Option<OAuthConfig>,
    /// Time limit of one call to a provider.
    pub patience: Duration,
}

impl Default for SocialConfig {
    /// All providers disabled.
    fn default() -> Self {
        Self { google: None, kakao: None, naver: None, patience: Duration::from_secs(3) }
    }
}

/// Google, or another issuer of ID tokens.
#[derive(Clone, Debug)]
pub struct GoogleConfig {
    /// Our client id.
    pub client_id: String,
    /// Our client secret. Without it ID tokens are accepted, but the redirect flow is off.
    pub client_secret: Option<Sensitive>,
    /// Issuer of the tokens; its endpoints and keys are discovered from here.
    pub issuer: String,
}

impl GoogleConfig {
    /// Google's issuer URL.
    pub const ISSUER: &'static str = "https://accounts.google.com";
}

/// An OAuth 2 provider.
#[derive(Clone, Debug)]
pub struct OAuthConfig {
    /// Our client id.
    pub client_id: String,
    /// Our client secret. Optional for Kakao.
    pub client_secret: Option<Sensitive>,
    /// The authorization endpoint.
    pub authorize_url: String,
    /// The token endpoint.
    pub token_url: String,
    /// The user info endpoint.
    pub user_url: String,
}
