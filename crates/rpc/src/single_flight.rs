//! A cache that loads each missing value once: concurrent callers wait for the same load and share
//! its result or error.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;
use urr_kernel::Clock;

use crate::Ctx;

/// How often a waiter takes over from a cancelled loader before it gives up.
const MAX_LOOKUPS: usize = 3;

/// A bounded cache with expiry and single-flight loading.
pub struct SingleFlightCache<K, V, E> {
    clock: Clock,
    /// How long a result is valid.
    max_age: Duration,
    /// Capacity, in the units of `weigh`. The least recently used entries are evicted first.
    max_weight: usize,
    weigh: fn(&V) -> usize,
    /// Which errors are results worth caching, such as "no such event".
    keep_failure: fn(&E) -> bool,
    slots: Mutex<HashMap<K, Slot<V, E>>>,
}

type Answer<V, E> = Result<Arc<V>, E>;

enum Slot<V, E> {
    /// `used`: when it was last requested.
    Cached {
        at: Duration,
        used: Duration,
        answer: Answer<V, E>,
    },
    InFlight(watch::Receiver<Option<Answer<V, E>>>),
}

enum Lookup<'a, K: Copy + Eq + Hash, V, E: Clone> {
    Cached(Answer<V, E>),
    Wait(watch::Receiver<Option<Answer<V, E>>>),
    Load(Loader<'a, K, V, E>),
}

/// The caller that loads the value for all others. If it is dropped without a result it removes its
/// slot, so that cancelled calls leave nothing behind.
struct Loader<'a, K: Copy + Eq + Hash, V, E: Clone> {
    cache: &'a SingleFlightCache<K, V, E>,
    key: K,
    result_tx: watch::Sender<Option<Answer<V, E>>>,
}

impl<K: Copy + Eq + Hash, V, E: Clone> Loader<'_, K, V, E> {
    /// Caches the result and passes it to all waiters.
    fn publish(self, answer: &Answer<V, E>) {
        self.cache.store(self.key, answer);
        // Not `send`, which discards the value when there are no receivers.
        self.result_tx.send_replace(Some(answer.clone()));
    }
}

impl<K: Copy + Eq + Hash, V, E: Clone> Drop for Loader<'_, K, V, E> {
    fn drop(&mut self) {
        // The slot is still ours: no other caller loads before there is a result. Dropping the
        // sender afterwards wakes the waiters.
        if self.result_tx.borrow().is_none() {
            self.cache.slots().remove(&self.key);
        }
    }
}

impl<K: Copy + Eq + Hash, V, E: Clone> SingleFlightCache<K, V, E> {
    /// An empty cache.
    pub fn new(
        clock: Clock,
        max_age: Duration,
        (max_weight, weigh): (usize, fn(&V) -> usize),
        keep_failure: fn(&E) -> bool,
    ) -> Self {
        Self { clock, max_age, max_weight, weigh, keep_failure, slots: Mutex::default() }
    }

    /// Returns the value from the cache, from a load in progress, or from `load`. Returns `late` at
    /// the deadline.
    pub async fn get(
        &self,
        ctx: &Ctx,
        key: K,
        late: E,
        load: impl Future<Output = Result<V, E>>,
    ) -> Answer<V, E> {
        for _ in 0..MAX_LOOKUPS {
            match self.lookup(key) {
                Lookup::Cached(answer) => return answer,
                Lookup::Wait(mut loading) => {
                    let answered = loading.wait_for(Option::is_some);
                    match tokio::time::timeout(ctx.remaining(), answered).await {
                        Ok(Ok(answer)) => return answer.clone().unwrap_or(Err(late)),
                        // The loader was dropped without a result: load it ourselves.
                        Ok(Err(_)) => {}
                        Err(_) => return Err(late),
                    }
                }
                Lookup::Load(loader) => {
                    let answer = load.await.map(Arc::new);
                    loader.publish(&answer);
                    return answer;
                }
            }
        }
        Err(late)
    }

