//! Redis cannot be asked: not connected to, silent, loading, without a primary, or left alone because it keeps failing.
//!
//! That is not the same as a Redis that answers and has lost the room, cannot run the script or says what nobody understands. Then
//! something may happen in the room meanwhile, and whoever asks is refused.

use urr_kernel::{EventId, UserId};

use super::{Redis, STATUS, closed, replies::is_unknown, room_keys};
use crate::room::{Answer, Closed};

impl Redis {
    /// How somebody stands, which is a sign of life. Nothing: Redis cannot be asked.
    pub(in crate::room) async fn status_unless_away(
        &self,
        event: EventId,
        user: UserId,
    ) -> Result<Option<Answer>, Closed> {
        let reply = match self.kv.run(&STATUS, &room_keys(event), &self.look(&user.to_string())).await {
            Err(error) if error.is_unavailable() => {
                if self.away.begin(self.clock.ticks()) {
                    tracing::warn!(%error, "Redis cannot be asked about slots; until it can, the journal is, and nobody is let in");
                }
                return Ok(None);
            }
            reply => reply.map_err(closed)?,
        };
        if self.away.goes_on() {
            self.away.end();
            tracing::info!("Redis can be asked about slots again");
        }
        if is_unknown(&reply) {
            // The room is opened first, and slots that Redis has lost come back.
            return self.status(event, user).await.map(Some);
        }
        self.told(event, user, &reply).await.map(Some)
    }
}
