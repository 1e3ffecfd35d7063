//! Slot checks while Redis is unreachable: no connection, timeout, loading, no primary, or the
//! circuit breaker is open.
//!
//! A Redis that answers but has lost the room, cannot run the script or returns an unexpected reply
//! is different: the room may still change there, so the request is refused.

use urr_kernel::{EventId, UserId};

use super::{Redis, STATUS, closed, replies::is_unknown, room_keys};
use crate::room::{Answer, Closed};

impl Redis {
    /// The user's state; counts as activity. `None` if Redis is unreachable.
    pub(in crate::room) async fn status_unless_away(
        &self,
        event: EventId,
        user: UserId,
    ) -> Result<Option<Answer>, Closed> {
        let reply = match self.kv.run(&STATUS, &room_keys(event), &self.look(&user.to_string())).await {
            Err(error) if error.is_unavailable() => {
                if self.away.begin(self.clock.ticks()) {
                    tracing::warn!(%error, "redis unreachable: checking slots against the journal, admissions stopped");
                }
                return Ok(None);
            }
            reply => reply.map_err(closed)?,
        };
        if self.away.goes_on() {
            self.away.end();
            tracing::info!("redis reachable again: checking slots there, admissions resume");
        }
        if is_unknown(&reply) {
            // `status` opens the room first, which restores the slots that Redis has lost.
            return self.status(event, user).await.map(Some);
        }
        self.told(event, user, &reply).await.map(Some)
    }
}
