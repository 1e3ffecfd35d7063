//! What the routes of both parts share: what handlers work with, and the cookies.

use std::{sync::Arc, time::Duration};

use axum::extract::FromRef;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use urr_contracts::{auth::Sensitive, queue::PlaceTicket};
use urr_kernel::{Clock, EventId, Ids, Timestamp};
use urr_passes::{visitor, vwr_pass};

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

/// The cookie with the place in line. Only the check of the same event gets to see it.
pub(crate) const TICKET: &str = "urr-queue-ticket";
/// The cookie that opens the sale.
pub(crate) const ENTRY: &str = "urr-entry-token";

/// Where the sale is.
const ENTRY_PATH: &str = "/api";

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
    /// Keeps a place for the checks of its event, under both names of the route.
    pub(crate) fn keep_ticket(&self, event: EventId, ticket: &PlaceTicket) -> [Line; 2] {
        let age = ticket.expires_at.since(self.0.clock.now());
        ticket_paths(event).map(|path| self.line(TICKET, &path, ticket.token.expose(), age))
    }

    /// Keeps the right to buy.
    pub(crate) fn keep_entry(&self, token: &Sensitive, until: Timestamp) -> Line {
        self.line(ENTRY, ENTRY_PATH, token.expose(), until.since(self.0.clock.now()))
    }

    /// Forgets a place, which has been used.
    pub(crate) fn forget_ticket(&self, event: EventId) -> [Line; 2] {
        ticket_paths(event).map(|path| self.line(TICKET, &path, "", Duration::ZERO))
    }

    /// Forgets a place and a slot.
    pub(crate) fn forget(&self, event: EventId) -> [Line; 3] {
        let [short, long] = self.forget_ticket(event);
        [short, long, self.line(ENTRY, ENTRY_PATH, "", Duration::ZERO)]
    }

    /// Forgets a turn in Tier 1 that somebody else has used, so that this browser can wait once more: its pass, its ticket, and who
    /// it was.
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

fn ticket_paths(event: EventId) -> [String; 2] {
    ["/api", "/api/v1"].map(|api| format!("{api}/queue/check/{event}"))
}
