//! The answer for proxies of other people's sites: may this request go on? nginx asks it as `auth_request`, Traefik as `forwardAuth`,
//! Envoy as `ext_authz`. Like a check it reads no store, and it changes nothing, so every method is answered in the same way: some proxies
//! ask with the method of the request they ask about.

use axum::{
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header},
    response::{AppendHeaders, IntoResponse as _, Response},
};
use schemars::JsonSchema;
use serde::Deserialize;
use urr_contracts::vwr::Error;
use urr_http::{About, PUBLIC, Problem, Query, Routes};
use urr_kernel::EventId;
use urr_passes::vwr_pass;
use urr_rpc::problem;

use crate::{
    cookies,
    page::{encoded, is_way_back},
    routes::Api,
    service::Service,
};

/// In which proxies say what was asked of them: nginx by custom, Traefik by itself. Envoy puts it behind a `path_prefix`, which is to end with
/// `to=`.
const ASKED: [HeaderName; 2] =
    [HeaderName::from_static("x-original-uri"), HeaderName::from_static("x-forwarded-uri")];

/// What comes before a visitor's target: alone, and behind other parameters.
const TO: &str = "to=";
const AND_TO: &str = "&to=";

pub(crate) fn routes() -> Routes<Api> {
    let about =
        About::new("Whether a request to somebody's site may go on, for its proxy, whatever the method")
            .query::<Asked>()
            .bare(StatusCode::OK)
            .bare(StatusCode::FOUND)
            .refuses([StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN]);
    Routes::new().any("/edge/check", PUBLIC.unlimited(), check).about(about)
}

/// Query of `/edge/check`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "EdgeCheck")]
struct Asked {
    /// Whose line it is: the id of an event, or any UUID that names a site.
    event: EventId,
    /// Where the visitor wanted to go. What begins with `/` is taken as it is, up to the end of the query: a proxy that puts a request's
    /// target here does not encode it, and its parameters are not ours. So this comes last. Without it, `X-Original-URI` or
    /// `X-Forwarded-Uri` says where.
    to: Option<String>,
    /// The status that turns somebody away: `401` for nginx, which takes no redirect from whom it asks; else a redirect.
    deny: Option<Deny>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "EdgeDeny")]
enum Deny {
    #[serde(rename = "401")]
    Unauthorized,
    #[serde(rename = "403")]
    Forbidden,
}

impl Asked {
    fn read(uri: &Uri) -> Result<Self, Problem> {
        let query = uri.query().unwrap_or_default();
        let to = query.strip_prefix(TO).or_else(|| Some(query.split_once(AND_TO)?.1));
        let Some(target) = to.filter(|to| to.starts_with('/')) else { return Ok(Query::read(uri)?.0) };
        let ours = format!("/?{}", query.strip_suffix(target).unwrap_or_default());
        let ours = Uri::try_from(ours).expect("a part of a query is a query");
        Ok(Self { to: Some(target.to_owned()), ..Query::read(&ours)?.0 })
    }
}

async fn check(State(Api(vwr)): State<Api>, uri: Uri, headers: HeaderMap) -> Result<Response, Problem> {
    let asked = Asked::read(&uri)?;
    if let Verdict::Pass(renewed) = judge(&vwr, asked.event, &headers).map_err(|error| problem(&error))? {
        return Ok((AppendHeaders(renewed), StatusCode::OK).into_response());
    }
    let named = || ASKED.iter().find_map(|name| headers.get(name)?.to_str().ok());
    let to = asked.to.as_deref().or_else(named).filter(|to| is_way_back(to)).unwrap_or("/");
    let page = format!("/vwr/{}?to={}", asked.event, encoded(to));
    let page = HeaderValue::try_from(page).expect("a path that was encoded is printable");
    let lines = [(header::LOCATION, page), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    let denied = |status| Problem::new(status, "vwr.pass_required", "Please wait in line first.");
    Ok(match asked.deny {
        None => (StatusCode::FOUND, lines).into_response(),
        Some(Deny::Unauthorized) => (lines, denied(StatusCode::UNAUTHORIZED)).into_response(),
        Some(Deny::Forbidden) => (lines, denied(StatusCode::FORBIDDEN)).into_response(),
    })
}

enum Verdict {
    /// It may go on. The pass that its browser is to keep from now on, if its own grows old.
    Pass(Option<cookies::Line>),
    Wait,
}

fn judge(vwr: &Service, event: EventId, headers: &HeaderMap) -> Result<Verdict, Error> {
    let now = vwr.clock.now();
    let open = vwr.board.room(event)?.map(|(room, _)| room).filter(|room| room.active);
    let Some(open) = open else { return Ok(Verdict::Pass(None)) };
    let held = cookies::pass(headers, event).and_then(|token| vwr.passes.verify(token, now).ok());
    let held = held.filter(|held| held.pass.event == event && held.pass.is_of_line(open.opened_at));
    let Some(held) = held else { return Ok(Verdict::Wait) };
    let renewed = vwr.passes.renew(&held, open.opened_at, now);
    let line = renewed.map(|token| cookies::set_pass(vwr, event, &token, now.after(vwr_pass::LIFETIME)));
    Ok(Verdict::Pass(line))
}
