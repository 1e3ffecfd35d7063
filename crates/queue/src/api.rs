//! What the routes of both parts share: what handlers work with, and the cookies.

use std::{sync::Arc, time::Duration};

use axum::extract::FromRef;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use urr_contracts::auth::Sensitive;
use urr_kernel::{Clock, EventId, Ids, Timestamp};

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
/// The cookie of Tier 1.
pub(crate) const PASS: &str = "urr-vwr-token";
/// The cookie that says which browser this is, to Tier 1.
const VISITOR: &str = "urr-visitor";
/// The cookie that opens the sale.
pub(crate) const ENTRY: &str = "urr-entry-token";

/// Where the sale is.
const ENTRY_PATH: &str = "/api";

/// One line of an answer.
pub(crate) type Line = (HeaderName, HeaderValue);

/// The cookie of this name. Other sites on the same domain can plant a second one; two that differ are none.
pub(crate) fn cookie(headers: &HeaderMap, wanted: &str) -> Option<Sensitive> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(name, _)| name.trim() == wanted).map(|(_, value)| value.trim());
    let first = values.next().filter(|value| !value.is_empty())?;
    values.all(|value| value == first).then(|| Sensitive::new(first))
}

impl Api {
    /// Keeps a place for the checks of its event, under both names of the route.
    pub(crate) fn keep_ticket(&self, event: EventId, ticket: &Sensitive, until: Timestamp) -> [Line; 2] {
        let age = until.since(self.0.clock.now());
        ticket_paths(event).map(|path| self.line(TICKET, &path, ticket.expose(), age))
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
    pub(crate) fn forget_turn(&self, event: EventId) -> [Line; 3] {
        let ticket = format!("urr-vwr-{}", event.as_uuid().simple());
        [PASS, &ticket, VISITOR].map(|name| self.line(name, "/", "", Duration::ZERO))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cookies_that_differ_are_none() {
        let found = |line: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_static(line));
            cookie(&headers, TICKET).map(|value| value.expose().to_owned())
        };
        assert_eq!(found("a=b; urr-queue-ticket=t; c=d").as_deref(), Some("t"));
        assert_eq!(found("urr-queue-ticket=t; urr-queue-ticket=t").as_deref(), Some("t"));
        assert_eq!(found("urr-queue-ticket=t; urr-queue-ticket=u"), None);
        assert_eq!(found("urr-queue-ticket="), None);
        assert_eq!(found("xurr-queue-ticket=t"), None);
    }
}
