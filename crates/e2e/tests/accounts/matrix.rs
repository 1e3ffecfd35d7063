//! Every kind of token in the place of every other kind.

use anyhow::Context as _;
use data_encoding::BASE64URL_NOPAD;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use urr_e2e::{
    http::{Answer, Connection, Request},
    installation::{Installation, SECRET, TOKEN},
    people::{self, PASSWORD, Person},
};
use urr_kernel::{Clock, Ids};
use urr_passes::{Secret, hop, state_token};

use crate::phone;

const EMAIL: &str = "matrix@example.com";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Access,
    Refresh,
    VerifyLink,
    ResetLink,
    Internal,
    Challenge,
    RedirectStateToken,
    SignUpStateToken,
    NonceStateToken,
    Hop,
    /// The entry token of a slot.
    Entry,
    /// A position in an event's queue.
    QueueTicket,
    /// A position in the Tier 1 queue.
    VwrTicket,
    /// Proof of admission by Tier 1.
    VwrPass,
    /// The identity of a Tier 1 browser.
    Visitor,
}

/// A place in the API that accepts a token.
#[derive(Clone, Copy, Debug)]
enum Channel {
    Bearer,
    Cookie,
    Operator,
    RefreshBody,
    RefreshCookie,
    VerifyEmail,
    ResetPassword,
    VerifyToken,
    InternalListener,
    SecondFactor,
    RedirectCookie,
    SignUpCookie,
    Google,
    HopHeader,
}

impl Channel {
    const ALL: [Self; 14] = [
        Self::Bearer,
        Self::Cookie,
        Self::Operator,
        Self::RefreshBody,
        Self::RefreshCookie,
        Self::VerifyEmail,
        Self::ResetPassword,
        Self::VerifyToken,
        Self::InternalListener,
        Self::SecondFactor,
        Self::RedirectCookie,
        Self::SignUpCookie,
        Self::Google,
        Self::HopHeader,
    ];

    /// The kind expected there. An admin's token is an access token too, but not the one in the
    /// matrix.
    fn wants(self) -> Option<Kind> {
        match self {
            Self::Bearer | Self::Cookie | Self::VerifyToken => Some(Kind::Access),
            Self::RefreshBody | Self::RefreshCookie => Some(Kind::Refresh),
            Self::VerifyEmail => Some(Kind::VerifyLink),
            Self::ResetPassword => Some(Kind::ResetLink),
            Self::InternalListener => Some(Kind::Internal),
            Self::SecondFactor => Some(Kind::Challenge),
            Self::RedirectCookie => Some(Kind::RedirectStateToken),
            Self::SignUpCookie => Some(Kind::SignUpStateToken),
            // Google's endpoint expects Google's token, and a hop header carries an address, not a
            // user.
            Self::Operator | Self::Google | Self::HopHeader => None,
        }
    }

    /// The response to any other kind.
    fn refusal(self, kind: Kind) -> (u16, &'static str) {
        match self {
            Self::Operator if kind == Kind::Access => (403, "auth.admin_required"),
            Self::Bearer | Self::Cookie | Self::Operator | Self::VerifyToken => (401, "auth.token_invalid"),
            Self::RefreshBody | Self::RefreshCookie => (401, "auth.refresh_invalid"),
            Self::VerifyEmail | Self::ResetPassword => (403, "auth.link_invalid"),
            Self::InternalListener => (403, "internal.token_wrong"),
            Self::SecondFactor => (401, "auth.challenge_invalid"),
            Self::RedirectCookie => (403, "auth.trip_invalid"),
            Self::SignUpCookie => (403, "auth.sign_up_invalid"),
            Self::Google => (403, "auth.credential_invalid"),
            Self::HopHeader => (401, "auth.required"),
        }
    }

