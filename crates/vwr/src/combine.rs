//! Everybody who arrives at the same moment is counted together: one call to the store for all who wait for their number, and while
//! it is under way the next ones gather. Within a process the order is that of arrival, and the store keeps the order of calls.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;
use urr_contracts::vwr::{Error, Room};
use urr_jobs::Tasks;
use urr_kernel::EventId;

use crate::{Counters, counters::Given, trouble::Trouble};

/// People who wait for their number at one event, at a hundred bytes each ten megabytes. Beyond, they are asked to come again.
const MAX_GATHERED: usize = 100_000;

/// A place that was given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) position: u64,
    pub(crate) room: Room,
}

type Answer = oneshot::Sender<Result<Counted, Error>>;

/// Counts arrivals together.
pub(crate) struct Combiner(Arc<Shared>);

struct Shared {
    counters: Arc<Counters>,
    /// Those who gather, by event. An event is in it while somebody counts for it.
    gathered: Mutex<HashMap<EventId, Vec<Answer>>>,
    tasks: Tasks,
}

impl Combiner {
    pub(crate) fn new(counters: Arc<Counters>, tasks: Tasks) -> Self {
        Self(Arc::new(Shared { counters, gathered: Mutex::default(), tasks }))
    }

    /// The next place in line.
    pub(crate) async fn next(&self, event: EventId) -> Result<Counted, Trouble> {
        let (answer, told) = oneshot::channel();
        if self.0.join(event, answer)? {
            // On a task of its own: whoever came first may go away again, and the others still want their numbers.
            self.0.tasks.spawn("vwr.count", count(Arc::clone(&self.0), event));
        }
        match told.await {
            Ok(counted) => Ok(counted?),
            Err(_) => Err(Trouble::Busy("counting broke off")),
        }
    }
}

impl Shared {
    /// Stands with the others. True if nobody counts for them yet.
    fn join(&self, event: EventId, answer: Answer) -> Result<bool, Trouble> {
        let mut gathered = self.gathered();
        let is_first = !gathered.contains_key(&event);
        let waiting = gathered.entry(event).or_default();
        if waiting.len() >= MAX_GATHERED {
            return Err(Trouble::Busy("too many wait for their number"));
        }
        waiting.push(answer);
        Ok(is_first)
    }

    /// Those who have gathered. Nothing, and nobody counts any more, if there is nobody.
    fn take(&self, event: EventId) -> Option<Vec<Answer>> {
        let mut gathered = self.gathered();
        let waiting = gathered.get_mut(&event)?;
        if waiting.is_empty() {
            gathered.remove(&event);
            return None;
        }
        Some(std::mem::take(waiting))
    }

    fn gathered(&self) -> MutexGuard<'_, HashMap<EventId, Vec<Answer>>> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts until nobody gathers any more. Each turn takes everybody there is, so it ends when arrivals do.
async fn count(shared: Arc<Shared>, event: EventId) {
    // If this breaks off, those who gathered are told, and the next one begins anew.
    let mut broken = Broken { shared: Arc::clone(&shared), event, off: true };
    while let Some(mut waiting) = shared.take(event) {
        // Whoever has gone needs no number.
        waiting.retain(|answer| !answer.is_closed());
        if waiting.is_empty() {
            continue;
        }
        let arrivals = u64::try_from(waiting.len()).unwrap_or(u64::MAX);
        metrics::histogram!("urr_vwr_combined").record(crate::rules::as_float(arrivals));
        match shared.counters.add(event, arrivals).await {
            Ok(Given { first, room }) => {
                for (position, answer) in (first..).zip(waiting) {
                    // Somebody who went away in this moment leaves a place that nobody has.
                    let _gone = answer.send(Ok(Counted { position, room }));
                }
            }
            Err(trouble) => {
                let error = refusal(trouble, event);
                for answer in waiting {
                    let _gone = answer.send(Err(error.clone()));
                }
            }
        }
    }
    // Whoever gathers from now on has somebody else to count for them.
    broken.off = false;
}

/// Logged once for all who share it.
fn refusal(trouble: Trouble, event: EventId) -> Error {
    match trouble {
        Trouble::Refused(error) => error,
        trouble => {
            tracing::error!(%event, error = urr_telemetry::chain(&trouble), "places cannot be given");
            Error::Unavailable
        }
    }
}

/// Lets those go who gathered, if the counting panicked or was dropped.
struct Broken {
    shared: Arc<Shared>,
    event: EventId,
    off: bool,
}

impl Drop for Broken {
    fn drop(&mut self) {
        if self.off {
            self.shared.gathered().remove(&self.event);
        }
    }
}
