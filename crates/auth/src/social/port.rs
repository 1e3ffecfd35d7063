//! Provider clients: the redirect to a provider, and the identification of the returning user.
//! Google uses OpenID Connect; Kakao and Naver use OAuth 2 with their own user formats.

use http::StatusCode;
use serde::Deserialize;
use urr_contracts::auth::{Error, Offer, Provider, Sensitive};
use urr_http::{Answer, Client, ClientLimits};
use urr_kernel::{Clock, Timestamp};

use super::{
    ask::{BadPage, NoAnswer, Page},
    config::{GoogleConfig, OAuthConfig, SocialConfig},
    id_token::{BadToken, Expected, Token},
    issuer::Issuer,
    rules::{Claimed, Profile, RedirectSecrets},
};
use crate::Failure;

/// Maximum size of a provider's response. Google's keys have 2 kB, user data less.
const ANSWER_BYTES: usize = 64 * 1024;

/// Maximum concurrent requests per endpoint; more wait in a queue for a short time.
const IN_FLIGHT: usize = 64;

/// The enabled providers.
#[derive(Debug, Default)]
pub struct Social {
    ports: Vec<Port>,
}

/// A client of one provider.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) provider: Provider,
    client_id: String,
    client_secret: Option<Sensitive>,
    speaks: Speaks,
}

#[derive(Debug)]
enum Speaks {
    OpenId(Box<Issuer>),
    OAuth { authorize: String, token: Page, user: Page },
}

/// A verified ID token.
pub(super) struct Credential {
    pub(super) profile: Profile,
    /// Digest, different for each token.
    pub(super) digest: String,
    /// When it expires.
    pub(super) good_until: Timestamp,
}

/// Why a user could not be identified.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unknown {
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    #[error("invalid ID token: {0}")]
    Token(#[from] BadToken),
    #[error("the provider rejected the code: {0}")]
    Code(String),
}

/// The provider did not answer.
pub(super) fn no_answer(provider: Provider, cause: NoAnswer) -> Failure {
    Failure::failed(Error::ProviderUnavailable { provider }, cause)
}

impl Unknown {
    /// Returns `refusal` if the caller caused it, and a provider error otherwise.
    pub(super) fn because_of(self, provider: Provider, refusal: Error) -> Failure {
        match self {
            Self::NoAnswer(source) => no_answer(provider, source),
            other => {
                tracing::info!(provider = provider.name(), reason = %other, "provider sign-in refused");
                refusal.into()
            }
        }
    }
}

impl Social {
    /// Validates the configuration, without connecting.
    pub fn new(config: &SocialConfig, clock: &Clock) -> Result<Self, BadPage> {
        let limits = ClientLimits {
            connect: config.patience,
            read: config.patience,
            answer_bytes: ANSWER_BYTES,
            in_flight: IN_FLIGHT,
            idle_connections: 4,
            // The user is waiting and can try again, so there are no automatic retries.
            tries: 1,
            ..ClientLimits::default()
        };
        let client = Client::new(limits, clock.clone());
        let google = config.google.as_ref().map(|google| Port::google(&client, google, clock));
        let kakao = config.kakao.as_ref().map(|kakao| Port::oauth(&client, Provider::Kakao, kakao));
        let naver = config.naver.as_ref().map(|naver| Port::oauth(&client, Provider::Naver, naver));
        let ports = [google, kakao, naver].into_iter().flatten().collect::<Result<_, _>>()?;
        Ok(Self { ports })
    }

    pub(super) fn port(&self, provider: Provider) -> Result<&Port, Error> {
        self.ports.iter().find(|port| port.provider == provider).ok_or(Error::ProviderOff)
    }

    pub(super) fn offers(&self) -> Vec<Offer> {
        let offer = |port: &Port| Offer {
            provider: port.provider,
            client_id: port.client_id.clone(),
            redirect: port.redirects(),
        };
        self.ports.iter().map(offer).collect()
    }
}

