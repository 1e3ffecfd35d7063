//! The page on which one waits: one file that a script brings to life, and a plain one for browsers without scripts.

use std::{fmt::Write as _, sync::LazyLock};

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{AppendHeaders, IntoResponse as _, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use urr_contracts::vwr::{Checked, Place};
use urr_http::{About, Class, Path, Query, Routes};
use urr_kernel::EventId;
use urr_rpc::Ctx;

use crate::{
    cookies,
    routes::{Api, show, stand},
    service::Service,
};

/// The page, whole. What the server or an export adds goes in place of [`HEAD`].
const PAGE: &str = include_str!("page/page.html");
const HEAD: &str = "<!--head-->";
const API: &str = r#"<meta name="vwr-api" content="/vwr-api">"#;

/// What is said without scripts: by the server, which then sends another page, and by a file, which cannot.
const REFRESHES: &str =
    "이 화면은 JavaScript 없이도 스스로 새로 고쳐집니다. · This page refreshes itself without JavaScript.";
const NEEDS_SCRIPT: &str = "이 화면에는 JavaScript가 필요합니다. · This page needs JavaScript.";

/// Longest way back. Longer ones are forgotten, and the visitor comes to the event's page.
const MAX_WAY: usize = 1_000;

/// A browser without scripts asks no more often than this, in seconds: it loads a whole page each time.
const PLAIN_POLL: u64 = 5;

pub(crate) fn routes() -> Routes<Api> {
    let about = About::new("The page on which one waits")
        .path::<EventId>("id")
        .query::<Asked>()
        .bare(StatusCode::OK)
        .bare(StatusCode::FOUND);
    Routes::new().get("/vwr/{id}", urr_http::PAGE.limit(Class::Arrivals), page).about(about)
}

/// Query of the page.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "VwrPage")]
struct Asked {
    /// Where to go when it is one's turn: a path of this site. The event's page if nothing is said.
    to: Option<String>,
    /// Anything: for a browser without scripts.
    plain: Option<String>,
}

async fn page(
    State(Api(vwr)): State<Api>,
    ctx: Ctx,
    Path(event): Path<EventId>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Response {
    let to = asked.to.filter(|to| is_way_back(to)).unwrap_or_else(|| format!("/events/{event}"));
    if asked.plain.is_some() {
        return plain(&vwr, &ctx, event, &to, &headers).await;
    }
    let link = format!("/vwr/{event}?plain=1&amp;to={}", escaped(&encoded(&to)));
    let refresh = format!(r#"<noscript><meta http-equiv="refresh" content="0; url={link}"></noscript>"#);
    html(PAGE.replacen(HEAD, &refresh, 1), "public, max-age=60")
}

/// Whether a path leads somewhere on this site and nowhere else.
pub(crate) fn is_way_back(to: &str) -> bool {
    let mut bytes = to.bytes();
    bytes.next() == Some(b'/')
        && !matches!(bytes.next(), Some(b'/' | b'\\'))
        && to.len() <= MAX_WAY
        && to.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

/// A path as the value of a query.
pub(crate) fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _infallible = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Nothing but the page's own script and style, by their hashes, and nothing from anywhere else.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let policy = format!("{}; frame-ancestors 'none'", policy("'self'"));
    HeaderValue::try_from(policy).expect("hashes are printable")
});

fn policy(api: &str) -> String {
    let hash = |tag: &str| {
        let inside = between(PAGE, &format!("<{tag}>"), &format!("</{tag}>"));
        STANDARD.encode(Sha256::digest(inside.as_bytes()))
    };
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src {api}; img-src data:; \
         base-uri 'none'; form-action 'none'",
        hash("script"),
        hash("style")
    )
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let from = text.find(start).expect("the page has it") + start.len();
    &text[from..from + text[from..].find(end).expect("and it ends")]
}

fn html(body: String, cache: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, POLICY.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static(cache)),
    ];
    (headers, body).into_response()
}

