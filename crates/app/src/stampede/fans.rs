//! The fans: a few connections over which everybody asks in turn, each when it is time.

use std::{io, mem, net::SocketAddr, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::json;
use tokio::{task::JoinSet, time::sleep};
use urr_kernel::{Clock, EventId, Ids, Role, UserId};
use urr_passes::{
    Secret,
    access::{self, Access, Signer},
};
use uuid::Uuid;

use super::crowd::{Ask, Crowd, Fan, Next, Told};
use crate::{
    bench::load::{Reply, Wire},
    failure::Failure,
};

/// How long nobody looks whether somebody else has become due.
const NAP: Duration = Duration::from_millis(20);

/// A connection over which nobody asked for this long is not used again: the server may be about to close it.
const IDLE: Duration = Duration::from_secs(5);

/// Answers that make no sense, or none at all, before the stampede is given up.
const MAX_BROKEN: u64 = 1_000;

/// After such an answer somebody tries again, in real time.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Longer than any stampede, by any clock.
const TOKEN_LIFE: Duration = Duration::from_hours(24 * 31);

/// Where the crowd goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The server.
    pub(super) address: SocketAddr,
    /// How many times as fast its clock runs.
    pub(super) speed: u32,
    /// How long somebody who is in takes, by that clock.
    pub(super) stay: Duration,
}

/// Everybody's accounts, and the operator's.
pub(super) struct Fans {
    place: Place,
    signer: Signer,
    clock: Clock,
    ids: Ids,
    /// The first fan's id; the others count on from it.
    first: u128,
}

/// What an answer says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    #[serde(borrow)]
    status: &'a str,
    position: Option<u32>,
    next_poll: u32,
}

impl Fans {
    pub(super) fn new(place: Place, secret: &str, clock: &Clock, ids: &Ids) -> Result<Self, Failure> {
        let secret =
            Secret::new(secret).map_err(|error| Failure::because("the key of the tokens", &error))?;
        Ok(Self {
            place,
            signer: Signer::new(access::key(&secret), TOKEN_LIFE),
            clock: clock.clone(),
            ids: ids.clone(),
            first: u128::from_le_bytes(ids.bytes()) >> 1,
        })
    }

    /// Lets everybody come, opens the room, and waits until everybody has gone. Answers with the event and when the room was opened.
    pub(super) async fn run(
        self: Arc<Self>,
        crowd: Arc<Crowd>,
        connections: usize,
        limit: Duration,
    ) -> Result<(EventId, Duration), Failure> {
        let failed = |error: io::Error| Failure::because("the server cannot be reached", &error);
        let mut operator = Wire::connect(self.place.address).await.map_err(failed)?;
        let event = self.make_event(&mut operator).await.map_err(failed)?;
        self.order(&mut operator, "pause", event).await.map_err(failed)?;
        let mut asking = JoinSet::new();
        for _ in 0..connections {
            asking.spawn(Arc::clone(&self).ask_on(Arc::clone(&crowd), event));
        }
        let until = self.clock.ticks() + limit;
        while !crowd.all_joined() && self.clock.ticks() < until {
            if let Some(ended) = asking.try_join_next() {
                ended.map_err(io::Error::other).flatten().map_err(failed)?;
            }
            sleep(NAP).await;
        }
        // Meanwhile the server has closed a connection over which nobody asked anything.
        operator = Wire::connect(self.place.address).await.map_err(failed)?;
        self.order(&mut operator, "resume", event).await.map_err(failed)?;
        let opened = self.clock.ticks();
        let over = async {
            while let Some(ended) = asking.join_next().await {
                ended.map_err(io::Error::other)??;
            }
            Ok(())
        };
        match tokio::time::timeout(until.saturating_sub(self.clock.ticks()), over).await {
            Ok(ended) => ended.map_err(failed).map(|()| (event, opened)),
            Err(_) => Err(Failure::new(format!("it was not over after {} s", limit.as_secs()))),
        }
    }

    /// One connection: whoever is due asks over it.
    async fn ask_on(self: Arc<Self>, crowd: Arc<Crowd>, event: EventId) -> io::Result<()> {
        let (mut wire, mut used) = (Wire::connect(self.place.address).await?, self.clock.ticks());
        loop {
            let (fan, ask) = match crowd.next(self.clock.ticks()) {
                Next::Ask(fan, ask) => (fan, ask),
                Next::Wait(wait) => {
                    sleep(wait.min(NAP)).await;
                    continue;
                }
                Next::Over => return Ok(()),
            };
            let sent = self.clock.ticks();
            if sent.saturating_sub(mem::replace(&mut used, sent)) > IDLE {
                wire = Wire::connect(self.place.address).await?;
            }
            let reply = wire.ask(&self.request(fan, ask, event)).await;
            let now = self.clock.ticks();
            let broken = match reply {
                Ok(reply) => match self.hear(&crowd, (fan, ask), &reply, now, now.saturating_sub(sent)) {
                    Ok(()) => continue,
                    Err(why) => why,
                },
                Err(error) => {
                    wire = Wire::connect(self.place.address).await?;
                    format!("connections that broke: {error}")
                }
            };
            if crowd.broken(fan, broken.clone(), now + TRY_AGAIN) >= MAX_BROKEN {
                return Err(io::Error::other(broken));
            }
        }
    }

