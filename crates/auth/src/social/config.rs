//! Which providers are on, and what we are to them.

use std::time::Duration;

use urr_contracts::auth::Sensitive;

/// Which providers are on.
#[derive(Clone, Debug)]
pub struct SocialConfig {
    /// Google, if it is on.
    pub google: Option<GoogleConfig>,
    /// Kakao, if it is on.
    pub kakao: Option<OAuthConfig>,
    /// Naver, if it is on.
    pub naver: Option<OAuthConfig>,
    /// How long one answer of a provider may take.
    pub patience: Duration,
}

impl Default for SocialConfig {
    /// All of them off.
    fn default() -> Self {
        Self { google: None, kakao: None, naver: None, patience: Duration::from_secs(3) }
    }
}

/// Google, or another issuer of ID tokens in its place.
#[derive(Clone, Debug)]
pub struct GoogleConfig {
    /// Our public name there.
    pub client_id: String,
    /// Proves that it is us. Without it credentials are taken but browsers are not sent there.
    pub client_secret: Option<Sensitive>,
    /// Who signs the tokens; its pages and keys are found from here.
    pub issuer: String,
}

impl GoogleConfig {
    /// Google itself.
    pub const ISSUER: &'static str = "https://accounts.google.com";
}

/// A provider that speaks OAuth 2.
#[derive(Clone, Debug)]
pub struct OAuthConfig {
    /// Our public name there.
    pub client_id: String,
    /// Proves that it is us. Kakao can do without.
    pub client_secret: Option<Sensitive>,
    /// The page that browsers are sent to.
    pub authorize_url: String,
    /// Where codes are exchanged.
    pub token_url: String,
    /// What tells about the user.
    pub user_url: String,
}
