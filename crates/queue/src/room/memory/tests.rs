//! A change without a condition, for the negative control of the suite.

use urr_kernel::{EventId, OrderKey, UserId};
use uuid::Uuid;

use super::MemoryRooms;
use crate::{journal::Step, room::Closed};

impl MemoryRooms {
    /// Admits a user, even if there is no free slot.
    pub(in crate::room) async fn let_in(&self, event: EventId, user: UserId) -> Result<(), Closed> {
        self.go(event, |room_model, now, steps| {
            let order = OrderKey::at(now);
            room_model.take(Step::Admitted { user, order, slot: Uuid::nil(), source: None }, now, steps);
            true
        })
        .await
        .map(drop)
    }
}