    fn lookup(&self, key: K) -> Lookup<'_, K, V, E> {
        let now = self.clock.ticks();
        let mut slots = self.slots();
        match slots.get_mut(&key) {
            Some(Slot::Cached { at, used, answer }) if now.saturating_sub(*at) < self.max_age => {
                *used = now;
                return Lookup::Cached(answer.clone());
            }
            Some(Slot::InFlight(loading)) => return Lookup::Wait(loading.clone()),
            Some(Slot::Cached { .. }) | None => {}
        }
        let (result_tx, loading) = watch::channel(None);
        slots.insert(key, Slot::InFlight(loading));
        Lookup::Load(Loader { cache: self, key, result_tx })
    }

    fn store(&self, key: K, answer: &Answer<V, E>) {
        let mut slots = self.slots();
        slots.remove(&key);
        if answer.as_ref().err().is_none_or(self.keep_failure) {
            let now = self.clock.ticks();
            slots.insert(key, Slot::Cached { at: now, used: now, answer: answer.clone() });
            self.make_room(&mut slots, key);
        }
    }

    /// Evicts the least recently used entries until the rest fits. `newest` stays.
    fn make_room(&self, slots: &mut HashMap<K, Slot<V, E>>, newest: K) {
        let weight = |slot: &Slot<V, E>| match slot {
            Slot::Cached { answer: Ok(value), .. } => (self.weigh)(value),
            Slot::Cached { answer: Err(_), .. } | Slot::InFlight(_) => 1,
        };
        let mut total: usize = slots.values().map(weight).sum();
        while total > self.max_weight {
            let known = slots.iter().filter_map(|(key, slot)| match slot {
                Slot::Cached { used, .. } if *key != newest => Some((*used, *key)),
                _ => None,
            });
            let Some((_, idle)) = known.min_by_key(|(used, _)| *used) else { break };
            total -= slots.remove(&idle).as_ref().map_or(0, weight);
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<K, Slot<V, E>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        sync::atomic::{AtomicUsize, Ordering},
        task::{Context, Waker},
    };

    use tokio::sync::oneshot;
    use urr_kernel::{Actor, Ids, Timestamp};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn cache(clock: &Clock, max_weight: usize) -> Arc<SingleFlightCache<u32, u32, &'static str>> {
        Arc::new(SingleFlightCache::new(clock.clone(), SECOND, (max_weight, |_| 1), |failure| {
            *failure == "none"
        }))
    }

    fn ctx(clock: &Clock) -> Ctx {
        let ids = Ids::seeded(clock.clone(), 1);
        Ctx::new(ids.next(), Actor::System, clock.clone(), Duration::from_secs(30))
    }

    /// Polls once; whether it is still pending.
    fn goes_on(loading: Pin<&mut impl Future>) -> bool {
        loading.poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    #[tokio::test]
    async fn concurrent_callers_share_one_load_and_its_error() {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        let (cache, asked) = (cache(&clock, 10), Arc::new(AtomicUsize::new(0)));
        let (go, wait) = oneshot::channel::<()>();
        let mut wait = Some(wait);
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let (cache, asked, ctx, wait) =
                (Arc::clone(&cache), Arc::clone(&asked), ctx(&clock), wait.take());
            callers.spawn(async move {
                let load = async {
                    asked.fetch_add(1, Ordering::SeqCst);
                    if let Some(wait) = wait {
                        wait.await.unwrap();
                    }
                    Err("down")
                };
                cache.get(&ctx, 7, "late", load).await
            });
        }
        tokio::task::yield_now().await;
        go.send(()).unwrap();
        assert!(callers.join_all().await.into_iter().all(|answer| answer == Err("down")));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        let again = cache.get(&ctx(&clock), 7, "late", async { Ok(1) }).await;
        assert_eq!(again, Ok(Arc::new(1)), "an outage is not cached");
    }

    #[tokio::test]
    async fn cancelled_load_is_taken_over_by_the_next_caller() {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        let cache = cache(&clock, 10);
        let first = ctx(&clock);
        let gone = cache.get(&first, 7, "late", std::future::pending());
        assert!(tokio::time::timeout(Duration::from_millis(1), gone).await.is_err());
        let next = cache.get(&ctx(&clock), 7, "late", async { Ok(2) }).await;
        assert_eq!(next, Ok(Arc::new(2)));
    }

    #[tokio::test]
    async fn cancelled_loads_leave_nothing_behind() {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        let cache = cache(&clock, 10);
        let ctx = ctx(&clock);
        for key in 0..1_000 {
            let mut gone = Box::pin(cache.get(&ctx, key, "late", std::future::pending()));
            assert!(goes_on(gone.as_mut()), "it is loading");
            assert_eq!(cache.slots().len(), 1);
        }
        assert!(cache.slots().is_empty());
    }

    #[tokio::test]
    async fn waiter_behind_a_cancelled_load_loads_itself() {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        let cache = cache(&clock, 10);
        let ctx = ctx(&clock);
        let mut gone = Box::pin(cache.get(&ctx, 7, "late", std::future::pending()));
        let mut waiter = Box::pin(cache.get(&ctx, 7, "late", async { Ok(2) }));
        assert!(goes_on(gone.as_mut()), "it is loading");
        assert!(goes_on(waiter.as_mut()), "it waits for the first load");
        drop(gone);
        assert_eq!(waiter.await, Ok(Arc::new(2)));
        let kept = cache.get(&ctx, 7, "late", async { Ok(3) }).await;
        assert_eq!(kept, Ok(Arc::new(2)), "the second load is cached");
    }

    #[tokio::test]
    async fn results_expire_and_selected_errors_are_cached() {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        let cache = cache(&clock, 10);
        let get = async |value: Result<u32, &'static str>| {
            cache.get(&ctx(&clock), 7, "late", async { value }).await.map(|value| *value)
        };
        assert_eq!(get(Err("none")).await, Err("none"));
        assert_eq!(get(Ok(1)).await, Err("none"), "still cached");
        clock.advance(SECOND);
        assert_eq!(get(Ok(1)).await, Ok(1));
        assert_eq!(get(Ok(2)).await, Ok(1));
        clock.advance(SECOND);
        assert_eq!(get(Ok(2)).await, Ok(2));
    }

    #[tokio::test]
    async fn least_recently_used_entry_is_evicted() {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        let cache = cache(&clock, 2);
        for key in [0, 1, 0, 2] {
            clock.advance(Duration::from_millis(1));
            cache.get(&ctx(&clock), key, "late", async { Ok(key) }).await.unwrap();
        }
        let kept = |key| matches!(cache.lookup(key), Lookup::Cached(_));
        assert_eq!([kept(0), kept(2), kept(1)], [true, true, false]);
    }
}
