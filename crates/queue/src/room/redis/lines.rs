//! Limits the number of lines one user stands in. Rooms are in different cluster slots, so each
//! user has a set of their own that names their events.
//!
//! An event is added before the user joins, so that concurrent joins cannot exceed the limit. The
//! set may name lines the user has since lost by inactivity; those are removed when the limit is
//! reached.

use std::time::Duration;

use urr_kernel::{EventId, UserId};
use urr_kv::{Arg, Reply, Script};

use super::{Redis, closed, key, replies::parse};
use crate::room::Closed;

static LINES: Script = Script::new("queue.lines", include_str!("../lines.lua"));
static GONE: Script = Script::new("queue.gone", include_str!("../gone.lua"));
/// 2 for a user who holds a slot, 1 for one who waits, else 0. Does not count as activity.
static HAS: Script = Script::new(
    "queue.has",
    "if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then return 2 end \
     if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 1 end return 0",
);
/// Every event in a user's set.
static NOTED: Script = Script::new("queue.noted", "return redis.call('ZRANGE', KEYS[1], 0, -1)");

/// Lifetime of a user's set: that of a ticket.
const LINES_KEPT: Duration = Duration::from_hours(24);

/// A join that takes longer than this has failed: calls to Redis time out after ten seconds.
const ARRIVAL: Duration = Duration::from_secs(30);

impl Redis {
    /// Whether the user may join this line too. Lines that they are no longer in do not count.
    pub(super) async fn may_stand(&self, event: EventId, user: UserId) -> Result<bool, Closed> {
        let (user_text, event_text) = (user.to_string(), event.to_string());
        let lines = [lines_of(user)];
        let max = i64::try_from(self.limits.max_events_per_user).unwrap_or(i64::MAX);
        let args = [
            Arg::from(event_text.as_str()),
            Arg::from(max),
            Arg::from(secs(LINES_KEPT)),
            Arg::from(secs(ARRIVAL)),
        ];
        for _ in 0..2 {
            let reply = self.kv.run(&LINES, &lines, &args).await.map_err(closed)?;
            let [Reply::Int(0), others @ ..] = reply.list().map_err(closed)? else { return Ok(true) };
            let mut past = 0;
            for other in others {
                let other: EventId = parse(other).map_err(closed)?;
                if self.stands(other, &user_text).await? == Reply::Int(0) {
                    self.gone(other, user, ARRIVAL).await?;
                    past += 1;
                }
            }
            if past == 0 {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// The events in which a user waits (`false`) or holds a slot (`true`).
    pub(in crate::room) async fn entries(&self, user: UserId) -> Result<Vec<(EventId, bool)>, Closed> {
        let reply = self.kv.run(&NOTED, &[lines_of(user)], &[]).await.map_err(closed)?;
        let (user, mut entries) = (user.to_string(), Vec::new());
        for noted in reply.list().map_err(closed)? {
            let event: EventId = parse(noted).map_err(closed)?;
            match self.stands(event, &user).await? {
                Reply::Int(2) => entries.push((event, true)),
                Reply::Int(1) => entries.push((event, false)),
                _ => {}
            }
        }
        Ok(entries)
    }

    /// The reply of [`HAS`] for a user.
    async fn stands(&self, event: EventId, user: &str) -> Result<Reply, Closed> {
        let keys = [key(event, "queue"), key(event, "slots")];
        self.kv.run(&HAS, &keys, &[Arg::from(user)]).await.map_err(closed)
    }

    /// Removes an event from the user's set if they joined its line at least `ago` ago.
    pub(super) async fn gone(&self, event: EventId, user: UserId, ago: Duration) -> Result<(), Closed> {
        let event = event.to_string();
        let args = [Arg::from(event.as_str()), Arg::from(secs(ago))];
        self.kv.run(&GONE, &[lines_of(user)], &args).await.map(drop).map_err(closed)
    }
}

fn lines_of(user: UserId) -> String {
    format!("queue:lines:{{{user}}}")
}

fn secs(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}
