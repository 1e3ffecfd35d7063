//! The account page: profile, sign-in methods, sessions and how to change them.

use askama::Template;
use axum::{extract::State, response::Response};
use urr_contracts::auth::{
    Account, Auth, Error, LinkedAccounts, ListLinked, ListLogins, ListProviders, ListSessions, LoginAttempt,
    LoginFailure, LoginMethod, Me, Origin, Provider, Session,
};
use urr_http::{About, PAGE, Problem, Routes, StatusCode};
use urr_kernel::CommonError;
use urr_rpc::{Ctx, problem};

use crate::{
    next,
    page::{go_to, page},
    site::Site,
    times,
    visitor::{Layout, Visitor},
    words::Lang,
};

/// Number of sign-ins shown: enough to notice a foreign one.
const SHOWN_LOGINS: u32 = 10;

/// Maximum length of a user agent that is shown.
const MAX_AGENT_CHARS: usize = 60;

pub(crate) fn routes() -> Routes<Site> {
    Routes::new()
        .get("/account", PAGE, account)
        .about(About::new("The caller's own account").bare(StatusCode::OK).bare(StatusCode::SEE_OTHER))
}

#[derive(Template)]
#[template(path = "account.html")]
pub(crate) struct AccountPage {
    pub(crate) shell: Layout,
    pub(crate) account: Account,
    pub(crate) has_password: bool,
    pub(crate) second_needed: bool,
    pub(crate) services: Vec<ServiceRow>,
    pub(crate) sessions: Vec<SessionRow>,
    pub(crate) logins: Vec<LoginRow>,
}

/// A provider whose accounts can be linked.
pub(crate) struct ServiceRow {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    /// When it was linked, if it is.
    pub(crate) since: Option<String>,
}

pub(crate) struct SessionRow {
    pub(crate) id: String,
    pub(crate) device: String,
    pub(crate) address: String,
    pub(crate) method: &'static str,
    pub(crate) used: String,
    pub(crate) current: bool,
}

pub(crate) struct LoginRow {
    pub(crate) at: String,
    pub(crate) device: String,
    pub(crate) address: String,
    pub(crate) method: &'static str,
    /// `None` for a successful sign-in.
    pub(crate) failure: Option<&'static str>,
}

async fn account(State(Site(site)): State<Site>, ctx: Ctx, visitor: Visitor) -> Result<Response, Problem> {
    if visitor.actor.user().is_none() {
        return Ok(go_to(&next::login("/account")));
    }
    match gather(&*site.auth, &ctx, &visitor).await {
        Ok(found) => page(&visitor, &found),
        // The account was closed or the session ended since the token was issued.
        Err(Error::Common(CommonError::SignInRequired) | Error::UserNotFound) => {
            Ok(go_to(&next::login("/account")))
        }
        Err(error) => Err(problem(&error)),
    }
}

async fn gather(auth: &dyn Auth, ctx: &Ctx, visitor: &Visitor) -> Result<AccountPage, Error> {
    let current = visitor.verified.as_ref().map(|verified| verified.access.session);
    let account = auth.me(ctx, Me {}).await?;
    let ways = auth.linked_accounts(ctx, ListLinked {}).await?;
    let offered = auth.providers(ctx, ListProviders {}).await?;
    let sessions = auth.sessions(ctx, ListSessions { current }).await?.sessions;
    let logins = auth.login_history(ctx, ListLogins { before: None, limit: SHOWN_LOGINS }).await?.logins;
    let lang = visitor.lang;
    let offered: Vec<_> =
        offered.providers.into_iter().filter(|offer| offer.redirect).map(|offer| offer.provider).collect();
    Ok(AccountPage {
        shell: visitor.shell(lang.words().account.title, Some("account.js")),
        second_needed: visitor.is_unproven_admin(),
        has_password: ways.password,
        services: services(lang, &offered, &ways),
        sessions: sessions.into_iter().map(|session| session_row(lang, session)).collect(),
        logins: logins.into_iter().map(|attempt| login_row(lang, attempt)).collect(),
        account,
    })
}