/// The page as a file for a CDN. `api`: the path below which `/vwr/…` is asked for. Nothing if that is not on the page's own site: a
/// browser would not send the cookie there that says whose place it is.
pub fn export(api: &str) -> Option<String> {
    if !is_way_back(api) {
        return None;
    }
    let policy =
        format!(r#"<meta http-equiv="Content-Security-Policy" content="{}">"#, escaped(&policy("'self'")));
    let meta = API.replace("/vwr-api", &escaped(api));
    Some(PAGE.replacen(HEAD, &policy, 1).replacen(API, &meta, 1).replacen(REFRESHES, NEEDS_SCRIPT, 1))
}

/// A place in line without any script: the browser takes one with the first look and sees where it stands with every other.
async fn plain(vwr: &Service, ctx: &Ctx, event: EventId, to: &str, headers: &HeaderMap) -> Response {
    let words = if prefers_english(headers) { &ENGLISH } else { &KOREAN };
    let held = cookies::ticket(headers, event).map(|ticket| show(vwr, event, ticket.to_owned(), headers));
    let (place, lines) = match held {
        Some(Ok(Checked::Admitted { token, expires_at, .. })) => {
            return go(to, vec![cookies::set_pass(vwr, event, &token, expires_at)]);
        }
        Some(Ok(Checked::Waiting { place })) => (Some(place), Vec::new()),
        Some(Err(_)) | None => match stand(vwr, ctx, event, headers).await {
            Ok((assigned, lines)) => (Some(assigned.place), lines),
            // Nobody has to wait here.
            Err(problem) if problem.status == StatusCode::NOT_FOUND => return go(to, Vec::new()),
            Err(_) => (None, Vec::new()),
        },
    };
    (AppendHeaders(lines), html(written(words, place.as_ref()), "no-store")).into_response()
}

fn go(to: &str, lines: Vec<cookies::Line>) -> Response {
    let to = HeaderValue::try_from(to).expect("a way back is printable");
    let headers = [(header::LOCATION, to), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::FOUND, headers, AppendHeaders(lines)).into_response()
}

/// Whether English comes before Korean in what the browser asks for. Korean where it does not say.
fn prefers_english(headers: &HeaderMap) -> bool {
    let wanted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or("ko");
    let first = wanted.split(',').map(str::trim).find(|tag| tag.starts_with("ko") || tag.starts_with("en"));
    first.map_or(wanted != "*", |tag| tag.starts_with("en"))
}

/// What the plain page says.
struct Words {
    language: &'static str,
    title: &'static str,
    sub: &'static str,
    ahead: &'static str,
    place: &'static str,
    wait: &'static str,
    minutes: &'static str,
    away: &'static str,
    paused: &'static str,
    stopped: &'static str,
}

const KOREAN: Words = Words {
    language: "ko",
    title: "차례를 기다리고 있어요",
    sub: "이 화면은 스스로 새로 고쳐지고, 차례가 되면 자동으로 입장합니다.",
    ahead: "앞에 남은 사람",
    place: "내 순번",
    wait: "예상 대기",
    minutes: "분",
    away: "지금은 순번을 확인할 수 없어요. 받은 순번은 그대로이고, 곧 다시 확인합니다.",
    paused: "지금은 입장이 잠시 멈춰 있어요. 순번은 그대로입니다.",
    stopped: "입장 멈춤",
};

const ENGLISH: Words = Words {
    language: "en",
    title: "You are in line",
    sub: "This page refreshes itself and lets you in when it is your turn.",
    ahead: "people ahead of you",
    place: "Your number",
    wait: "Estimated wait",
    minutes: "min",
    away: "We cannot look up the line right now. A number you have is kept; we are trying again.",
    paused: "Nobody is being let in for a moment. You keep your place.",
    stopped: "paused",
};

fn written(words: &Words, place: Option<&Place>) -> String {
    let style = between(PAGE, "<style>", "</style>");
    let refresh = place.map_or(2 * PLAIN_POLL, |place| place.next_poll_secs.max(PLAIN_POLL));
    let Words { language, title, sub, .. } = words;
    let mut page = format!(
        "<!doctype html>\n<html lang=\"{language}\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"robots\" content=\"noindex\">\
         <meta http-equiv=\"refresh\" content=\"{refresh}\"><title>{title} · URR</title><link rel=\"icon\" href=\"data:,\">\
         <style>{style}</style></head><body><header><span class=\"name\">URR 우르르</span></header><main>\
         <section class=\"card still\" aria-labelledby=\"title\"><h1 id=\"title\">{title}</h1><p class=\"sub\">{sub}</p>"
    );
    if let Some(place) = place {
        let wait = if place.paused {
            words.stopped.to_owned()
        } else {
            format!("{} {}", place.wait_secs.div_ceil(60), words.minutes)
        };
        let _infallible = write!(
            page,
            "<div class=\"ring\"><span class=\"count\">{}</span><span class=\"unit\">{}</span></div>\
             <dl><div><dt>{}</dt><dd>{}</dd></div><div><dt>{}</dt><dd>{wait}</dd></div></dl>",
            place.ahead, words.ahead, words.place, place.position, words.wait
        );
        if place.paused {
            let _infallible = write!(page, "<p class=\"warn\">{}</p>", words.paused);
        }
    } else {
        let _infallible = write!(page, "<p class=\"warn\">{}</p>", words.away);
    }
    page.push_str("</section></main></body></html>\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_one_small_file_that_loads_nothing() {
        assert!(PAGE.len() < 30_000, "{} bytes", PAGE.len());
        assert!(!PAGE.contains("src=") && !PAGE.contains("http://") && !PAGE.contains("https://"));
        assert!(!PAGE.contains("style=\"") && !PAGE.contains(" onclick"), "the policy would not run it");
        assert_eq!(PAGE.matches("<script>").count() + PAGE.matches("<style>").count(), 2);
        assert!(PAGE.contains(HEAD) && PAGE.contains(API));
        let policy = POLICY.to_str().unwrap();
        assert!(!policy.contains("unsafe") && policy.matches("'sha256-").count() == 2, "{policy}");
    }

    #[test]
    fn only_whoever_has_a_place_is_told_that_they_keep_it() {
        assert!(
            PAGE.contains("state==='lost'?(place?w.lost:w.none)") && PAGE.matches(",none:'").count() == 2
        );
        assert!(PAGE.contains("state==='cookies'||!place?'':w.note"));
    }

    #[test]
    fn an_export_asks_its_own_site_and_claims_nothing_it_cannot_do() {
        let own = export("/line/api").unwrap();
        assert!(own.contains("connect-src 'self'") && !own.contains(HEAD));
        assert!(own.contains(r#"<meta name="vwr-api" content="/line/api">"#));
        assert!(PAGE.contains(REFRESHES) && !own.contains(REFRESHES) && own.contains(NEEDS_SCRIPT));
        assert!(own.len() < 30_000);
        for elsewhere in ["https://api.example/line", "//api.example", "api", ""] {
            assert_eq!(export(elsewhere), None, "{elsewhere}: cookies do not go there");
        }
    }

    #[test]
    fn a_way_back_stays_on_this_site() {
        for good in ["/", "/events/1/seats", "/x?y=1&z=%20", "/a:b"] {
            assert!(is_way_back(good), "{good}");
        }
        let long = format!("/{}", "x".repeat(MAX_WAY));
        for bad in [
            "",
            "x",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\nb",
            "/a b",
            "/\u{e9}",
            &long,
        ] {
            assert!(!is_way_back(bad), "{bad}");
        }
        assert_eq!(encoded("/a?b=\"<&"), "/a%3Fb%3D%22%3C%26");
    }
}
