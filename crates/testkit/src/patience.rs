//! Waiting that ends: a limit on one future, and polling until something is so.

use std::{panic::Location, time::Duration};

/// Between two looks at a condition: short beside what tests wait for, long beside what a look costs.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Awaits the future for at most `limit`.
///
/// # Panics
/// When the limit passes first, naming the line that waited.
#[track_caller]
pub fn within<F: Future>(limit: Duration, future: F) -> impl Future<Output = F::Output> {
    let waited_at = Location::caller();
    async move {
        let outcome = tokio::time::timeout(limit, future).await;
        outcome.unwrap_or_else(|_| panic!("{waited_at}: still not done after {limit:?}"))
    }
}

/// Looks again and again until the condition holds: what a test does instead of sleeping and hoping.
///
/// # Panics
/// When it does not hold within `limit`, naming the line that waited. A look that hangs counts as not holding.
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
        outcome.unwrap_or_else(|_| panic!("{waited_at}: it did not come true within {limit:?}"));
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
    fn a_future_that_never_ends_is_named_by_its_line() {
        let message = message_of(within(SHORT, future::pending()));
        assert!(message.contains("patience.rs:"), "{message}");
        assert!(message.contains("30ms"), "{message}");
    }

    #[test]
    fn a_condition_that_never_holds_or_hangs_is_named_by_its_line() {
        for message in [
            message_of(until(SHORT, async || false)),
            message_of(until(SHORT, async || future::pending().await)),
        ] {
            assert!(message.contains("patience.rs:"), "{message}");
        }
    }

    #[tokio::test]
    async fn a_condition_that_comes_true_ends_the_wait() {
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
