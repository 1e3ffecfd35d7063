//! Bounded waiting: a timeout on a future, and polling for a condition.

use std::{panic::Location, time::Duration};

/// Poll interval: short compared to what tests wait for, long compared to the cost of a check.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Awaits the future for at most `limit`.
///
/// # Panics
///
/// After `limit`, with the line of the caller.
#[track_caller]
pub fn within<F: Future>(limit: Duration, future: F) -> impl Future<Output = F::Output> {
    let waited_at = Location::caller();
    async move {
        let outcome = tokio::time::timeout(limit, future).await;
        outcome.unwrap_or_else(|_| panic!("{waited_at}: not completed within {limit:?}"))
    }
}

/// Polls until the condition holds. Use it instead of sleeping.
///
/// # Panics
///
/// If the condition does not hold within `limit`, with the line of the caller. A check that hangs
/// counts as false.
#[track_caller]
pub fn until<C>(limit: Duration, mut condition: C) -> impl Future<Output = ()>
where
    C: AsyncFnMut() -> bool,
{
    let waited_at = Location::caller();
    async move {
        let holds = async {
            while !condition().await {
                tokio::time::sleep(BETWEEN_LOOKS).await;
            }
        };
        let outcome = tokio::time::timeout(limit, holds).await;
        outcome.unwrap_or_else(|_| panic!("{waited_at}: condition not met within {limit:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::{future, panic::AssertUnwindSafe};

    use super::*;

    const SHORT: Duration = Duration::from_millis(30);
    const LONG: Duration = Duration::from_mins(1);

    fn message_of(future: impl Future<Output = ()>) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let panic = std::panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(future)));
        *panic.expect_err("it should have panicked").downcast::<String>().unwrap()
    }

    #[test]
    fn timeout_names_the_callers_line() {
        let message = message_of(within(SHORT, future::pending()));
        assert!(message.contains("patience.rs:"), "{message}");
        assert!(message.contains("30ms"), "{message}");
    }

    #[test]
    fn unmet_or_hanging_condition_names_the_callers_line() {
        for message in [
            message_of(until(SHORT, async || false)),
            message_of(until(SHORT, async || future::pending().await)),
        ] {
            assert!(message.contains("patience.rs:"), "{message}");
        }
    }

    #[tokio::test]
    async fn until_returns_once_the_condition_holds() {
        let mut looks = 0;
        until(LONG, async || {
            looks += 1;
            looks == 3
        })
        .await;
        assert_eq!(looks, 3);
        assert_eq!(within(LONG, async { 7 }).await, 7);
    }
}
