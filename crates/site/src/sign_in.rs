//! Sign-in, registration, and the pages of mailed links.

use askama::Template;
use axum::{extract::State, response::Response};
use urr_contracts::auth::{Auth, ListProviders, Provider};
use urr_http::{About, PAGE, Problem, Routes, StatusCode};
use urr_rpc::Ctx;

use crate::{
    next,
    page::{go_to, page, secret_page},
    site::Site,
    visitor::{Layout, Visitor},
    words,
};

pub(crate) fn routes() -> Routes<Site> {
    let shown = |what| About::new(what).bare(StatusCode::OK);
    Routes::new()
        .get("/login", PAGE, login)
        .about(shown("The page to sign in on").bare(StatusCode::SEE_OTHER))
        .get("/register", PAGE, register)
        .about(shown("The page to make an account on"))
        .get("/forgot-password", PAGE, forgot)
        .about(shown("The page to ask for a link to set a new password"))
        .get("/reset-password", PAGE, reset)
        .about(shown("The page that a mailed link to set a new password opens"))
        .get("/verify-email", PAGE, verify)
        .about(shown("The page that a mailed link to prove an address opens"))
}

/// The page to show after sign-in: `next` from our pages, `returnTo` from a provider's redirect.
fn next_of(visitor: &Visitor) -> String {
    next::path(visitor.asked("next").or_else(|| visitor.asked("returnTo")).as_deref()).to_owned()
}

/// A sign-in button for a provider.
pub(crate) struct ProviderButton {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) start: String,
}

#[derive(Template)]
#[template(path = "login.html")]
pub(crate) struct LoginPage {
    pub(crate) shell: Layout,
    pub(crate) next: String,
    pub(crate) failed: Option<&'static str>,
    pub(crate) ways: Vec<ProviderButton>,
}

async fn login(State(Site(site)): State<Site>, ctx: Ctx, visitor: Visitor) -> Result<Response, Problem> {
    let (next, error) = (next_of(&visitor), visitor.asked("error"));
    if visitor.actor.user().is_some() && error.is_none() {
        return Ok(go_to(&next));
    }
    let shell = visitor.shell(visitor.lang.words().account.login_title, Some("login.js")).carrying();
    let failed = error.as_deref().map(|code| words::error(visitor.lang, code));
    let ways = ways(&*site.auth, &ctx, &visitor, &next).await;
    secret_page(&visitor, &LoginPage { shell, next, failed, ways })
}

/// The offered providers. If auth is unreachable the page still has its password form.
async fn ways(auth: &dyn Auth, ctx: &Ctx, visitor: &Visitor, next: &str) -> Vec<ProviderButton> {
    let Ok(found) = auth.providers(ctx, ListProviders {}).await else { return Vec::new() };
    let words = &visitor.lang.words().account;
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("returnTo", next).finish();
    let offered = found.providers.into_iter().filter(|offer| offer.redirect);
    offered
        .map(|offer| ProviderButton {
            name: offer.provider.name(),
            label: match offer.provider {
                Provider::Google => words.with_google,
                Provider::Kakao => words.with_kakao,
                Provider::Naver => words.with_naver,
            },
            start: format!("/api/auth/{}/start?{query}", offer.provider.name()),
        })
        .collect()
}

#[derive(Template)]
#[template(path = "register.html")]
pub(crate) struct RegisterPage {
    pub(crate) shell: Layout,
    pub(crate) next: String,
    /// Whether the visitor came back from a provider and only has to accept the terms.
    pub(crate) finishing: bool,
}

async fn register(visitor: Visitor) -> Result<Response, Problem> {
    let finishing = visitor.asked("provider").is_some();
    let words = &visitor.lang.words().account;
    let title = if finishing { words.finish_title } else { words.register_title };
    let shell = visitor.shell(title, Some("register.js"));
    page(&visitor, &RegisterPage { shell, next: next_of(&visitor), finishing })
}

#[derive(Template)]
#[template(path = "forgot.html")]
pub(crate) struct ForgotPage {
    pub(crate) shell: Layout,
}

async fn forgot(visitor: Visitor) -> Result<Response, Problem> {
    let shell = visitor.shell(visitor.lang.words().account.forgot_title, Some("links.js"));
    page(&visitor, &ForgotPage { shell })
}

#[derive(Template)]
#[template(path = "reset.html")]
pub(crate) struct ResetPage {
    pub(crate) shell: Layout,
}

async fn reset(visitor: Visitor) -> Result<Response, Problem> {
    let shell = visitor.shell(visitor.lang.words().account.reset_title, Some("links.js")).carrying();
    secret_page(&visitor, &ResetPage { shell })
}

#[derive(Template)]
#[template(path = "verify.html")]
pub(crate) struct VerifyPage {
    pub(crate) shell: Layout,
}

async fn verify(visitor: Visitor) -> Result<Response, Problem> {
    let shell = visitor.shell(visitor.lang.words().account.verify_title, Some("links.js")).carrying();
    secret_page(&visitor, &VerifyPage { shell })
}
