//! Authorisation endpoint for reverse proxies of other sites: nginx `auth_request`, Traefik
//! `forwardAuth`, Envoy `ext_authz`. Like a check it reads no store and changes nothing. Every
//! method gets the same answer, because some proxies forward the visitor's method.

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
    api::Api,
    cookies,
    page::{encoded, is_way_back},
    service::Service,
};

/// Headers with the visitor's target: nginx by convention, Traefik by default. Envoy appends it to
/// a `path_prefix`, which must end with `to=`.
const ASKED: [HeaderName; 2] =
    [HeaderName::from_static("x-original-uri"), HeaderName::from_static("x-forwarded-uri")];

/// Name of the target parameter, as the first and as a later one.
const TO: &str = "to=";
const AND_TO: &str = "&to=";

pub(crate) fn routes() -> Routes<Api> {
    let about = About::new("Whether a reverse proxy may forward a request; the same for every method")
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
    /// The room: the id of an event, or any UUID that names a site.
    event: EventId,
    /// The visitor's target. A value that starts with `/` extends to the end of the query: proxies
    /// insert it without encoding, and its parameters are not ours. So this must be last. Default:
    /// `X-Original-URI` or `X-Forwarded-Uri`.
    to: Option<String>,
    /// Status of a refusal: `401` for nginx, which does not accept a redirect here; else a
    /// redirect.
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
        let ours = Uri::try_from(ours).expect("a part of a query is a valid query");
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
    let page = HeaderValue::try_from(page).expect("an encoded path is printable ASCII");
    let lines = [(header::LOCATION, page), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    let denied = |status| Problem::new(status, "vwr.pass_required", "Please wait in line first.");
    Ok(match asked.deny {
        None => (StatusCode::FOUND, lines).into_response(),
        Some(Deny::Unauthorized) => (lines, denied(StatusCode::UNAUTHORIZED)).into_response(),
        Some(Deny::Forbidden) => (lines, denied(StatusCode::FORBIDDEN)).into_response(),
    })
}

enum Verdict {
    /// The request may pass. Contains the renewed pass, if the current one is getting old.
    Pass(Option<cookies::Line>),
    Wait,
}

fn judge(vwr: &Service, event: EventId, headers: &HeaderMap) -> Result<Verdict, Error> {
    let now = vwr.clock.now();
    let open = vwr.room_cache.room(event)?.map(|(room, _)| room).filter(|room| room.active);
    let Some(open) = open else { return Ok(Verdict::Pass(None)) };
    let held = cookies::pass(headers, event).and_then(|token| vwr.passes.verify(token, now).ok());
    let held = held.filter(|held| held.pass.event == event && held.pass.is_of_line(open.opened_at));
    let Some(held) = held else { return Ok(Verdict::Wait) };
    let renewed = vwr.passes.renew(&held, open.opened_at, now);
    let line = renewed.map(|token| cookies::set_pass(vwr, event, &token, now.after(vwr_pass::LIFETIME)));
    Ok(Verdict::Pass(line))
}