impl Port {
    fn google(client: &Client, config: &GoogleConfig, clock: &Clock) -> Result<Self, BadPage> {
        let issuer = Issuer::new(client, &config.issuer, clock.clone())?;
        Ok(Self {
            provider: Provider::Google,
            client_id: config.client_id.clone(),
            client_secret: config.client_secret.clone(),
            speaks: Speaks::OpenId(Box::new(issuer)),
        })
    }

    fn oauth(client: &Client, provider: Provider, config: &OAuthConfig) -> Result<Self, BadPage> {
        Page::new(client, &config.authorize_url)?;
        let speaks = Speaks::OAuth {
            authorize: config.authorize_url.clone(),
            token: Page::new(client, &config.token_url)?,
            user: Page::new(client, &config.user_url)?,
        };
        let (client_id, client_secret) = (config.client_id.clone(), config.client_secret.clone());
        Ok(Self { provider, client_id, client_secret, speaks })
    }

    /// Google requires a client secret for the redirect flow, but not for ID tokens.
    pub(super) fn redirects(&self) -> bool {
        self.provider != Provider::Google || self.client_secret.is_some()
    }

    /// Whether PKCE is used. Naver does not support it and might reject unknown parameters.
    fn proves_possession(&self) -> bool {
        self.provider != Provider::Naver
    }

    /// The URL to which a browser is redirected.
    pub(super) async fn authorize(
        &self,
        secrets: &RedirectSecrets,
        redirect_uri: &str,
    ) -> Result<String, NoAnswer> {
        let challenge = secrets.challenge();
        let mut query = vec![
            ("response_type", "code"),
            ("client_id", &self.client_id),
            ("redirect_uri", redirect_uri),
            ("state", &secrets.state),
        ];
        if self.proves_possession() {
            query.extend([("code_challenge", challenge.as_str()), ("code_challenge_method", "S256")]);
        }
        let page = match &self.speaks {
            Speaks::OpenId(issuer) => {
                query.extend([("scope", "openid email profile"), ("nonce", &secrets.nonce)]);
                issuer.known().await?.authorize.clone()
            }
            Speaks::OAuth { authorize, .. } => authorize.clone(),
        };
        let joint = if page.contains('?') { '&' } else { '?' };
        Ok(format!("{page}{joint}{}", encoded(&query)))
    }

    /// Identifies the user who returned with this code.
    pub(super) async fn identify(
        &self,
        code: &Sensitive,
        secrets: &RedirectSecrets,
        redirect_uri: &str,
        now: Timestamp,
    ) -> Result<Profile, Unknown> {
        match &self.speaks {
            Speaks::OpenId(issuer) => {
                let page = &issuer.known().await?.token;
                let tokens = self.exchange(page, code, secrets, redirect_uri).await?;
                let token = tokens.id_token.ok_or_else(|| page.odd("the response has no ID token"))?;
                Ok(self.vouched(issuer, &token, Some(&secrets.nonce), now).await?.profile)
            }
            Speaks::OAuth { token, user, .. } => {
                let tokens = self.exchange(token, code, secrets, redirect_uri).await?;
                let access =
                    tokens.access_token.ok_or_else(|| token.odd("the response has no access token"))?;
                let claimed = match self.provider {
                    Provider::Naver => user.get::<NaverUser>(Some(access.expose())).await?.claimed(),
                    _ => user.get::<KakaoUser>(Some(access.expose())).await?.claimed(),
                };
                let profile = claimed.believe(self.provider);
                Ok(profile.ok_or_else(|| user.odd("the response has no user id"))?)
            }
        }
    }

    /// Verifies an ID token sent by the browser. Its nonce must match.
    pub(super) async fn credential(
        &self,
        token: &Sensitive,
        nonce: Option<&str>,
        now: Timestamp,
    ) -> Result<Credential, Unknown> {
        match &self.speaks {
            Speaks::OpenId(issuer) => self.vouched(issuer, token, nonce, now).await,
            Speaks::OAuth { .. } => Err(BadToken::Issuer.into()),
        }
    }

