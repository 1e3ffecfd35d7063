//! The one place that spawns, and the list shutdown waits for.

use std::{
    any::Any,
    borrow::Cow,
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::task::AbortHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The named tasks of a process. Clones share the list.
///
/// A task ends by itself when [`Tasks::token`] is cancelled. A panic is logged with the task's name; in an *essential*
/// task it also cancels the token, because the process without that task would look alive and do nothing.
#[derive(Clone, Debug, Default)]
pub struct Tasks(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    tracker: TaskTracker,
    token: CancellationToken,
    alive: Mutex<Alive>,
    failed: OnceLock<String>,
}

#[derive(Debug, Default)]
struct Alive {
    next: u64,
    tasks: BTreeMap<u64, (Cow<'static, str>, AbortHandle)>,
}

/// Tasks that were still running when the grace period ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("still running after the grace period: {}", .0.join(", "))]
pub struct Unfinished(pub Vec<String>);

/// A task dropped at the end of the grace period gets this long to unwind; it needs one poll.
pub const UNWIND: Duration = Duration::from_secs(1);

impl Tasks {
    /// An empty list with a token of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancelled when the process shall stop.
    pub fn token(&self) -> CancellationToken {
        self.0.token.clone()
    }

    /// Starts a task that shutdown waits for.
    pub fn spawn(&self, name: impl Into<Cow<'static, str>>, work: impl Future<Output = ()> + Send + 'static) {
        self.start(name.into(), false, work);
    }

    /// Starts a task without which the process is of no use: if it panics, or ends before anybody asked the process to
    /// stop, the token is cancelled and [`Tasks::failed`] names it.
    pub fn spawn_essential(
        &self,
        name: impl Into<Cow<'static, str>>,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        self.start(name.into(), true, work);
    }

    /// The essential task that brought the process down, if one did: the exit status depends on it.
    pub fn failed(&self) -> Option<&str> {
        self.0.failed.get().map(String::as_str)
    }

    /// The names of the tasks that have not ended, sorted.
    pub fn running(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.0.alive().tasks.values().map(|(name, _)| name.clone().into_owned()).collect();
        names.sort();
        names
    }

    /// Cancels the token and waits up to `grace` for every task. What has not ended by then is named and dropped.
    pub async fn shutdown(&self, grace: Duration) -> Result<(), Unfinished> {
        self.0.token.cancel();
        self.0.tracker.close();
        if tokio::time::timeout(grace, self.0.tracker.wait()).await.is_ok() {
            return Ok(());
        }
        let unfinished = Unfinished(self.running());
        self.abort().await;
        Err(unfinished)
    }

    /// Drops every task where it stands, without telling it: what a crash does. Tests use it to prove that nothing is
    /// lost when no task gets to say goodbye.
    pub async fn abort(&self) {
        self.0.tracker.close();
        let aborts: Vec<AbortHandle> =
            self.0.alive().tasks.values().map(|(_, abort)| abort.clone()).collect();
        for abort in aborts {
            abort.abort();
        }
        // A task that blocks its thread cannot be dropped; the caller has been told its name.
        let _ = tokio::time::timeout(UNWIND, self.0.tracker.wait()).await;
    }

    fn start(
        &self,
        name: Cow<'static, str>,
        essential: bool,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        // Held until the task is on the list, so that a task which ends at once cannot leave the list before it joins.
        let mut alive = self.0.alive();
        let place = Place { tasks: Arc::clone(&self.0), number: alive.next, name: name.clone() };
        alive.next += 1;
        let number = place.number;
        let handle = self.0.tracker.spawn(async move {
            let outcome = AssertUnwindSafe(work).catch_unwind().await;
            place.ended(essential, outcome);
        });
        alive.tasks.insert(number, (name, handle.abort_handle()));
    }
}

impl Shared {
    fn alive(&self) -> MutexGuard<'_, Alive> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task's place on the list; leaves it however the task ends.
struct Place {
    tasks: Arc<Shared>,
    number: u64,
    name: Cow<'static, str>,
}

impl Place {
    fn ended(&self, essential: bool, outcome: Result<(), Box<dyn Any + Send>>) {
        let task = &*self.name;
        let stopping = self.tasks.token.is_cancelled();
        match outcome {
            Ok(()) if essential && !stopping => {
                tracing::error!(task, "an essential task ended by itself; the process stops");
            }
            Ok(()) => return,
            Err(panic) => {
                metrics::counter!("urr_task_panics_total", "task" => self.name.clone()).increment(1);
                tracing::error!(task, essential, panic = panic_text(&*panic), "a task panicked");
            }
        }
        if essential && !stopping {
            // The first one is the cause; those that follow it down are not.
            let _ = self.tasks.failed.set(task.to_owned());
            self.tasks.token.cancel();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.tasks.alive().tasks.remove(&self.number);
    }
}

/// What a panic said.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn shutdown_waits_for_tasks_and_names_those_that_did_not_end() {
        let tasks = Tasks::new();
        let token = tasks.token();
        tasks.spawn("polite", async move { token.cancelled().await });
        tasks.spawn("stuck", std::future::pending());
        assert_eq!(tasks.running(), ["polite", "stuck"]);
        assert_eq!(tasks.shutdown(GRACE).await, Err(Unfinished(vec!["stuck".to_owned()])));
        assert!(tasks.running().is_empty(), "what did not end was dropped");
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_in_an_ordinary_task_leaves_the_others_alone() {
        let tasks = Tasks::new();
        tasks.spawn("broken", async { panic!("on purpose") });
        let token = tasks.token();
        tasks.spawn("healthy", async move { token.cancelled().await });
        while tasks.running() != ["healthy"] {
            tokio::task::yield_now().await;
        }
        assert!(!tasks.token().is_cancelled());
        assert_eq!(tasks.shutdown(GRACE).await, Ok(()));
        assert_eq!(tasks.failed(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_in_an_essential_task_stops_the_process() {
        let tasks = Tasks::new();
        tasks.spawn_essential("server", async { panic!("on purpose") });
        tasks.token().cancelled().await;
        assert_eq!(tasks.failed(), Some("server"));
        assert_eq!(tasks.shutdown(GRACE).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_essential_task_may_end_only_when_the_process_stops() {
        let early = Tasks::new();
        early.spawn_essential("server", async {});
        early.token().cancelled().await;
        assert_eq!(early.failed(), Some("server"));

        let asked = Tasks::new();
        let token = asked.token();
        asked.spawn_essential("server", async move { token.cancelled().await });
        assert_eq!(asked.shutdown(GRACE).await, Ok(()));
        assert_eq!(asked.failed(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn abort_drops_tasks_without_telling_them() {
        let tasks = Tasks::new();
        let token = tasks.token();
        tasks.spawn("polite", async move { token.cancelled().await });
        tasks.abort().await;
        assert!(tasks.running().is_empty());
        assert!(!tasks.token().is_cancelled());
    }
}
