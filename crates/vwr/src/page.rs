//! The waiting page: one file with a script, and a plain page for browsers without JavaScript.

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
use urr_contracts::vwr::{Checked, PositionStatus};
use urr_http::{About, Class, Path, Query, Routes};
use urr_kernel::EventId;
use urr_rpc::Ctx;

use crate::{
    api::Api,
    cookies,
    routes::{show, stand},
    service::Service,
};

/// The complete page. The server or the export replaces [`HEAD`].
const PAGE: &str = include_str!("page/page.html");
const HEAD: &str = "<!--head-->";
const API: &str = r#"<meta name="vwr-api" content="/vwr-api">"#;

/// Content of `noscript`: the server redirects to the plain page, an exported file cannot.
const REFRESHES: &str =
    "자바스크립트가 없어도 자동으로 새로고침됩니다. · This page refreshes automatically without JavaScript.";
const NEEDS_SCRIPT: &str = "이 화면을 이용하려면 자바스크립트가 필요합니다. · This page needs JavaScript.";

/// Sign-in link on the waiting page. An exported page has none: it may serve another site.
const SIGN_IN: &str = r#"<meta name="vwr-sign-in" content="/login">"#;

/// Longest return path. For longer ones the visitor is sent to the event's page.
const MAX_WAY: usize = 1_000;

/// Shortest refresh interval of the plain page in seconds; each one loads the whole page.
const PLAIN_POLL: u64 = 5;

pub(crate) fn routes() -> Routes<Api> {
    let about = About::new("The waiting page")
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
    /// Path on this site to continue to after the wait. Default: the event's page.
    to: Option<String>,
    /// Any value selects the page without JavaScript.
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
    html(PAGE.replacen(HEAD, &format!("{SIGN_IN}{refresh}"), 1), "public, max-age=60")
}

/// Whether a path stays on this site.
pub(crate) fn is_way_back(to: &str) -> bool {
    let mut bytes = to.bytes();
    bytes.next() == Some(b'/')
        && !matches!(bytes.next(), Some(b'/' | b'\\'))
        && to.len() <= MAX_WAY
        && to.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

/// Percent-encodes a path as a query value.
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

/// Content security policy: only the page's own script and style, by hash.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let policy = format!("{}; frame-ancestors 'none'", policy("'self'"));
    HeaderValue::try_from(policy).expect("hashes are ASCII")
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
    let from = text.find(start).expect("the page contains the start tag") + start.len();
    &text[from..from + text[from..].find(end).expect("the page contains the end tag")]
}

fn html(body: String, cache: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, POLICY.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static(cache)),
    ];
    (headers, body).into_response()
}

/// The page as a file for a CDN. `api` is the path prefix of `/vwr/…`. Returns `None` if it is not
/// on the page's own site: browsers would not send the visitor's cookies there.
pub fn export(api: &str) -> Option<String> {
    if !is_way_back(api) {
        return None;
    }
    let policy =
        format!(r#"<meta http-equiv="Content-Security-Policy" content="{}">"#, escaped(&policy("'self'")));
    let meta = API.replace("/vwr-api", &escaped(api));
    Some(PAGE.replacen(HEAD, &policy, 1).replacen(API, &meta, 1).replacen(REFRESHES, NEEDS_SCRIPT, 1))
}

/// The page without JavaScript. The first request takes a position, and each refresh shows it.
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
            // The room is closed: the visitor may enter.
            Err(problem) if problem.status == StatusCode::NOT_FOUND => return go(to, Vec::new()),
            Err(_) => (None, Vec::new()),
        },
    };
    (AppendHeaders(lines), html(written(words, place.as_ref()), "no-store")).into_response()
}

fn go(to: &str, lines: Vec<cookies::Line>) -> Response {
    let to = HeaderValue::try_from(to).expect("a return path is printable ASCII");
    let headers = [(header::LOCATION, to), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::FOUND, headers, AppendHeaders(lines)).into_response()
}

/// Whether to answer in English: by the site's cookie, else by `Accept-Language`, else Korean.
fn prefers_english(headers: &HeaderMap) -> bool {
    if let Some(chosen) = urr_http::cookie(headers, "lang") {
        return chosen == "en";
    }
    let wanted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or("ko");
    let first = wanted.split(',').map(str::trim).find(|tag| tag.starts_with("ko") || tag.starts_with("en"));
    first.map_or(wanted != "*", |tag| tag.starts_with("en"))
}

/// Texts of the plain page.
struct Words {
    language: &'static str,
    brand: &'static str,
    title: &'static str,
    sub: &'static str,
    ahead: &'static str,
    place: &'static str,
    wait: &'static str,
    turn: &'static str,
    away: &'static str,
    paused: &'static str,
    stopped: &'static str,
}

const KOREAN: Words = Words {
    language: "ko",
    brand: "우르르",
    title: "차례를 기다리고 있습니다",
    sub: "자동으로 새로고침되며, 차례가 되면 자동으로 입장합니다.",
    ahead: "내 앞 대기 인원",
    place: "나의 대기 번호",
    wait: "예상 대기 시간",
    turn: "차례가 되면 10분 안에 예매를 시작해 주세요.",
    away: "지금은 순서를 확인할 수 없습니다. 받은 순서는 그대로 유지되며 자동으로 다시 확인합니다.",
    paused: "입장이 일시 중지되었습니다. 순서는 그대로 유지됩니다.",
    stopped: "일시 중지",
};

