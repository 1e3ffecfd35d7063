//! A change without a condition, for the negative control of the suite.

use urr_kernel::{EventId, UserId};
use urr_kv::{Arg, Script};
use uuid::Uuid;

use super::Redis;
use crate::room::Closed;

static LET_IN: Script = Script::new(
    "test.let_in",
    concat!(include_str!("../room.lua"), "admit(ARGV[1], now, ARGV[2], 600000000) return { 1 }"),
);

impl Redis {
    /// Admits a user, even if there is no free slot.
    pub(in crate::room) async fn let_in(&self, event: EventId, user: UserId) -> Result<(), Closed> {
        let (user, slot) = (user.to_string(), Uuid::nil().to_string());
        self.in_room(event, &LET_IN, &[Arg::from(user.as_str()), Arg::from(slot.as_str())]).await.map(drop)
    }
}
