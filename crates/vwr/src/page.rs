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
    "자바스크립트가 없어도 자동으로 새로고침됩니다. · This page refreshes automatically without JavaScript.";
const NEEDS_SCRIPT: &str = "이 화면을 이용하려면 자바스크립트가 필요합니다. · This page needs JavaScript.";

/// Where people sign in while they wait. An exported page has none: it may stand in front of another site.
const SIGN_IN: &str = r#"<meta name="vwr-sign-in" content="/login">"#;

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
    html(PAGE.replacen(HEAD, &format!("{SIGN_IN}{refresh}"), 1), "public, max-age=60")
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

/// Whether the page is in English: as the cookie of the site says, else as the browser prefers. Korean if neither says anything.
fn prefers_english(headers: &HeaderMap) -> bool {
    if let Some(chosen) = urr_http::cookie(headers, "lang") {
        return chosen == "en";
    }
    let wanted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or("ko");
    let first = wanted.split(',').map(str::trim).find(|tag| tag.starts_with("ko") || tag.starts_with("en"));
    first.map_or(wanted != "*", |tag| tag.starts_with("en"))
}

/// What the plain page says.
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

/// A wait in minutes, or in hours once it is longer than one.
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

fn written(words: &Words, place: Option<&Place>) -> String {
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
    fn a_pass_lasts_as_long_as_the_page_says() {
        let minutes = urr_passes::vwr_pass::LIFETIME.as_secs() / 60;
        let (korean, english) = (KOREAN.turn, ENGLISH.turn);
        assert!(korean.contains(&format!("{minutes}분")) && english.contains(&format!("{minutes} minutes")));
        assert!(PAGE.contains(korean) && PAGE.contains(english), "both pages say the same");
    }

    #[test]
    fn the_language_of_the_site_comes_before_that_of_the_browser() {
        let english = |cookie: &'static str, accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_static(cookie));
            headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static(accept));
            prefers_english(&headers)
        };
        assert!(english("lang=en", "ko") && !english("lang=ko", "en") && english("other=ko", "en"));
        assert!(PAGE.contains("document.cookie"), "the other page reads it, too");
    }

    #[test]
    fn a_long_wait_is_told_in_hours() {
        let both = |secs| [minutes(&KOREAN, secs), minutes(&ENGLISH, secs)];
        assert_eq!(both(61), ["2분", "2 min"]);
        assert_eq!(both(7_260), ["2시간 1분", "2 h 1 min"]);
        assert_eq!(both(3_600), ["1시간", "1 h"]);
    }

    #[test]
    fn only_whoever_has_a_place_is_told_that_they_keep_it() {
        assert!(PAGE.contains("state==='lost'?(place?w.lost:w.none)") && PAGE.matches(",none:").count() == 2);
        assert!(PAGE.contains("state==='cookies'||!place?'':w.note"));
    }

    #[test]
    fn an_export_asks_its_own_site_and_claims_nothing_it_cannot_do() {
        let own = export("/line/api").unwrap();
        assert!(own.contains("connect-src 'self'") && !own.contains(HEAD));
        assert!(own.contains(r#"<meta name="vwr-api" content="/line/api">"#));
        assert!(PAGE.contains(REFRESHES) && !own.contains(REFRESHES) && own.contains(NEEDS_SCRIPT));
        assert!(!own.contains(SIGN_IN), "another site has another way to sign in");
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
