//! The rate limiter in the memory of this process.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher as _, BuildHasherDefault, Hash, Hasher, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use urr_kernel::Clock;

use super::{Class, RateLimits, Verdict, Who};

/// Clients are distributed over this many locks.
const SHARDS: usize = 16;

/// Clients per shard. 16 × 32,768 clients of about 120 bytes are 63 MB; a gateway on two cores
/// serves about as many per minute when each polls every ten seconds.
const MAX_CLIENTS: usize = 32_768;

/// Timestamps per shard, 4 bytes each: 16 × 524,288 are 8.4 million requests per minute and 34 MB.
const MAX_INSTANTS: usize = 524_288;

/// Clients that do not fit share one plain counter per shard and class, with this many times the
/// limit. With the defaults that is 4.8 million general requests per minute, more than a process
/// serves, and bounds a flood of new addresses.
const CROWD: u64 = 100;

/// Smaller shards are not swept.
const SWEEP_AT_LEAST: usize = 1_024;

/// Minimum time between sweeps of a full shard: a sweep visits every client.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);

/// Offsets of 32 bits cover 71 minutes.
const MAX_WINDOW: Duration = Duration::from_hours(1);

/// Timestamps of recent admissions, by class and client.
#[derive(Debug)]
pub struct MemoryLimiter {
    limits: RateLimits,
    clock: Clock,
    spread: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug, Default)]
struct Shard {
    clients: HashMap<Client, Window, BuildHasherDefault<AsMade>>,
    /// Total capacity of all windows, in timestamps.
    instants: usize,
    /// Number of clients that triggers a sweep: twice what the last sweep left, so that the
    /// amortised cost is O(1) per client.
    sweep_at: usize,
    swept: Option<u64>,
    crowd: HashMap<Class, FixedWindow>,
}

/// A client and its hash, computed once for the choice of the shard and the lookup in it.
#[derive(Clone, Copy, Debug)]
struct Client {
    hash: u64,
    class: Class,
    who: Who,
}

impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        (self.class, self.who) == (other.class, other.who)
    }
}

impl Eq for Client {}

impl Hash for Client {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Passes a precomputed hash through. It has a random key, so clients cannot choose it.
#[derive(Clone, Copy, Debug, Default)]
struct AsMade(u64);

impl Hasher for AsMade {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("clients are hashed with write_u64 only");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl MemoryLimiter {
    pub(super) fn new(limits: RateLimits, clock: Clock) -> Self {
        assert!(limits.window <= MAX_WINDOW, "a window is at most an hour");
        Self { limits, clock, spread: RandomState::new(), shards: Default::default() }
    }

    /// Counts a request against the limit divided by `share`.
    pub(super) fn take(&self, class: Class, who: Who, share: u32) -> Verdict {
        let limit = self.limits.of(class);
        if limit == 0 {
            return Verdict::Wait(self.limits.window);
        }
        let limit = usize::try_from(limit.div_ceil(share)).unwrap_or(usize::MAX);
        let (now, window) = (micros(self.clock.ticks()), micros(self.limits.window));
        let client = self.client(class, who);
        let wait = self.shard_of(client).take(client, now, window, limit);
        wait.map_or(Verdict::Pass, |wait| Verdict::Wait(Duration::from_micros(wait)))
    }

    fn client(&self, class: Class, who: Who) -> Client {
        Client { hash: self.spread.hash_one((class, who)), class, who }
    }