    /// Takes an answer to heart. The error says why it makes no sense.
    fn hear(
        &self,
        crowd: &Crowd,
        (fan, ask): (Fan, Ask),
        reply: &Reply,
        now: Duration,
        took: Duration,
    ) -> Result<(), String> {
        let unexpected = || format!("answers that nobody expects: {} {}", reply.status, reply.body);
        if let (429 | 503, Some(wait)) = (reply.status, reply.retry_after) {
            crowd.put_off(fan, took, now + wait / self.place.speed);
            return Ok(());
        }
        if reply.status != 200 {
            return Err(unexpected());
        }
        if ask == Ask::Leave {
            crowd.told(fan, ask, Told::Gone, took, now);
            return Ok(());
        }
        let shown: Shown<'_> = serde_json::from_str(&reply.body).map_err(|_| unexpected())?;
        let (told, after) = match (shown.status, shown.position) {
            ("queued", Some(place)) => (Told::Waiting(place), Duration::from_secs(shown.next_poll.into())),
            ("active", _) => (Told::In, self.place.stay),
            ("not_in_queue", _) => (Told::Nowhere, Duration::from_secs(shown.next_poll.into())),
            _ => return Err(unexpected()),
        };
        crowd.told(fan, ask, told, took, now + after / self.place.speed);
        Ok(())
    }

    fn request(&self, fan: Fan, ask: Ask, event: EventId) -> Vec<u8> {
        let user = UserId::from_uuid(Uuid::from_u128(self.first + u128::from(fan)));
        let token = self.token(user, Role::User);
        let (method, verb, length) = match ask {
            Ask::Join => ("POST", "check", "content-length: 0\r\n"),
            Ask::Status { .. } => ("GET", "status", ""),
            Ask::Leave => ("POST", "leave", "content-length: 0\r\n"),
        };
        format!(
            "{method} /api/queue/{verb}/{event} HTTP/1.1\r\nhost: 127.0.0.1\r\n\
             authorization: Bearer {token}\r\n{length}\r\n"
        )
        .into_bytes()
    }

    fn token(&self, user: UserId, role: Role) -> String {
        let access = Access { user, role, email: None, session: user.as_uuid() };
        self.signer.sign(&access, user.as_uuid(), self.clock.now())
    }

    /// An event that is on sale for two days of any clock.
    async fn make_event(&self, wire: &mut Wire) -> io::Result<EventId> {
        const HOUR: Duration = Duration::from_hours(1);
        let layouts = self.operate(wire, "GET", "/api/admin/seat-layouts", None).await?;
        let (layout, now) = (&layouts["layouts"][0]["id"], self.clock.now());
        let body = json!({
            "title": "Stampede", "venue": "Loopback", "seatLayoutId": layout, "saleStartDate": now.before(HOUR),
            "saleEndDate": now.after(HOUR * 48), "eventDate": now.after(HOUR * 72),
        });
        let made = self.operate(wire, "POST", "/api/admin/events", Some(&body)).await?;
        let id = made["event"]["id"].as_str().and_then(|id| id.parse().ok());
        id.ok_or_else(|| io::Error::other("a new event has no id"))
    }

    /// What an operator decides about the room.
    async fn order(&self, wire: &mut Wire, order: &str, event: EventId) -> io::Result<()> {
        let path = format!("/api/queue/admin/{order}/{event}");
        self.operate(wire, "POST", &path, None).await.map(drop)
    }

    async fn operate(
        &self,
        wire: &mut Wire,
        method: &str,
        path: &str,
        body: Option<&serde_json::Value>,
    ) -> io::Result<serde_json::Value> {
        let (token, body) = (self.token(self.ids.next(), Role::Admin), body.map(ToString::to_string));
        let body = body.unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let reply = wire.ask(request.as_bytes()).await?;
        if !matches!(reply.status, 200 | 201) {
            return Err(io::Error::other(format!("{method} {path}: {} {}", reply.status, reply.body)));
        }
        Ok(serde_json::from_str(&reply.body).unwrap_or_default())
    }
}
