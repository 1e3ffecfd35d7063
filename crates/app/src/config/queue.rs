//! The settings of the waiting room.

use std::time::Duration;

use super::{Queue, Values, settings as s};
use crate::roles::Role;

/// The waiting room as it was configured.
pub(super) fn queue(values: &Values) -> Queue {
    let at_hand = values.get(&s::ROLES).has(Role::Queue) || values.get(&s::REMOTE_QUEUE).is_some();
    let secs = |number: u64| Duration::from_secs(number);
    Queue {
        guard: values.get(&s::QUEUE_GUARD).unwrap_or(at_hand),
        limits: urr_queue::Limits {
            threshold: values.get(&s::QUEUE_THRESHOLD).count(),
            slot_idle: secs(values.get(&s::QUEUE_SLOT_IDLE_SECS).get()),
            slot_total: secs(values.get(&s::QUEUE_SLOT_SECS).get()),
            waiting_idle: secs(values.get(&s::QUEUE_WAITING_IDLE_SECS).get()),
            max_waiting: values.get(&s::QUEUE_MAX_WAITING).size(),
            max_events_per_user: values.get(&s::QUEUE_MAX_EVENTS_PER_USER).size(),
            batch: values.get(&s::QUEUE_BATCH).size(),
            journal_kept: Duration::from_hours(24 * values.get(&s::QUEUE_JOURNAL_DAYS).get()),
        },
        grace: secs(values.get(&s::QUEUE_GRACE_SECS).get()),
    }
}