    async fn present(self, installation: &Installation, token: &str) -> anyhow::Result<Answer> {
        let mut front = installation.connect();
        let origin = format!("http://{}", installation.front);
        let mut with = async |method: &str, path: &str, name: &str, value: String| {
            let headers = [(name, value.as_str()), ("origin", origin.as_str())];
            front.send(&Request { method, path, headers: &headers, ..Request::default() }).await
        };
        let (path, body) = match self {
            Self::Bearer => {
                return Ok(
                    with("GET", "/api/reservations/my", "authorization", format!("Bearer {token}")).await?
                );
            }
            Self::Operator => {
                let value = format!("Bearer {token}");
                return Ok(with("GET", "/api/admin/seat-layouts", "authorization", value).await?);
            }
            Self::Cookie => {
                return Ok(with("GET", "/api/auth/me", "cookie", format!("access_token={token}")).await?);
            }
            Self::RefreshCookie => {
                let value = format!("refresh_token={token}");
                return Ok(with("POST", "/api/auth/refresh", "cookie", value).await?);
            }
            Self::RedirectCookie => {
                // With the matching state, so that only the kind is wrong.
                let path = format!("/api/auth/kakao/callback?code=a&state={}", state_of(token));
                return Ok(with("GET", &path, "cookie", format!("social_trip={token}")).await?);
            }
            Self::SignUpCookie => {
                let value = format!("social_sign_up={token}");
                return Ok(with("GET", "/api/auth/sign-up", "cookie", value).await?);
            }
            Self::HopHeader => return Ok(with("GET", "/api/auth/me", "x-urr-hop", token.to_owned()).await?),
            Self::InternalListener => {
                let mut inside = Connection::to(installation.internal);
                return Ok(inside.send(&Request::get("/internal/roles").by(token)).await?);
            }
            Self::RefreshBody => ("/api/auth/refresh", json!({ "refreshToken": token })),
            Self::VerifyEmail => ("/api/auth/email/verify", json!({ "token": token, "password": PASSWORD })),
            Self::ResetPassword => {
                let new = "a new horse for the battery";
                ("/api/auth/password/reset", json!({ "token": token, "password": new }))
            }
            Self::VerifyToken => ("/api/auth/verify-token", json!({ "token": token })),
            Self::SecondFactor => {
                ("/api/auth/login/second-factor", json!({ "challenge": token, "code": "000000" }))
            }
            Self::Google => ("/api/auth/google", json!({ "credential": token })),
        };
        Ok(front.send(&Request::post(path, &body)).await?)
    }
}

/// The state parameter for a state token: derived from it, as providers return it.
fn state_of(state_token: &str) -> String {
    let hash = Sha256::new().chain_update("state").chain_update([0]).chain_update(state_token).finalize();
    BASE64URL_NOPAD.encode(&hash)
}

/// The value of a cookie set by a response.
pub(crate) fn cookie(answer: &Answer, name: &str) -> anyhow::Result<String> {
    let lines = answer.headers.iter().filter(|(header, _)| header == "set-cookie");
    let mut values =
        lines.filter_map(|(_, line)| line.strip_prefix(name)?.strip_prefix('=')?.split(';').next());
    Ok(values.next().with_context(|| answer.show())?.to_owned())
}

/// A user with a second factor who has passed the first: the challenge and a valid recovery code.
async fn challenge(installation: &Installation) -> anyhow::Result<(String, String)> {
    let mut connection = installation.connect();
    let person = people::register(&mut connection, "phone@example.com").await?;
    let recovery = phone::turn_on(&mut connection, &person).await?;
    let needed = people::login(&mut connection, "phone@example.com", PASSWORD).await?;
    assert_eq!(needed.status, 202, "{}", needed.show());
    let challenge = needed.json()["challenge"].as_str().with_context(|| needed.show())?.to_owned();
    Ok((challenge, recovery))
}

/// Tokens that processes sign for each other and for browsers that return from a provider.
fn signed() -> anyhow::Result<[(Kind, String); 2]> {
    let (clock, secret) = (Clock::system(), Secret::new(SECRET)?);
    let now = clock.now();
    let carries = json!({ "provider": "kakao", "subject": "7", "email_verified": false });
    let state_tokens = state_token::StateTokens::new("sign-up", [state_token::key("sign-up", &secret)]);
    let times = (now, now.after(std::time::Duration::from_mins(30)));
    let sign_up = state_tokens.sign(&carries, Ids::random(clock).next(), times);
    let mark = hop::Signer::new(hop::key(&secret)).sign([192, 0, 2, 1].into(), now);
    Ok([(Kind::SignUpStateToken, sign_up), (Kind::Hop, mark)])
}

