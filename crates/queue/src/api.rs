//! What the routes of both parts share: what handlers work with, and the cookies.

use std::{sync::Arc, time::Duration};

use axum::extract::FromRef;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use urr_contracts::{auth::Sensitive, queue::PlaceTicket};
use urr_kernel::{Clock, EventId, Ids, Timestamp};
use urr_passes::{entry, queue_ticket, visitor, vwr_pass};

use crate::service::Service;

/// What handlers work with.
#[derive(Clone)]
pub(crate) struct Api(pub(crate) Arc<Service>);

impl FromRef<Api> for Clock {
    fn from_ref(api: &Api) -> Self {
        api.0.clock.clone()
    }
}

impl FromRef<Api> for Ids {
    fn from_ref(api: &Api) -> Self {
        api.0.ids.clone()
    }
}

/// One line of an answer.
pub(crate) type Line = (HeaderName, HeaderValue);

/// The cookie of this name.
pub(crate) fn cookie(headers: &HeaderMap, wanted: &str) -> Option<Sensitive> {
    urr_http::cookie(headers, wanted).map(Sensitive::new)
}

/// The Tier 1 pass of a browser for an event.
pub(crate) fn pass(headers: &HeaderMap, event: EventId) -> Option<Sensitive> {
    cookie(headers, &vwr_pass::cookie(event)).or_else(|| cookie(headers, vwr_pass::COOKIE))
}

impl Api {
    /// Keeps a place for whatever is asked for the sake of it.
    pub(crate) fn keep_ticket(&self, event: EventId, ticket: &PlaceTicket) -> [Line; TICKET_PATHS] {
        self.tickets(event, ticket.token.expose(), ticket.expires_at.since(self.0.clock.now()))
    }

    /// Keeps the right to buy.
    pub(crate) fn keep_entry(
        &self,
        event: EventId,
        token: &Sensitive,
        until: Timestamp,
    ) -> [Line; ENTRY_PATHS] {
        self.entries(event, token.expose(), until.since(self.0.clock.now()))
    }

    /// Forgets a place, which has been used.
    pub(crate) fn forget_ticket(&self, event: EventId) -> [Line; TICKET_PATHS] {
        self.tickets(event, "", Duration::ZERO)
    }

    /// Forgets a place and a slot.
    pub(crate) fn forget(&self, event: EventId) -> Vec<Line> {
        self.forget_ticket(event).into_iter().chain(self.entries(event, "", Duration::ZERO)).collect()
    }

    fn tickets(&self, event: EventId, token: &str, age: Duration) -> [Line; TICKET_PATHS] {
        ticket_paths(event).map(|path| self.line(queue_ticket::COOKIE, &path, token, age))
    }

    fn entries(&self, event: EventId, token: &str, age: Duration) -> [Line; ENTRY_PATHS] {
        entry_paths(event).map(|path| self.line(entry::COOKIE, &path, token, age))
    }

    /// Forgets a turn in Tier 1 that was used, so that this browser can wait once more: its pass, its ticket, and who it was.
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

/// Who gets to see a place: the check of its event, under both names of the route, and the event's pages. A line in front of everything that
/// was opened meanwhile lets its owner back to them.
fn ticket_paths(event: EventId) -> [String; TICKET_PATHS] {
    let [queue, pages] = pages(event);
    [format!("/api/queue/check/{event}"), format!("/api/v1/queue/check/{event}"), queue, pages]
}

/// Who gets to see the right to buy: everything that sells, and the event's pages. None of these paths lies within another, so nobody is
/// sent two tokens that differ.
fn entry_paths(event: EventId) -> [String; ENTRY_PATHS] {
    let [queue, pages] = pages(event);
    ["/api".to_owned(), queue, pages]
}

fn pages(event: EventId) -> [String; 2] {
    [format!("/queue/{event}"), format!("/events/{event}")]
}
