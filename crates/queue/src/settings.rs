//! Settings of the waiting room in front of one event's seats.

use std::time::Duration;

use urr_settings::{Count, Days, HttpUrl, Secs, Size, settings};

settings! {
    /// `[queue]`.
    pub struct Settings in "queue"
        "The waiting room in front of one event's seats. Rooms are in Redis if there is one, shared by all \
         processes; else in the memory of the one process that has the role `queue`, with a journal in its database."
    {
        /// Whether seats are sold only to users with a slot. Left out, `true` where the process
        /// runs `queue` or `remote.queue` is set; the `production` profile requires a value where
        /// neither is.
        pub guard: Option<bool> = "",
        /// Seconds for which admissions stop after Redis has lost a room, so that waiting users get
        /// their position back first. Waiting users poll every few seconds, or later if their turn
        /// cannot come sooner.
        pub grace("grace_secs"): Secs<0, 3_600> = "65",
        /// The FIFO queue of SQS that gets a message for every admission. Left out, none is sent.
        /// The role `notices` reads it.
        pub notices_url: Option<HttpUrl> = "",
    }
    tables {
        /// What a room allows.
        pub limits: Limits,
    }
}

settings! {
    /// What a room allows. Set once for the whole process; an event's own threshold is kept with
    /// its room.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Limits in "queue" {
        /// Slots per event, unless an operator sets another number for the event.
        pub threshold: Count<0, 1_000_000> = "1000",
        /// Most admissions per event and second.
        pub batch: Size<1, 10_000> = "100",
        /// Seconds without a request after which a slot ends.
        pub slot_idle("slot_idle_secs"): Secs<5, 86_400> = "600",
        /// Seconds after which a slot ends in any case.
        pub slot_total("slot_secs"): Secs<5, 86_400> = "1200",
        /// Seconds without a request after which the first in line lose their position; their
        /// ticket restores it for a day. Users further back may be silent for longer: three times
        /// as long again as the line needs to reach them at full speed (`queue.batch`).
        pub waiting_idle("waiting_idle_secs"): Secs<5, 86_400> = "600",
        /// Most users waiting for one event; more get 503 with Retry-After.
        pub max_waiting: Size<1, 10_000_000> = "50000",
        /// Most lines one user may stand in.
        pub max_events_per_user: Size<1, 100> = "3",
        /// Days for which the journal of a closed room is kept.
        pub journal_kept("journal_days"): Days<1, 3_650> = "90",
    }
}

impl Limits {
    /// Idle timeout of a user with this many users ahead.
    ///
    /// Users near the front must have been active recently, or slots would go to absent users.
    /// Users far back poll rarely: after up to two thirds of the time in which the line could reach
    /// them at full speed (`positions::rules`). Three times the remaining time plus
    /// [`Self::waiting_idle`] is enough for a poll that is a tenth late, as long as the line
    /// shortens by admissions. If many users ahead give up at once, a user may time out before the
    /// next poll; their ticket then restores the position.
    pub(crate) fn silence(&self, ahead: usize) -> Duration {
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        self.waiting_idle.saturating_add(self.silence_per_person().saturating_mul(ahead))
    }

    /// Extra idle time per user ahead.
    pub(crate) fn silence_per_person(&self) -> Duration {
        Duration::from_secs(3) / u32::try_from(self.batch).unwrap_or(u32::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_grace_matches_the_poll_intervals() {
        assert_eq!(Settings::default().grace, crate::GRACE);
    }
}
