//! Tokens of the waiting rooms in foreign places, and foreign tokens in theirs.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use urr_e2e::{
    http::{Answer, Request},
    installation::Installation,
    people::{self, ADMIN, Person},
    shop::{self, Buyer, NewEvent},
};
use urr_kernel::{EventId, SeatId};
use urr_testkit::until;

use crate::matrix::{self, Kind, cookie};

const PATIENCE: Duration = Duration::from_secs(30);

/// Two events: one with a Tier 2 room, one with a Tier 1 room.
pub(crate) struct Rooms<'i> {
    installation: &'i Installation,
    event: EventId,
    seat: SeatId,
    line: EventId,
    /// The admitted user.
    buyer: Person,
    /// The waiting user.
    waiting: Person,
    /// The cookie of the Tier 1 visitor.
    visitor: String,
    /// The visitor's Tier 1 ticket.
    ticket: String,
}

/// A place that accepts a token of a waiting room.
#[derive(Clone, Copy, Debug)]
enum Channel {
    EntryHeader,
    EntryCookie,
    PassCookie,
    PassAtTheEdge,
    Ticket,
    Visitor,
}

impl Channel {
    const ALL: [Self; 6] = [
        Self::EntryHeader,
        Self::EntryCookie,
        Self::PassCookie,
        Self::PassAtTheEdge,
        Self::Ticket,
        Self::Visitor,
    ];

    fn wants(self) -> Kind {
        match self {
            Self::EntryHeader | Self::EntryCookie => Kind::Entry,
            Self::PassCookie | Self::PassAtTheEdge => Kind::VwrPass,
            Self::Ticket => Kind::VwrTicket,
            Self::Visitor => Kind::Visitor,
        }
    }

    fn refusal(self) -> (u16, &'static str) {
        match self {
            Self::EntryHeader | Self::EntryCookie => (403, "queue.entry_required"),
            Self::PassCookie | Self::PassAtTheEdge => (403, "vwr.pass_required"),
            // It is a part of the path, so an invalid ticket is reported as not found.
            Self::Ticket => (404, "vwr.position_not_found"),
            Self::Visitor => (403, "vwr.not_your_place"),
        }
    }
}

impl<'i> Rooms<'i> {
    /// Opens both rooms and admits one user to each.
    pub(crate) async fn open(installation: &'i Installation) -> anyhow::Result<Self> {
        let mut connection = installation.connect();
        let admin = people::sign_in(&mut connection, ADMIN).await?;
        let admin = Buyer { user: admin.id.parse()?, token: admin.access };
        let new = NewEvent { seats: 1, opens_in_secs: -60 };
        let event = shop::create_event(&mut connection, &admin, new).await?;
        let line = shop::create_event(&mut connection, &admin, new).await?;
        let seat = shop::seat_map(&mut connection, event).await?.first().context("the event has no seats")?.0;
        let buyer = people::register(&mut connection, "in@example.com").await?;
        let waiting = people::register(&mut connection, "waiting@example.com").await?;
        let path = format!("/api/admin/vwr/activate/{line}");
        let opened = connection.send(&Request::post(&path, &json!({ "rate": 50 })).by(&admin.token)).await?;
        ensure!(opened.status == 200, "{}", opened.show());
        let assign = format!("/vwr/assign/{line}");
        let assign = Request { method: "POST", path: &assign, ..Request::default() };
        let channel = connection.send(&assign).await?;
        let ticket = channel.json()["requestId"].as_str().with_context(|| channel.show())?.to_owned();
        let visitor = cookie(&channel, &urr_passes::visitor::cookie(line))?;
        Ok(Self { installation, event, seat, line, buyer, waiting, visitor, ticket })
    }

    /// One valid token of every kind.
    pub(crate) async fn tokens(&self) -> anyhow::Result<Vec<(Kind, String)>> {
        let entered = self.check(&self.buyer, "").await?;
        let entry = entered.json()["entryToken"].as_str().with_context(|| entered.show())?.to_owned();
        let waits = self.check(&self.waiting, "").await?;
        let channel = cookie(&waits, "urr-queue-ticket")?;
        let mut pass = None;
        until(PATIENCE, async || {
            let turn = self.present(Channel::Ticket, &self.ticket).await;
            pass = turn.ok().and_then(|turn| Some(turn.json()["token"].as_str()?.to_owned()));
            pass.is_some()
        })
        .await;
        Ok(vec![
            (Kind::Entry, entry),
            (Kind::QueueTicket, channel),
            (Kind::VwrTicket, self.ticket.clone()),
            (Kind::VwrPass, pass.context("the admitted visitor got no pass")?),
            (Kind::Visitor, self.visitor.clone()),
        ])
    }

