//! Values that are dear to get: whoever asks first gets them, everybody else waits for that one answer, good or bad.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;
use urr_kernel::Clock;

use crate::Ctx;

/// How often a waiter takes over from a loader that went away before it gives up.
const MAX_TURNS: usize = 3;

/// Where a value comes from when it is missing or too old, how long it is good, and how much is kept.
pub struct Loading<K, V, E> {
    clock: Clock,
    /// How long an answer is good.
    max_age: Duration,
    /// How much is kept, in the units of `weigh`. What nobody has asked for the longest goes first.
    max_weight: usize,
    weigh: fn(&V) -> usize,
    /// Which failures are answers and worth keeping, such as "there is no such event".
    keep_failure: fn(&E) -> bool,
    slots: Mutex<HashMap<K, Slot<V, E>>>,
}

type Answer<V, E> = Result<Arc<V>, E>;

enum Slot<V, E> {
    /// `used`: when somebody last asked for it.
    Known {
        at: Duration,
        used: Duration,
        answer: Answer<V, E>,
    },
    Asking(watch::Receiver<Option<Answer<V, E>>>),
}

enum Turn<V, E> {
    Known(Answer<V, E>),
    Wait(watch::Receiver<Option<Answer<V, E>>>),
    Ask(watch::Sender<Option<Answer<V, E>>>),
}

impl<K: Copy + Eq + Hash, V, E: Clone> Loading<K, V, E> {
    /// Remembers nothing yet.
    pub fn new(
        clock: Clock,
        max_age: Duration,
        (max_weight, weigh): (usize, fn(&V) -> usize),
        keep_failure: fn(&E) -> bool,
    ) -> Self {
        Self { clock, max_age, max_weight, weigh, keep_failure, slots: Mutex::default() }
    }

    /// The value, from memory, from whoever is asking already, or from `load`. `late` is the answer when time runs out.
    pub async fn get(
        &self,
        ctx: &Ctx,
        key: K,
        late: E,
        load: impl Future<Output = Result<V, E>>,
    ) -> Answer<V, E> {
        for _ in 0..MAX_TURNS {
            match self.turn(key) {
                Turn::Known(answer) => return answer,
                Turn::Wait(mut asking) => {
                    let answered = asking.wait_for(Option::is_some);
                    match tokio::time::timeout(ctx.remaining(), answered).await {
                        Ok(Ok(answer)) => return answer.clone().unwrap_or(Err(late)),
                        // Whoever asked went away without an answer: it is our turn.
                        Ok(Err(_)) => {}
                        Err(_) => return Err(late),
                    }
                }
                Turn::Ask(asking) => {
                    let answer = load.await.map(Arc::new);
                    self.learn(key, &answer);
                    let _ = asking.send(Some(answer.clone()));
                    return answer;
                }
            }
        }
        Err(late)
    }

    fn turn(&self, key: K) -> Turn<V, E> {
        let now = self.clock.ticks();
        let mut slots = self.slots();
        match slots.get_mut(&key) {
            Some(Slot::Known { at, used, answer }) if now.saturating_sub(*at) < self.max_age => {
                *used = now;
                return Turn::Known(answer.clone());
            }
            // The sender is gone when the loader was dropped half-way.
            Some(Slot::Asking(asking)) if asking.has_changed().is_ok() => return Turn::Wait(asking.clone()),
            Some(_) | None => {}
        }
        let (sender, asking) = watch::channel(None);
        slots.insert(key, Slot::Asking(asking));
        Turn::Ask(sender)
    }

    fn learn(&self, key: K, answer: &Answer<V, E>) {
        let mut slots = self.slots();
        slots.remove(&key);
        if answer.as_ref().err().is_none_or(self.keep_failure) {
            let now = self.clock.ticks();
            slots.insert(key, Slot::Known { at: now, used: now, answer: answer.clone() });
            self.make_room(&mut slots, key);
        }
    }