    async fn vouched(
        &self,
        issuer: &Issuer,
        token: &Sensitive,
        nonce: Option<&str>,
        now: Timestamp,
    ) -> Result<Credential, Unknown> {
        let token = Token::parse(token.expose())?;
        let key = issuer.key(&token.key).await?.ok_or(BadToken::UnknownKey)?;
        let expected = Expected { issuer: &issuer.name, client_id: &self.client_id, nonce, now };
        let (claimed, good_until) = token.verify(&key, &expected)?;
        let profile = claimed.believe(self.provider).ok_or(BadToken::Malformed)?;
        Ok(Credential { profile, digest: token.digest(), good_until })
    }

    /// Exchanges a code. Codes are valid once, so a retry after a lost response would be refused.
    async fn exchange(
        &self,
        page: &Page,
        code: &Sensitive,
        secrets: &RedirectSecrets,
        redirect_uri: &str,
    ) -> Result<Tokens, Unknown> {
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("client_id", &self.client_id),
            ("redirect_uri", redirect_uri),
            ("code", code.expose()),
        ];
        form.extend(self.client_secret.as_ref().map(|secret| ("client_secret", secret.expose())));
        form.push(if self.proves_possession() {
            ("code_verifier", &secrets.verifier)
        } else {
            ("state", &secrets.state)
        });
        let answer = page.post(encoded(&form)).await?;
        self.judge(page, &answer)
    }

    /// Maps a token response: an invalid code is the caller's error, everything else the provider's
    /// or ours.
    fn judge(&self, page: &Page, answer: &Answer) -> Result<Tokens, Unknown> {
        if answer.status.is_server_error() {
            return Err(page.status(answer).into());
        }
        let tokens: Tokens = page.read(answer)?;
        match tokens.error.as_deref() {
            // Naver answers an invalid code with status 200 and `invalid_request`.
            Some(error @ ("invalid_grant" | "invalid_request")) => Err(Unknown::Code(error.to_owned())),
            Some(_) => {
                let provider = self.provider.name();
                tracing::error!(provider, status = %answer.status, "the provider rejected our client id, secret or callback URL; check auth.<provider> and the registration there");
                Err(page.odd("it rejected our client").into())
            }
            None if answer.status != StatusCode::OK => Err(page.status(answer).into()),
            None => Ok(tokens),
        }
    }
}

fn encoded(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Response of a token endpoint.
#[derive(Deserialize)]
struct Tokens {
    access_token: Option<Sensitive>,
    id_token: Option<Sensitive>,
    error: Option<String>,
}

/// User data from Kakao.
#[derive(Deserialize)]
struct KakaoUser {
    id: i64,
    #[serde(default)]
    kakao_account: KakaoAccount,
}

#[derive(Default, Deserialize)]
struct KakaoAccount {
    email: Option<String>,
    #[serde(default)]
    is_email_valid: bool,
    #[serde(default)]
    is_email_verified: bool,
    #[serde(default)]
    profile: KakaoProfile,
}

#[derive(Default, Deserialize)]
struct KakaoProfile {
    nickname: Option<String>,
    profile_image_url: Option<String>,
}

impl KakaoUser {
    fn claimed(self) -> Claimed {
        let KakaoAccount { email, is_email_valid, is_email_verified, profile } = self.kakao_account;
        Claimed {
            subject: self.id.to_string(),
            email,
            // An address that another Kakao user has taken over is verified but no longer valid.
            email_verified: is_email_valid && is_email_verified,
            name: profile.nickname,
            picture: profile.profile_image_url,
        }
    }
}

/// User data from Naver.
#[derive(Deserialize)]
struct NaverUser {
    response: NaverAccount,
}

#[derive(Deserialize)]
struct NaverAccount {
    id: String,
    email: Option<String>,
    name: Option<String>,
    nickname: Option<String>,
    profile_image: Option<String>,
}

impl NaverUser {
    fn claimed(self) -> Claimed {
        let NaverAccount { id, email, name, nickname, profile_image } = self.response;
        // Naver users can put any address into their profile.
        let email_verified = false;
        Claimed { subject: id, email, email_verified, name: name.or(nickname), picture: profile_image }
    }
}