/// Offered providers, and linked ones that are no longer offered.
fn services(lang: Lang, offered: &[Provider], ways: &LinkedAccounts) -> Vec<ServiceRow> {
    let linked = |provider| ways.accounts.iter().find(|linked| linked.provider == provider);
    let shown = Provider::ALL.into_iter().filter(|one| offered.contains(one) || linked(*one).is_some());
    shown
        .map(|provider| ServiceRow {
            name: provider.name(),
            label: label(lang, provider),
            since: linked(provider).map(|linked| times::date(lang, linked.linked_at)),
        })
        .collect()
}

fn label(lang: Lang, provider: Provider) -> &'static str {
    match provider {
        Provider::Google => "Google",
        Provider::Kakao => lang.pick("카카오", "Kakao"),
        Provider::Naver => lang.pick("네이버", "Naver"),
    }
}

fn method(lang: Lang, method: LoginMethod) -> &'static str {
    let words = &lang.words().account;
    match method {
        LoginMethod::Password => words.method_password,
        LoginMethod::Reset => words.method_reset,
        LoginMethod::SecondFactor => words.method_second_factor,
        LoginMethod::Google => label(lang, Provider::Google),
        LoginMethod::Kakao => label(lang, Provider::Kakao),
        LoginMethod::Naver => label(lang, Provider::Naver),
    }
}

fn session_row(lang: Lang, session: Session) -> SessionRow {
    SessionRow {
        id: session.id.to_string(),
        device: device(lang, &session.origin),
        method: method(lang, session.method),
        used: times::moment(lang, session.last_used_at),
        address: session.origin.address,
        current: session.current,
    }
}

fn login_row(lang: Lang, attempt: LoginAttempt) -> LoginRow {
    let words = &lang.words().account;
    LoginRow {
        at: times::moment(lang, attempt.at),
        device: device(lang, &attempt.origin),
        method: method(lang, attempt.method),
        failure: attempt.failure.map(|failure| match failure {
            LoginFailure::WrongPassword => words.history_wrong_password,
            LoginFailure::WrongCode => words.history_wrong_code,
        }),
        address: attempt.origin.address,
    }
}

/// A short name of the device for its owner, from the user agent.
fn device(lang: Lang, origin: &Origin) -> String {
    let agent = origin.agent.as_str();
    let find = |names: &[(&str, &'static str)]| {
        names.iter().find(|(mark, _)| agent.contains(mark)).map(|(_, name)| *name)
    };
    // User agents also name the browsers they imitate, so the most specific name comes first.
    let browser = find(&[
        ("KAKAOTALK", "KakaoTalk"),
        ("Whale/", "Whale"),
        ("SamsungBrowser", "Samsung Internet"),
        ("Edg", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox", "Firefox"),
        ("FxiOS", "Firefox"),
        ("CriOS", "Chrome"),
        ("Chrome", "Chrome"),
        ("Safari", "Safari"),
        ("curl", "curl"),
    ]);
    let system = find(&[
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Android", "Android"),
        ("Windows", "Windows"),
        ("Macintosh", "macOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser}, {system}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) if agent.trim().is_empty() => lang.words().account.unknown_device.to_owned(),
        (None, None) => agent.chars().take(MAX_AGENT_CHARS).collect(),
    }
}

impl AccountPage {
    /// The hint of forms that need a recent sign-in; accounts with a password enter it instead.
    pub(crate) fn recent_sign_in(&self) -> Option<&'static str> {
        (!self.has_password).then_some(self.shell.words.account.recent_sign_in)
    }

    /// Whether mails to this account are in this language.
    pub(crate) fn mails_in(&self, lang: Lang) -> bool {
        let language = match self.account.language {
            urr_contracts::auth::Language::Ko => Lang::Ko,
            urr_contracts::auth::Language::En => Lang::En,
        };
        language == lang
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_by_browser_and_system() {
        let named =
            |agent: &str| device(Lang::En, &Origin { address: String::new(), agent: agent.to_owned() });
        let chrome =
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/130.0 Safari/537.36";
        assert_eq!(named(chrome), "Chrome, Windows");
        assert_eq!(
            named("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Version/18.0 Safari/604.1"),
            "Safari, iPhone"
        );
        assert_eq!(named(""), "Unknown device");
        assert_eq!(named(&"x".repeat(500)).len(), MAX_AGENT_CHARS);
    }
}