/// One valid token of every kind. Single-use tokens are tried in foreign places first and in their
/// own last; the refresh token only in foreign ones.
pub(crate) async fn tokens(installation: &Installation) -> anyhow::Result<Vec<(Kind, String)>> {
    let mut connection = installation.connect();
    let Person { access, refresh, .. } = people::register(&mut connection, EMAIL).await?;
    let ask = Request { method: "POST", path: "/api/auth/email/verification", ..Request::default() };
    let asked = connection.send(&ask.by(&access)).await?;
    assert_eq!(asked.status, 202, "{}", asked.show());
    let forgot = Request::post("/api/auth/password/forgot", &json!({ "email": EMAIL }));
    assert_eq!(connection.send(&forgot).await?.status, 202);
    let away = connection.send(&Request::get("/api/auth/kakao/start")).await?;
    let offered = connection.send(&Request::get("/api/auth/providers")).await?;
    let mails = &installation.auth.data_dir;
    let mut all = vec![
        (Kind::Access, access),
        (Kind::Refresh, refresh),
        (Kind::VerifyLink, people::mailed(mails, EMAIL, "/verify-email").await),
        (Kind::ResetLink, people::mailed(mails, EMAIL, "/reset-password").await),
        (Kind::Internal, TOKEN.to_owned()),
        (Kind::RedirectStateToken, cookie(&away, "social_trip")?),
        (Kind::NonceStateToken, cookie(&offered, "google_nonce")?),
    ];
    all.extend(signed()?);
    Ok(all)
}

/// Every token in every foreign place.
pub(crate) async fn refused_elsewhere(
    installation: &Installation,
    tokens: &[(Kind, String)],
) -> anyhow::Result<()> {
    for (kind, token) in tokens {
        for channel in Channel::ALL.into_iter().filter(|channel| channel.wants() != Some(*kind)) {
            let answer = channel.present(installation, token).await?;
            let got = (answer.status, answer.code());
            let (status, code) = channel.refusal(*kind);
            assert_eq!(got, (status, code.to_owned()), "{kind:?} as {channel:?}: {}", answer.show());
        }
        // The page with Google's button keeps a valid nonce state token and replaces anything else.
        let kept = format!("google_nonce={token}");
        let headers = [("cookie", kept.as_str())];
        let request = Request { headers: &headers, ..Request::get("/api/auth/providers") };
        let shown = installation.connect().send(&request).await?;
        let is_kept = cookie(&shown, "google_nonce").is_err();
        assert_eq!(
            is_kept,
            *kind == Kind::NonceStateToken,
            "{kind:?} as a nonce state token: {}",
            shown.show()
        );
    }
    Ok(())
}

pub(crate) async fn token_kinds_are_not_interchangeable(installation: &Installation) -> anyhow::Result<()> {
    let mut tokens = tokens(installation).await?;
    let (challenge, recovery) = challenge(installation).await?;
    tokens.push((Kind::Challenge, challenge.clone()));
    refused_elsewhere(installation, &tokens).await?;
    // The state token is accepted; only then is the provider called, which is unreachable.
    let redirect = tokens
        .iter()
        .find(|(kind, _)| *kind == Kind::RedirectStateToken)
        .map(|(_, state_token)| state_token.as_str());
    let back = Channel::RedirectCookie.present(installation, redirect.unwrap_or_default()).await?;
    assert_eq!((back.status, back.code().as_str()), (503, "auth.provider_unavailable"), "{}", back.show());
    // Each token was valid all along. A new password revokes every session, so it comes last.
    let in_place = [
        Channel::Bearer,
        Channel::RefreshBody,
        Channel::VerifyEmail,
        Channel::InternalListener,
        Channel::SignUpCookie,
        Channel::ResetPassword,
    ];
    for channel in in_place {
        let found = tokens.iter().find(|(kind, _)| channel.wants() == Some(*kind));
        let (kind, token) = found.with_context(|| format!("no token for {channel:?}"))?;
        let answer = channel.present(installation, token).await?;
        assert_eq!(answer.status, 200, "{kind:?} in its place: {}", answer.show());
    }
    let body = json!({ "challenge": challenge, "code": recovery });
    let passed = installation.connect().send(&Request::post("/api/auth/login/second-factor", &body)).await?;
    assert_eq!(passed.status, 200, "the challenge in its place: {}", passed.show());
    Ok(())
}
