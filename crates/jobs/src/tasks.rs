//! Spawns named tasks and waits for them at shutdown.

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
/// A task must end when [`Tasks::token`] is cancelled. A panic is logged with the task's name. In
/// an *essential* task it also cancels the token, because without that task the process would look
/// alive and do nothing.
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

/// The tasks that were still running when the grace period ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("still running after the grace period: {}", .0.join(", "))]
pub struct Unfinished(pub Vec<String>);

/// Time for a task dropped at the end of the grace period to unwind; it needs one poll.
pub const UNWIND: Duration = Duration::from_secs(1);

impl Tasks {
    /// An empty list with its own token.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancelled when the process must stop.
    pub fn token(&self) -> CancellationToken {
        self.0.token.clone()
    }

    /// Spawns a task that shutdown waits for.
    pub fn spawn(&self, name: impl Into<Cow<'static, str>>, work: impl Future<Output = ()> + Send + 'static) {
        self.start(name.into(), false, work);
    }

    /// Spawns a task that the process cannot work without. If it panics, or ends before shutdown,
    /// the token is cancelled and [`Tasks::failed`] returns its name.
    pub fn spawn_essential(
        &self,
        name: impl Into<Cow<'static, str>>,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        self.start(name.into(), true, work);
    }

    /// The essential task that stopped the process, if one did. Decides the exit status.
    pub fn failed(&self) -> Option<&str> {
        self.0.failed.get().map(String::as_str)
    }

    /// Names of the running tasks, sorted.
    pub fn running(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.0.alive().tasks.values().map(|(name, _)| name.clone().into_owned()).collect();
        names.sort();
        names
    }

    /// Cancels the token and waits up to `grace` for every task. Tasks still running then are
    /// dropped and returned by name.
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

    /// Drops every task without cancelling the token first, as a crash would. Tests use it to prove
    /// that nothing is lost without a clean shutdown.
    pub async fn abort(&self) {
        self.0.tracker.close();
        let aborts: Vec<AbortHandle> =
            self.0.alive().tasks.values().map(|(_, abort)| abort.clone()).collect();
        for abort in aborts {
            abort.abort();
        }
        // A task that blocks its thread cannot be dropped; its name has already been reported.
        let _ = tokio::time::timeout(UNWIND, self.0.tracker.wait()).await;
    }

    fn start(
        &self,
        name: Cow<'static, str>,
        essential: bool,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        // Locked until the task is on the list, so that a task that ends at once is not removed
        // before it is added.
        let mut alive = self.0.alive();
        let entry = TaskEntry { tasks: Arc::clone(&self.0), number: alive.next, name: name.clone() };
        alive.next += 1;
        let number = entry.number;
        let handle = self.0.tracker.spawn(async move {
            let outcome = AssertUnwindSafe(work).catch_unwind().await;
            entry.ended(essential, outcome);
        });
        alive.tasks.insert(number, (name, handle.abort_handle()));
    }
}

impl Shared {
    fn alive(&self) -> MutexGuard<'_, Alive> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task's entry in the list; drop removes it.
struct TaskEntry {
    tasks: Arc<Shared>,
    number: u64,
    name: Cow<'static, str>,
}

impl TaskEntry {
    fn ended(&self, essential: bool, outcome: Result<(), Box<dyn Any + Send>>) {
        let task = &*self.name;
        let stopping = self.tasks.token.is_cancelled();
        match outcome {
            Ok(()) if essential && !stopping => {
                tracing::error!(task, "essential task ended unexpectedly: stopping the process");
            }
            Ok(()) => return,
            Err(panic) => {
                metrics::counter!("urr_task_panics_total", "task" => self.name.clone()).increment(1);
                tracing::error!(task, essential, panic = panic_text(&*panic), "task panicked");
            }
        }
        if essential && !stopping {
            // Keep the first: it is the cause, later ones are consequences.
            let _ = self.tasks.failed.set(task.to_owned());
            self.tasks.token.cancel();
        }
    }
}

impl Drop for TaskEntry {
    fn drop(&mut self) {
        self.tasks.alive().tasks.remove(&self.number);
    }
}

/// The message of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn shutdown_waits_and_names_unfinished_tasks() {
        let tasks = Tasks::new();
        let token = tasks.token();
        tasks.spawn("polite", async move { token.cancelled().await });
        tasks.spawn("stuck", std::future::pending());
        assert_eq!(tasks.running(), ["polite", "stuck"]);
        assert_eq!(tasks.shutdown(GRACE).await, Err(Unfinished(vec!["stuck".to_owned()])));
        assert!(tasks.running().is_empty(), "unfinished tasks were dropped");
    }

    #[tokio::test(start_paused = true)]
    async fn panic_in_an_ordinary_task_does_not_affect_others() {
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
    async fn essential_task_that_ends_early_stops_the_process() {
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
    async fn abort_drops_tasks_without_cancelling_the_token() {
        let tasks = Tasks::new();
        let token = tasks.token();
        tasks.spawn("polite", async move { token.cancelled().await });
        tasks.abort().await;
        assert!(tasks.running().is_empty());
        assert!(!tasks.token().is_cancelled());
    }
}
