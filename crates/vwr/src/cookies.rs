//! What a browser carries: which one it is, its ticket, and the pass it gets.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use urr_kernel::{EventId, Timestamp, VisitorId};
use urr_passes::vwr_ticket;

use crate::service::Service;

/// Which browser this is.
const VISITOR: &str = "urr-visitor";
/// The Tier 1 pass.
const PASS: &str = "urr-vwr-token";
/// A browser is known for this long.
const KNOWN: Duration = Duration::from_hours(24 * 30);

/// A line of an answer.
pub(crate) type Line = (HeaderName, HeaderValue);

/// Which browser this is, if we have met it.
pub(crate) fn visitor(service: &Service, headers: &HeaderMap) -> Option<VisitorId> {
    service.marks.verify(find(headers, VISITOR)?).ok()
}

/// The pass that a browser has.
pub(crate) fn pass(headers: &HeaderMap) -> Option<&str> {
    find(headers, PASS)
}

/// The ticket that a browser has for an event.
pub(crate) fn ticket(headers: &HeaderMap, event: EventId) -> Option<&str> {
    find(headers, &ticket_name(event))
}

fn ticket_name(event: EventId) -> String {
    format!("urr-vwr-{}", event.as_uuid().simple())
}

/// Other sites on the same domain can plant a second cookie of a name; two that differ are none.
fn find<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let mut found = None;
    for (_, value) in pairs.filter(|(name, _)| name.trim() == wanted) {
        let value = value.trim();
        if found.is_some_and(|found| found != value) {
            return None;
        }
        found = Some(value);
    }
    found.filter(|value| !value.is_empty())
}

/// Makes a browser known.
pub(crate) fn set_visitor(service: &Service, visitor: VisitorId) -> Line {
    set(service, VISITOR, &service.marks.sign(visitor), KNOWN)
}

/// Gives a browser its ticket to keep.
pub(crate) fn set_ticket(service: &Service, event: EventId, ticket: &str) -> Line {
    set(service, &ticket_name(event), ticket, vwr_ticket::LIFETIME)
}

/// Gives a browser its pass.
pub(crate) fn set_pass(service: &Service, token: &str, expires_at: Timestamp) -> Line {
    set(service, PASS, token, expires_at.since(service.clock.now()))
}

/// For HTTP alone, and sent along when somebody follows a link to us.
fn set(service: &Service, name: &str, value: &str, age: Duration) -> Line {
    let secure = if service.settings.secure_cookies { "; Secure" } else { "" };
    let age = age.as_secs();
    let text = format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
    let mut value = HeaderValue::try_from(text).expect("tokens are printable ASCII");
    value.set_sensitive(true);
    (header::SET_COOKIE, value)
}