    /// Forgets what nobody has asked for the longest until what is left fits. `newest` stays.
    fn make_room(&self, slots: &mut HashMap<K, Slot<V, E>>, newest: K) {
        let weight = |slot: &Slot<V, E>| match slot {
            Slot::Known { answer: Ok(value), .. } => (self.weigh)(value),
            Slot::Known { answer: Err(_), .. } | Slot::Asking(_) => 1,
        };
        let mut total: usize = slots.values().map(weight).sum();
        while total > self.max_weight {
            let known = slots.iter().filter_map(|(key, slot)| match slot {
                Slot::Known { used, .. } if *key != newest => Some((*used, *key)),
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::oneshot;
    use urr_kernel::{Actor, Ids, Timestamp};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn loading(clock: &Clock, max_weight: usize) -> Arc<Loading<u32, u32, &'static str>> {
        Arc::new(Loading::new(clock.clone(), SECOND, (max_weight, |_| 1), |failure| *failure == "none"))
    }

    fn ctx(clock: &Clock) -> Ctx {
        let ids = Ids::seeded(clock.clone(), 1);
        Ctx::new(ids.next(), Actor::System, clock.clone(), Duration::from_secs(30))
    }

    #[tokio::test]
    async fn everybody_who_waits_shares_one_question_and_its_failure() {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        let (loading, asked) = (loading(&clock, 10), Arc::new(AtomicUsize::new(0)));
        let (go, wait) = oneshot::channel::<()>();
        let mut wait = Some(wait);
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let (loading, asked, ctx, wait) =
                (Arc::clone(&loading), Arc::clone(&asked), ctx(&clock), wait.take());
            callers.spawn(async move {
                let load = async {
                    asked.fetch_add(1, Ordering::SeqCst);
                    if let Some(wait) = wait {
                        wait.await.unwrap();
                    }
                    Err("down")
                };
                loading.get(&ctx, 7, "late", load).await
            });
        }
        tokio::task::yield_now().await;
        go.send(()).unwrap();
        assert!(callers.join_all().await.into_iter().all(|answer| answer == Err("down")));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        let again = loading.get(&ctx(&clock), 7, "late", async { Ok(1) }).await;
        assert_eq!(again, Ok(Arc::new(1)), "an outage is not remembered");
    }

    #[tokio::test]
    async fn a_loader_that_goes_away_leaves_its_turn_to_the_next() {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        let loading = loading(&clock, 10);
        let first = ctx(&clock);
        let gone = loading.get(&first, 7, "late", std::future::pending());
        assert!(tokio::time::timeout(Duration::from_millis(1), gone).await.is_err());
        let next = loading.get(&ctx(&clock), 7, "late", async { Ok(2) }).await;
        assert_eq!(next, Ok(Arc::new(2)));
    }

    #[tokio::test]
    async fn answers_age_and_some_failures_are_answers() {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        let loading = loading(&clock, 10);
        let get = async |value: Result<u32, &'static str>| {
            loading.get(&ctx(&clock), 7, "late", async { value }).await.map(|value| *value)
        };
        assert_eq!(get(Err("none")).await, Err("none"));
        assert_eq!(get(Ok(1)).await, Err("none"), "still remembered");
        clock.advance(SECOND);
        assert_eq!(get(Ok(1)).await, Ok(1));
        assert_eq!(get(Ok(2)).await, Ok(1));
        clock.advance(SECOND);
        assert_eq!(get(Ok(2)).await, Ok(2));
    }

    #[tokio::test]
    async fn what_nobody_asked_for_the_longest_goes_when_there_is_no_room() {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        let loading = loading(&clock, 2);
        for key in [0, 1, 0, 2] {
            clock.advance(Duration::from_millis(1));
            loading.get(&ctx(&clock), key, "late", async { Ok(key) }).await.unwrap();
        }
        let kept = |key| matches!(loading.turn(key), Turn::Known(_));
        assert_eq!([kept(0), kept(2), kept(1)], [true, true, false]);
    }
}
