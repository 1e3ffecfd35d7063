//! The fans: a few connections carry the requests of all of them, each when it is due.

use std::{
    mem,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use tokio::{task::JoinSet, time::sleep};
use urr_kernel::{Clock, EventId, Ids, Role, UserId};
use uuid::Uuid;

use super::schedule::{Ask, Crowd, Fan, FanStatus, Next};
use crate::{
    http::{Answer, Connection, Lost, Request},
    line,
    shop::{self, Buyer, NewEvent},
    tokens::Tokens,
};

/// Pause between two polls of the schedule.
const NAP: Duration = Duration::from_millis(20);

/// A connection idle for this long is replaced: the server may be about to close it.
const IDLE: Duration = Duration::from_secs(5);

/// Failed or unexpected responses before the stampede is aborted.
const MAX_BROKEN: u64 = 1_000;

/// Delay before a retry after such a response, in real time.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The server under load.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerUnderLoad {
    /// Its address.
    pub(super) address: SocketAddr,
    /// The speed of its clock.
    pub(super) speed: u32,
    /// How long an admitted fan stays, by that clock.
    pub(super) stay: Duration,
}

/// The fans' accounts and the operator's.
pub(super) struct Fans {
    server: ServerUnderLoad,
    tokens: Tokens,
    clock: Clock,
    /// The first fan's id; the others follow it.
    first: u128,
    operator: Buyer,
    /// When the room was opened.
    opened: OnceLock<Duration>,
}

/// The body of a response.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusBody<'a> {
    #[serde(borrow)]
    status: &'a str,
    position: Option<u32>,
    next_poll: u32,
}

impl Fans {
    pub(super) fn new(
        server: ServerUnderLoad,
        secret: &str,
        clock: &Clock,
        ids: &Ids,
    ) -> anyhow::Result<Self> {
        let (tokens, user) = (Tokens::new(secret, clock, ids)?, ids.next());
        Ok(Self {
            server,
            operator: Buyer { user, token: tokens.of(user, Role::Admin) },
            tokens,
            clock: clock.clone(),
            first: u128::from_le_bytes(ids.bytes()) >> 1,
            opened: OnceLock::new(),
        })
    }

    /// When the room was opened; `None` before that.
    pub(super) fn opened(&self) -> Option<Duration> {
        self.opened.get().copied()
    }

    /// Lets all fans join, opens the room, and waits until all have left. Returns the event.
    pub(super) async fn run(
        self: Arc<Self>,
        crowd: Arc<Crowd>,
        connections: usize,
        limit: Duration,
    ) -> anyhow::Result<EventId> {
        let mut operator = Connection::to(self.server.address);
        // On sale for a day by the server's clock: longer than the longest `--minutes`, which is 20
        // hours.
        let new = NewEvent { seats: 1, opens_in_secs: -60 };
        let event = shop::create_event(&mut operator, &self.operator, new).await?;
        self.order(&mut operator, "pause", event).await?;
        let mut asking = JoinSet::new();
        for _ in 0..connections {
            asking.spawn(Arc::clone(&self).ask_on(Arc::clone(&crowd), event));
        }
        let until = self.clock.ticks() + limit;
        while !crowd.all_joined() && self.clock.ticks() < until {
            if let Some(ended) = asking.try_join_next() {
                ended??;
            }
            sleep(NAP).await;
        }
        // The server has closed the idle connection meanwhile.
        operator = Connection::to(self.server.address);
        self.order(&mut operator, "resume", event).await?;
        self.opened.get_or_init(|| self.clock.ticks());
        let over = async {
            while let Some(ended) = asking.join_next().await {
                ended??;
            }
            anyhow::Ok(event)
        };
        let left = until.saturating_sub(self.clock.ticks());
        let over = tokio::time::timeout(left, over).await;
        over.with_context(|| format!("the stampede did not end within {} s", limit.as_secs()))?
    }

    /// Sends the requests of all due fans over one connection.
    async fn ask_on(self: Arc<Self>, crowd: Arc<Crowd>, event: EventId) -> anyhow::Result<()> {
        let (mut connection, mut used) = (Connection::open(self.server.address).await?, self.clock.ticks());
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
                connection = Connection::open(self.server.address).await?;
            }
            let answer = self.ask(&mut connection, fan, ask, event).await;
            let now = self.clock.ticks();
            let broken = match answer {
                Ok(answer) => match self.hear(&crowd, (fan, ask), &answer, now, now.saturating_sub(sent)) {
                    Ok(()) => continue,
                    Err(why) => why,
                },
                Err(error) => {
                    connection = Connection::open(self.server.address).await?;
                    format!("lost connections: {error}")
                }
            };
            if crowd.broken(fan, broken.clone(), now + TRY_AGAIN) >= MAX_BROKEN {
                bail!("{broken}");
            }
        }
    }

    /// Records a response. The error says why it is unexpected.
    fn hear(
        &self,
        crowd: &Crowd,
        (fan, ask): (Fan, Ask),
        answer: &Answer,
        now: Duration,
        took: Duration,
    ) -> Result<(), String> {
        let unexpected = || format!("unexpected responses: {}", answer.show());
        if let (429 | 503, Some(wait)) = (answer.status, answer.retry_after()) {
            crowd.put_off(fan, took, now + wait / self.server.speed);
            return Ok(());
        }
        if answer.status != 200 {
            return Err(unexpected());
        }
        if ask == Ask::Leave {
            crowd.told(fan, ask, FanStatus::Gone, took, now);
            return Ok(());
        }
        let shown: StatusBody<'_> = serde_json::from_slice(&answer.body).map_err(|_| unexpected())?;
        let (told, after) = match (shown.status, shown.position) {
            ("queued", Some(place)) => {
                (FanStatus::Waiting(place), Duration::from_secs(shown.next_poll.into()))
            }
            ("active", _) => (FanStatus::In, self.server.stay),
            ("not_in_queue", _) => (FanStatus::Nowhere, Duration::from_secs(shown.next_poll.into())),
            _ => return Err(unexpected()),
        };
        crowd.told(fan, ask, told, took, now + after / self.server.speed);
        Ok(())
    }

    async fn ask(
        &self,
        connection: &mut Connection,
        fan: Fan,
        ask: Ask,
        event: EventId,
    ) -> Result<Answer, Lost> {
        let user = UserId::from_uuid(Uuid::from_u128(self.first + u128::from(fan)));
        let fan = line::Fan { user, token: self.tokens.of(user, Role::User) };
        let what = match ask {
            Ask::Join => line::Ask::Check,
            Ask::Status { .. } => line::Ask::Status,
            Ask::Leave => line::Ask::Leave,
        };
        line::ask(connection, &fan, event, what).await
    }

    /// Pauses or resumes the room.
    async fn order(&self, connection: &mut Connection, order: &str, event: EventId) -> anyhow::Result<()> {
        let path = format!("/api/queue/admin/{order}/{event}");
        let request = Request { method: "POST", ..Request::get(&path) };
        let answer = connection.send(&request.by(&self.operator.token)).await?;
        ensure!(answer.status == 200, "{order}: {}", answer.show());
        Ok(())
    }
}
