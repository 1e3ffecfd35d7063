//! Cookies of a browser: its visitor id, its ticket, and its pass.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use urr_http::cookie;
use urr_kernel::{EventId, Timestamp, VisitorId};
use urr_passes::{visitor, vwr_pass, vwr_ticket};

use crate::service::Service;

/// A `Set-Cookie` header.
pub(crate) type Line = (HeaderName, HeaderValue);

/// The browser's visitor id at an event, if it has one.
pub(crate) fn visitor(service: &Service, headers: &HeaderMap, event: EventId) -> Option<VisitorId> {
    let mark = cookie(headers, &visitor::cookie(event)).or_else(|| cookie(headers, visitor::COOKIE));
    service.marks.verify(mark?).ok()
}

/// The browser's pass for an event.
pub(crate) fn pass(headers: &HeaderMap, event: EventId) -> Option<&str> {
    cookie(headers, &vwr_pass::cookie(event)).or_else(|| cookie(headers, vwr_pass::COOKIE))
}

/// The browser's ticket for an event.
pub(crate) fn ticket(headers: &HeaderMap, event: EventId) -> Option<&str> {
    cookie(headers, &ticket_name(event))
}

fn ticket_name(event: EventId) -> String {
    format!("urr-vwr-{}", event.as_uuid().simple())
}

/// Sets the visitor id, for the lifetime of a ticket.
pub(crate) fn set_visitor(service: &Service, event: EventId, visitor: VisitorId) -> Line {
    set(service, &visitor::cookie(event), &service.marks.sign(visitor), vwr_ticket::LIFETIME)
}

/// Sets the ticket.
pub(crate) fn set_ticket(service: &Service, event: EventId, ticket: &str) -> Line {
    set(service, &ticket_name(event), ticket, vwr_ticket::LIFETIME)
}

/// Sets the pass.
pub(crate) fn set_pass(service: &Service, event: EventId, token: &str, expires_at: Timestamp) -> Line {
    set(service, &vwr_pass::cookie(event), token, expires_at.since(service.clock.now()))
}

/// `HttpOnly`, and `SameSite=Lax` so that links to us carry it.
fn set(service: &Service, name: &str, value: &str, age: Duration) -> Line {
    let secure = if service.secure_cookies { "; Secure" } else { "" };
    let age = age.as_secs();
    let text = format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
    let mut value = HeaderValue::try_from(text).expect("tokens are printable ASCII");
    value.set_sensitive(true);
    (header::SET_COOKIE, value)
}