    fn shard_of(&self, client: Client) -> MutexGuard<'_, Shard> {
        // Middle bits: the hash map of a shard uses the first and the last ones.
        let place = usize::try_from((client.hash >> 32) % SHARDS as u64)
            .expect("a remainder below 16 fits into usize");
        self.shards[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Shard {
    /// Returns how long to wait, or `None` if the request is admitted.
    fn take(&mut self, client: Client, now: u64, window: u64, limit: usize) -> Option<u64> {
        if let Some(known) = self.clients.get_mut(&client) {
            if known.at.len() == known.at.capacity() {
                known.forget(now, window);
            }
            if known.at.len() >= limit || known.at.len() < known.at.capacity() {
                return known.take(now, window, limit);
            }
        }
        if !self.has_room(now, window) {
            return self.crowd.entry(client.class).or_default().take(now, window, limit as u64 * CROWD);
        }
        let known = self.clients.entry(client).or_default();
        let before = known.at.capacity();
        let wait = known.take(now, window, limit);
        self.instants += known.at.capacity() - before;
        wait
    }

    fn has_room(&mut self, now: u64, window: u64) -> bool {
        let due = self.clients.len() >= self.sweep_at.max(SWEEP_AT_LEAST) || self.is_full();
        if due && self.swept.is_none_or(|swept| now >= swept + micros(SWEEP_PAUSE)) {
            self.clients.retain(|_, known| known.is_in_use(now, window));
            self.instants = self.clients.values().map(|known| known.at.capacity()).sum();
            self.sweep_at = self.clients.len() * 2;
            self.swept = Some(now);
        }
        !self.is_full()
    }

    fn is_full(&self) -> bool {
        self.clients.len() >= MAX_CLIENTS || self.instants >= MAX_INSTANTS
    }
}

/// Recent admissions of one client, oldest first.
#[derive(Debug, Default)]
struct Window {
    /// Base of the offsets.
    base: u64,
    /// Microseconds since `base`.
    at: VecDeque<u32>,
}

impl Window {
    fn take(&mut self, now: u64, window: u64, limit: usize) -> Option<u64> {
        // Below the limit there is no need to look at the oldest entry, which is rarely in the CPU
        // cache.
        if self.at.len() >= limit {
            self.forget(now, window);
        }
        if let Some(must_leave) = self.at.len().checked_sub(limit) {
            return Some(self.base + u64::from(self.at[must_leave]) + window - now);
        }
        let offset = self.offset(now, window);
        self.at.push_back(offset);
        None
    }

    /// Removes entries that left the window.
    fn forget(&mut self, now: u64, window: u64) {
        while let Some(oldest) = self.at.front()
            && self.base + u64::from(*oldest) + window <= now
        {
            self.at.pop_front();
        }
    }

    /// Entries in the window are at most an hour old, so rebasing to the oldest makes every offset
    /// fit.
    fn offset(&mut self, now: u64, window: u64) -> u32 {
        if now - self.base > u64::from(u32::MAX) {
            self.forget(now, window);
        }
        if self.at.is_empty() {
            self.base = now;
        }
        u32::try_from(now - self.base).unwrap_or_else(|_| {
            let passed = self.at[0];
            self.base += u64::from(passed);
            self.at.iter_mut().for_each(|at| *at -= passed);
            u32::try_from(now - self.base).expect("an offset within the window fits into 32 bits")
        })
    }

    /// Shrinks the window after a burst. Returns whether any entry is left.
    fn is_in_use(&mut self, now: u64, window: u64) -> bool {
        self.forget(now, window);
        if self.at.capacity() > 4 * self.at.len() {
            self.at.shrink_to_fit();
        }
        !self.at.is_empty()
    }
}

/// A fixed-window counter.
#[derive(Debug, Default)]
struct FixedWindow {
    since: u64,
    count: u64,
}

impl FixedWindow {
    fn take(&mut self, now: u64, window: u64, limit: u64) -> Option<u64> {
        if now >= self.since + window {
            *self = Self { since: now, count: 0 };
        }
        if self.count >= limit {
            return Some(self.since + window - now);
        }
        self.count += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn client(number: u32) -> Who {
        Who::address(Ipv4Addr::from(number).into())
    }

    impl MemoryLimiter {
        fn shard(&self, class: Class, who: Who) -> MutexGuard<'_, Shard> {
            self.shard_of(self.client(class, who))
        }
    }

    fn limiter() -> (MemoryLimiter, Clock) {
        let clock = urr_testkit::fixed_clock();
        (MemoryLimiter::new(RateLimits::default(), clock.clone()), clock)
    }

    proptest! {
        #[test]
        fn a_window_matches_a_list_of_all_admissions(
            limit in 1_usize..6,
            steps in prop::collection::vec(prop_oneof![0_u64..30, Just(u64::from(u32::MAX))], 1..200),
        ) {
            const WINDOW: u64 = 60;
            let (mut window, mut now) = (Window::default(), 1_000);
            let mut admitted: Vec<u64> = Vec::new();
            for step in steps {
                now += step;
                let recent: Vec<_> = admitted.iter().filter(|at| **at + WINDOW > now).collect();
                let expected = recent.len().checked_sub(limit).map(|first| recent[first] + WINDOW - now);
                prop_assert_eq!(window.take(now, WINDOW, limit), expected);
                if expected.is_none() {
                    admitted.push(now);
                }
            }
        }
    }

    #[test]
    fn a_busy_client_is_counted_correctly_for_hours() {
        let (hour, mut window) = (micros(MAX_WINDOW), Window::default());
        for quarter in 1..100 {
            let now = quarter * (hour / 4);
            assert_eq!(window.take(now, hour, 4), None);
            if quarter >= 4 {
                assert_eq!(window.take(now, hour, 4), Some(hour / 4));
            }
        }
    }

    #[test]
    fn memory_is_bounded_and_overflow_clients_share_a_counter() {
        let (limiter, clock) = limiter();
        let total = u32::try_from(3 * SHARDS * MAX_CLIENTS).unwrap();
        for number in 0..total {
            assert_eq!(limiter.take(Class::General, client(number), 1), Verdict::Pass);
        }
        let clients = |limiter: &MemoryLimiter| -> usize {
            limiter.shards.iter().map(|shard| shard.lock().unwrap().clients.len()).sum()
        };
        assert!(clients(&limiter) <= SHARDS * MAX_CLIENTS);
        let crowd: u64 =
            limiter.shards.iter().map(|shard| shard.lock().unwrap().crowd[&Class::General].count).sum();
        assert_eq!(crowd, u64::from(total) - clients(&limiter) as u64, "every request was counted");

        clock.advance(MINUTE);
        for number in total..total + 1_000 {
            limiter.take(Class::General, client(number), 1);
        }
        assert!(clients(&limiter) <= 1_000, "idle clients were not removed");
    }

    #[test]
    fn the_shared_counter_has_a_limit() {
        let mut crowd = FixedWindow::default();
        let passed = (0..100).filter(|_| crowd.take(5, 60, 30).is_none()).count();
        assert_eq!((passed, crowd.take(10, 60, 30)), (30, Some(50)));
        assert_eq!(crowd.take(65, 60, 30), None);
    }

    #[test]
    fn memory_of_a_burst_is_released() {
        let (limiter, clock) = limiter();
        for _ in 0..3_000 {
            limiter.take(Class::General, client(1), 1);
        }
        assert!(matches!(limiter.take(Class::General, client(1), 1), Verdict::Wait(wait) if wait == MINUTE));
        clock.advance(MINUTE);
        let mut shard = limiter.shard(Class::General, client(1));
        assert!(shard.instants >= 3_000);
        shard.sweep_at = 0;
        shard.swept = None;
        let now = micros(clock.ticks());
        // Pretend that the shard is full.
        shard.instants = MAX_INSTANTS;
        assert!(shard.has_room(now, micros(MINUTE)));
        assert_eq!((shard.clients.len(), shard.instants), (0, 0));
    }

    #[test]
    fn a_limit_of_zero_rejects_all_requests() {
        let limits = RateLimits { booking: 0, ..RateLimits::default() };
        let limiter = MemoryLimiter::new(limits, urr_testkit::fixed_clock());
        assert_eq!(limiter.take(Class::Booking, client(1), 1), Verdict::Wait(MINUTE));
    }
}
