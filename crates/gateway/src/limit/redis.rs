//! The rate limiter in Redis: one script, one key per class and client, the clock of Redis.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use urr_kernel::Clock;
use urr_kv::{Arg, Error, Kv, Script};

use super::{Class, MemoryLimiter, OnStoreOutage, RateLimits, Verdict, Who};

static TAKE: Script = Script::new("limit.take", include_str!("take.lua"));

/// While Redis is unreachable each process counts alone, against the limit divided by this. Two or
/// three gateways together then admit about the configured limit.
const SHARE_DURING_OUTAGE: u32 = 2;

/// Cached clients that must wait. About 60 bytes each, 600 kB in total.
const MAX_WAITING: usize = 10_000;

/// Timestamps of recent admissions by class and client, in Redis.
#[derive(Debug)]
pub struct Redis {
    kv: Kv,
    limits: RateLimits,
    clock: Clock,
    /// Fallback while Redis is unreachable.
    here: MemoryLimiter,
    /// Time until which a client must wait. No other process can shorten it, so Redis is not
    /// called: a flood of one client stays in this process.
    waiting: Mutex<HashMap<(Class, Who), Duration>>,
}

impl Redis {
    pub(super) fn new(kv: Kv, limits: RateLimits, clock: Clock) -> Self {
        let here = MemoryLimiter::new(limits, clock.clone());
        Self { kv, limits, clock, here, waiting: Mutex::default() }
    }

    pub(super) async fn take(&self, class: Class, who: Who, on_outage: OnStoreOutage) -> Verdict {
        if let Some(wait) = self.known_wait(class, who) {
            return Verdict::Wait(wait);
        }
        let asked = self.clock.ticks();
        match self.ask(class, who).await {
            Ok(None) => Verdict::Pass,
            Ok(Some(wait)) => {
                self.remember(class, who, asked + wait);
                Verdict::Wait(wait)
            }
            Err(error) => {
                tracing::debug!(%error, class = class.name(), ?on_outage, "redis did not answer: no shared rate limit");
                match on_outage {
                    OnStoreOutage::CountHere => self.here.take(class, who, SHARE_DURING_OUTAGE),
                    OnStoreOutage::Refuse => Verdict::Unknown,
                }
            }
        }
    }

    async fn ask(&self, class: Class, who: Who) -> Result<Option<Duration>, Error> {
        let limit = self.limits.of(class);
        if limit == 0 {
            return Ok(Some(self.limits.window));
        }
        let window = i64::try_from(self.limits.window.as_micros()).unwrap_or(i64::MAX);
        let args = [Arg::from(i64::from(limit)), Arg::from(window)];
        let wait = self.kv.run(&TAKE, &[key(class, who)], &args).await?.int()?;
        let wait = u64::try_from(wait).map_err(|_| Error::Reply(format!("a wait of {wait}")))?;
        Ok((wait > 0).then(|| Duration::from_micros(wait)))
    }

    fn known_wait(&self, class: Class, who: Who) -> Option<Duration> {
        let until = *self.waiting().get(&(class, who))?;
        until.checked_sub(self.clock.ticks()).filter(|wait| !wait.is_zero())
    }

    fn remember(&self, class: Class, who: Who, until: Duration) {
        let mut waiting = self.waiting();
        // Clearing costs one extra call to Redis per client. Searching for expired entries would
        // cost more.
        if waiting.len() >= MAX_WAITING {
            waiting.clear();
        }
        waiting.insert((class, who), until);
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<(Class, Who), Duration>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn key(class: Class, who: Who) -> String {
    format!("limit:{{{}:{who}}}", class.name())
}
