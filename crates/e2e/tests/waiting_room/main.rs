//! The waiting rooms of the real binary: killed, suspended, without Redis or its data, and in front
//! of a sale.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

/// Runs a test on each of these backends.
macro_rules! on_backends {
    ($story:ident: $($name:ident $backend:ident),+) => {
        mod $story {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() -> anyhow::Result<()> {
                    super::$story(urr_e2e::stores::Backend::$backend).await
                }
            )+
        }
    };
}

mod flushed;
mod front;
mod frozen;
mod kill;
mod opened;
mod outage;
mod sale;