    async fn check(&self, person: &Person, ticket: &str) -> anyhow::Result<Answer> {
        let path = format!("/api/queue/check/{}", self.event);
        let (kept, origin) =
            (format!("urr-queue-ticket={ticket}"), format!("http://{}", self.installation.front));
        let headers = [("cookie", kept.as_str()), ("origin", origin.as_str())];
        let request = Request { method: "POST", path: &path, headers: &headers, ..Request::default() };
        Ok(self.installation.connect().send(&request.by(&person.access)).await?)
    }

    async fn buy(&self, name: &str, value: &str) -> anyhow::Result<Answer> {
        let key = format!("{name}-{}", value.len());
        let body = json!({ "eventId": self.event, "seatIds": [self.seat], "idempotencyKey": key });
        let origin = format!("http://{}", self.installation.front);
        let headers = [(name, value), ("origin", origin.as_str())];
        let request = Request { headers: &headers, ..Request::post("/api/seats/reserve", &body) };
        Ok(self.installation.connect().send(&request.by(&self.buyer.access)).await?)
    }

    async fn get(&self, path: &str, cookie: String) -> anyhow::Result<Answer> {
        let headers = [("cookie", cookie.as_str())];
        let request = Request { headers: &headers, ..Request::get(path) };
        Ok(self.installation.connect().send(&request).await?)
    }

    async fn present(&self, channel: Channel, token: &str) -> anyhow::Result<Answer> {
        let (pass, mark) = (format!("urr-vwr-token={token}"), urr_passes::visitor::cookie(self.line));
        match channel {
            Channel::EntryHeader => self.buy("x-queue-entry-token", token).await,
            Channel::EntryCookie => self.buy("cookie", &format!("urr-entry-token={token}")).await,
            Channel::PassCookie => self.get(&format!("/api/seats/events/{}", self.line), pass).await,
            Channel::PassAtTheEdge => {
                self.get(&format!("/edge/check?event={}&deny=403", self.line), pass).await
            }
            Channel::Ticket => {
                let path = format!("/vwr/check/{}/{token}", self.line);
                self.get(&path, format!("{mark}={}", self.visitor)).await
            }
            Channel::Visitor => {
                let path = format!("/vwr/check/{}/{}", self.line, self.ticket);
                self.get(&path, format!("{mark}={token}")).await
            }
        }
    }
}

pub(crate) async fn tokens_are_crossed(installation: &Installation) -> anyhow::Result<()> {
    let rooms = Rooms::open(installation).await?;
    let (own, others) = (rooms.tokens().await?, matrix::tokens(installation).await?);
    matrix::refused_elsewhere(installation, &own).await?;
    for (kind, token) in own.iter().chain(&others) {
        for channel in Channel::ALL.into_iter().filter(|channel| channel.wants() != *kind) {
            let answer = rooms.present(channel, token).await?;
            let got = (answer.status, answer.code());
            let (status, code) = channel.refusal();
            assert_eq!(got, (status, code.to_owned()), "{kind:?} as {channel:?}: {}", answer.show());
        }
        // An invalid cookie does not lock a user out: it is reported as refused, and the user keeps
        // the position they have without it.
        let answer = rooms.check(&rooms.waiting, token).await?;
        let refused = answer.json().get("refused").cloned().unwrap_or_default();
        let expected = if *kind == Kind::QueueTicket { Value::Null } else { json!(["queue.ticket_invalid"]) };
        assert_eq!((answer.status, refused), (200, expected), "{kind:?} as a ticket: {}", answer.show());
    }
    for channel in Channel::ALL {
        let (_, token) =
            own.iter().find(|(kind, _)| channel.wants() == *kind).context("no token of the expected kind")?;
        let answer = rooms.present(channel, token).await?;
        // The same seat is held twice. Only an admitted user gets `tickets.seats_taken`.
        let is_in = answer.status == 200 || answer.code() == "tickets.seats_taken";
        assert!(is_in, "{channel:?} in its place: {}", answer.show());
    }
    Ok(())
}
