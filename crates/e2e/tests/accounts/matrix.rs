//! Every kind of token where every other kind is expected.

use serde_json::json;
use urr_e2e::{
    http::{Answer, Connection, Request},
    installation::{Installation, TOKEN},
    people::{self, Person},
};

const EMAIL: &str = "matrix@example.com";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Access,
    Refresh,
    VerifyLink,
    ResetLink,
    Internal,
}

/// Somewhere a token is asked for.
#[derive(Clone, Copy, Debug)]
enum Place {
    Bearer,
    Cookie,
    Operator,
    RefreshBody,
    RefreshCookie,
    VerifyEmail,
    ResetPassword,
    VerifyToken,
    InternalListener,
}

impl Place {
    const ALL: [Self; 9] = [
        Self::Bearer,
        Self::Cookie,
        Self::Operator,
        Self::RefreshBody,
        Self::RefreshCookie,
        Self::VerifyEmail,
        Self::ResetPassword,
        Self::VerifyToken,
        Self::InternalListener,
    ];

    /// The kind that belongs there. An operator's token is an access token too, but not this one.
    fn wants(self) -> Option<Kind> {
        match self {
            Self::Bearer | Self::Cookie | Self::VerifyToken => Some(Kind::Access),
            Self::RefreshBody | Self::RefreshCookie => Some(Kind::Refresh),
            Self::VerifyEmail => Some(Kind::VerifyLink),
            Self::ResetPassword => Some(Kind::ResetLink),
            Self::InternalListener => Some(Kind::Internal),
            Self::Operator => None,
        }
    }

    /// What anything else is told there. Older clients know what `auth` refuses in a body as 400: a 401 would make them refresh a
    /// token that is not the trouble.
    fn refusal(self, kind: Kind) -> (u16, &'static str) {
        match self {
            Self::Operator if kind == Kind::Access => (403, "auth.admin_required"),
            Self::Bearer | Self::Cookie | Self::Operator | Self::VerifyToken => (401, "auth.token_invalid"),
            Self::RefreshBody | Self::RefreshCookie => (400, "auth.refresh_invalid"),
            Self::VerifyEmail | Self::ResetPassword => (400, "auth.link_invalid"),
            Self::InternalListener => (403, "internal.token_wrong"),
        }
    }

    async fn present(self, installation: &Installation, token: &str) -> anyhow::Result<Answer> {
        let mut front = installation.connect();
        let origin = format!("http://{}", installation.front);
        let post = |path, body| Request::post(path, body);
        Ok(match self {
            Self::Bearer => front.send(&Request::get("/api/reservations/my").by(token)).await?,
            Self::Operator => front.send(&Request::get("/api/admin/seat-layouts").by(token)).await?,
            Self::Cookie => {
                let cookie = format!("access_token={token}");
                let headers = [("cookie", cookie.as_str())];
                front.send(&Request { headers: &headers, ..Request::get("/api/auth/me") }).await?
            }
            Self::RefreshBody => people::refresh(&mut front, token).await?,
            Self::RefreshCookie => {
                let cookie = format!("refresh_token={token}");
                let headers = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
                let path = "/api/auth/refresh";
                front.send(&Request { method: "POST", path, headers: &headers, ..Request::default() }).await?
            }
            Self::VerifyEmail => {
                front.send(&post("/api/auth/email/verify", &json!({ "token": token }))).await?
            }
            Self::ResetPassword => {
                let body = json!({ "token": token, "password": "a new horse for the battery" });
                front.send(&post("/api/auth/password/reset", &body)).await?
            }
            Self::VerifyToken => {
                front.send(&post("/api/auth/verify-token", &json!({ "token": token }))).await?
            }
            Self::InternalListener => {
                Connection::to(installation.internal).send(&Request::get("/internal/roles").by(token)).await?
            }
        })
    }
}

/// One good token of every kind, all of one account. The matrix presents a refresh token to others only, and each link to others
/// first: what is used once is used last.
async fn tokens(installation: &Installation) -> anyhow::Result<Vec<(Kind, String)>> {
    let mut connection = installation.connect();
    let Person { access, refresh, .. } = people::register(&mut connection, EMAIL).await?;
    let ask = Request { method: "POST", path: "/api/auth/email/verification", ..Request::default() };
    let asked = connection.send(&ask.by(&access)).await?;
    assert_eq!(asked.status, 202, "{}", asked.show());
    let forgot = Request::post("/api/auth/password/forgot", &json!({ "email": EMAIL }));
    assert_eq!(connection.send(&forgot).await?.status, 202);
    let mails = &installation.auth.data_dir;
    Ok(vec![
        (Kind::Access, access),
        (Kind::Refresh, refresh),
        (Kind::VerifyLink, people::mailed(mails, EMAIL, "/verify-email").await),
        (Kind::ResetLink, people::mailed(mails, EMAIL, "/reset-password").await),
        (Kind::Internal, TOKEN.to_owned()),
    ])
}

pub(crate) async fn a_token_of_one_kind_is_none_of_another(
    installation: &Installation,
) -> anyhow::Result<()> {
    let tokens = tokens(installation).await?;
    for (kind, token) in &tokens {
        for place in Place::ALL.into_iter().filter(|place| place.wants() != Some(*kind)) {
            let answer = place.present(installation, token).await?;
            let got = (answer.status, answer.code());
            let (status, code) = place.refusal(*kind);
            assert_eq!(got, (status, code.to_owned()), "{kind:?} as {place:?}: {}", answer.show());
        }
    }
    // Each of them was good all along. A new password ends every session, so it comes last.
    let in_place = [
        Place::Bearer,
        Place::RefreshBody,
        Place::VerifyEmail,
        Place::InternalListener,
        Place::ResetPassword,
    ];
    for place in in_place {
        let found = tokens.iter().find(|(kind, _)| place.wants() == Some(*kind));
        let (kind, token) = found.ok_or_else(|| anyhow::anyhow!("no token for {place:?}"))?;
        let answer = place.present(installation, token).await?;
        assert_eq!(answer.status, 200, "{kind:?} in its place: {}", answer.show());
    }
    Ok(())
}