const ENGLISH: Words = Words {
    language: "en",
    brand: "URR",
    title: "You are in line",
    sub: "This page refreshes automatically and takes you in when it's your turn.",
    ahead: "people ahead of you",
    place: "Your number",
    wait: "Estimated wait",
    turn: "When it's your turn, you have 10 minutes to continue.",
    away: "We can't check the line right now. You keep your place. We'll try again automatically.",
    paused: "Entry is paused. You keep your place.",
    stopped: "paused",
};

/// A wait in minutes, or in hours above one.
fn minutes(words: &Words, secs: u64) -> String {
    let minutes = secs.div_ceil(60);
    match (words.language, minutes / 60, minutes % 60) {
        ("ko", 0, minutes) => format!("{minutes}분"),
        (_, 0, minutes) => format!("{minutes} min"),
        ("ko", hours, 0) => format!("{hours}시간"),
        ("ko", hours, minutes) => format!("{hours}시간 {minutes}분"),
        (_, hours, 0) => format!("{hours} h"),
        (_, hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

fn written(words: &Words, place: Option<&PositionStatus>) -> String {
    let style = between(PAGE, "<style>", "</style>");
    let refresh = place.map_or(2 * PLAIN_POLL, |place| place.next_poll_secs.max(PLAIN_POLL));
    let Words { language, brand, title, sub, .. } = words;
    let tab = place.map_or_else(String::new, |place| format!("{} · ", place.ahead));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"{language}\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"robots\" content=\"noindex\">\
         <meta http-equiv=\"refresh\" content=\"{refresh}\"><title>{tab}{title} · {brand}</title><link rel=\"icon\" href=\"data:,\">\
         <style>{style}</style></head><body><header><span class=\"name\">{brand}</span></header><main>\
         <section class=\"card still\" aria-labelledby=\"title\"><h1 id=\"title\">{title}</h1><p class=\"sub\">{sub}</p>"
    );
    if let Some(place) = place {
        let wait = if place.paused { words.stopped.to_owned() } else { minutes(words, place.wait_secs) };
        let _infallible = write!(
            page,
            "<div class=\"ring\"><span class=\"count\">{}</span><span class=\"unit\">{}</span></div>\
             <dl><div><dt>{}</dt><dd>{}</dd></div><div><dt>{}</dt><dd>{wait}</dd></div></dl><p class=\"note\">{}</p>",
            place.ahead, words.ahead, words.place, place.position, words.wait, words.turn
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
    fn the_page_is_one_small_self_contained_file() {
        assert!(PAGE.len() < 30_000, "{} bytes", PAGE.len());
        assert!(!PAGE.contains("src=") && !PAGE.contains("http://") && !PAGE.contains("https://"));
        assert!(
            !PAGE.contains("style=\"") && !PAGE.contains(" onclick"),
            "the policy blocks inline styles and handlers"
        );
        assert_eq!(PAGE.matches("<script>").count() + PAGE.matches("<style>").count(), 2);
        assert!(PAGE.contains(HEAD) && PAGE.contains(API));
        let policy = POLICY.to_str().unwrap();
        assert!(!policy.contains("unsafe") && policy.matches("'sha256-").count() == 2, "{policy}");
    }

    #[test]
    fn the_page_names_the_lifetime_of_a_pass() {
        let minutes = urr_passes::vwr_pass::LIFETIME.as_secs() / 60;
        let (korean, english) = (KOREAN.turn, ENGLISH.turn);
        assert!(korean.contains(&format!("{minutes}분")) && english.contains(&format!("{minutes} minutes")));
        assert!(PAGE.contains(korean) && PAGE.contains(english), "both languages name the lifetime");
    }

    #[test]
    fn the_language_cookie_overrides_accept_language() {
        let english = |cookie: &'static str, accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_static(cookie));
            headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static(accept));
            prefers_english(&headers)
        };
        assert!(english("lang=en", "ko") && !english("lang=ko", "en") && english("other=ko", "en"));
        assert!(PAGE.contains("document.cookie"), "the script reads the cookie too");
    }

    #[test]
    fn a_long_wait_is_shown_in_hours() {
        let both = |secs| [minutes(&KOREAN, secs), minutes(&ENGLISH, secs)];
        assert_eq!(both(61), ["2분", "2 min"]);
        assert_eq!(both(7_260), ["2시간 1분", "2 h 1 min"]);
        assert_eq!(both(3_600), ["1시간", "1 h"]);
    }

    #[test]
    fn the_outage_text_depends_on_having_a_position() {
        assert!(PAGE.contains("state==='lost'?(place?w.lost:w.none)") && PAGE.matches(",none:").count() == 2);
        assert!(PAGE.contains("state==='cookies'||!place?'':w.note"));
    }

    #[test]
    fn an_export_calls_its_own_site_only() {
        let own = export("/line/api").unwrap();
        assert!(own.contains("connect-src 'self'") && !own.contains(HEAD));
        assert!(own.contains(r#"<meta name="vwr-api" content="/line/api">"#));
        assert!(PAGE.contains(REFRESHES) && !own.contains(REFRESHES) && own.contains(NEEDS_SCRIPT));
        assert!(!own.contains(SIGN_IN), "an exported page has no sign-in link");
        assert!(own.len() < 30_000);
        for elsewhere in ["https://api.example/line", "//api.example", "api", ""] {
            assert_eq!(export(elsewhere), None, "{elsewhere}: browsers send no cookies there");
        }
    }

    #[test]
    fn a_return_path_stays_on_this_site() {
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
