//! Samples every watched or used room each second, so that the live view has history to show at
//! once.
//!
//! Separate from admissions: operators need the live view most when those fail.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use urr_jobs::{BoxError, Outcome, Reconciler};

use crate::{control::live, service::Service};

/// Rooms sampled concurrently.
const AT_ONCE: usize = 16;

/// The worker. Every process has one, for its own watchers.
pub(crate) struct Sampling(pub(crate) Arc<Service>);

#[async_trait]
impl Reconciler for Sampling {
    fn name(&self) -> &'static str {
        "queue.sampling"
    }

    fn period(&self) -> Duration {
        Duration::from_secs(1)
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        let looks = stream::iter(self.0.watched.wanted()).map(|event| live::sample(&self.0, event));
        looks.buffer_unordered(AT_ONCE).collect::<()>().await;
        Ok(Outcome::done(0))
    }
}
