//! Shared by both groups of routes: handler state and cookies.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use urr_contracts::{auth::Sensitive, queue::QueueTicket};
use urr_kernel::{EventId, Timestamp};
use urr_passes::{entry, queue_ticket, visitor, vwr_pass};
use urr_rpc::handler_state;

use crate::service::Service;

handler_state! {
    /// State of the route handlers.
    pub(crate) struct Api(Service);
}

/// A `Set-Cookie` header.
pub(crate) type Line = (HeaderName, HeaderValue);

pub(crate) fn cookie(headers: &HeaderMap, wanted: &str) -> Option<Sensitive> {
    urr_http::cookie(headers, wanted).map(Sensitive::new)
}

/// The browser's Tier 1 pass for an event.
pub(crate) fn pass(headers: &HeaderMap, event: EventId) -> Option<Sensitive> {
    cookie(headers, &vwr_pass::cookie(event)).or_else(|| cookie(headers, vwr_pass::COOKIE))
}

impl Api {
    /// Sets the cookies of a queue ticket.
    pub(crate) fn keep_ticket(&self, event: EventId, ticket: &QueueTicket) -> [Line; TICKET_PATHS] {
        self.tickets(event, ticket.token.expose(), ticket.expires_at.since(self.0.clock.now()))
    }

    /// Sets the cookies of an entry token.
    pub(crate) fn keep_entry(
        &self,
        event: EventId,
        token: &Sensitive,
        until: Timestamp,
    ) -> [Line; ENTRY_PATHS] {
        self.entries(event, token.expose(), until.since(self.0.clock.now()))
    }

    /// Deletes the cookies of a used ticket.
    pub(crate) fn forget_ticket(&self, event: EventId) -> [Line; TICKET_PATHS] {
        self.tickets(event, "", Duration::ZERO)
    }

    /// Deletes the cookies of ticket and entry token.
    pub(crate) fn forget(&self, event: EventId) -> Vec<Line> {
        self.forget_ticket(event).into_iter().chain(self.entries(event, "", Duration::ZERO)).collect()
    }

    fn tickets(&self, event: EventId, token: &str, age: Duration) -> [Line; TICKET_PATHS] {
        ticket_paths(event).map(|path| self.line(queue_ticket::COOKIE, &path, token, age))
    }

    fn entries(&self, event: EventId, token: &str, age: Duration) -> [Line; ENTRY_PATHS] {
        entry_paths(event).map(|path| self.line(entry::COOKIE, &path, token, age))
    }

    /// Deletes the cookies of a used Tier 1 turn (pass, ticket and visitor id), so that the browser
    /// can wait again.
    pub(crate) fn forget_turn(&self, event: EventId) -> [Line; 5] {
        let ticket = format!("urr-vwr-{}", event.as_uuid().simple());
        let (pass, mark) = (vwr_pass::cookie(event), visitor::cookie(event));
        [&pass, vwr_pass::COOKIE, &ticket, &mark, visitor::COOKIE]
            .map(|name| self.line(name, "/", "", Duration::ZERO))
    }

    fn line(&self, name: &str, path: &str, value: &str, age: Duration) -> Line {
        let (age, secure) = (age.as_secs(), if self.0.secure_cookies { "; Secure" } else { "" });
        let text = format!("{name}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
        let mut value = HeaderValue::try_from(text).expect("tokens are printable ASCII");
        value.set_sensitive(true);
        (header::SET_COOKIE, value)
    }
}

const TICKET_PATHS: usize = 4;
const ENTRY_PATHS: usize = 3;

/// Paths that get the ticket: the check of its event, under both API prefixes, and the event's
/// pages. If Tier 1 is opened meanwhile, the ticket leads its owner past it to those.
fn ticket_paths(event: EventId) -> [String; TICKET_PATHS] {
    let [queue, pages] = pages(event);
    [format!("/api/queue/check/{event}"), format!("/api/v1/queue/check/{event}"), queue, pages]
}

/// Paths that get the entry token: the API, and the event's pages. No path contains another, so a
/// request never carries two different tokens.
fn entry_paths(event: EventId) -> [String; ENTRY_PATHS] {
    let [queue, pages] = pages(event);
    ["/api".to_owned(), queue, pages]
}

fn pages(event: EventId) -> [String; 2] {
    [format!("/queue/{event}"), format!("/events/{event}")]
}
