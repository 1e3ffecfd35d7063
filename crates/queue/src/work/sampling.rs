//! Looks at every room that is watched or in use, each second, so that a control room has something to show at once.
//!
//! Apart from letting people in: when that is in trouble, operators want to see it most.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use urr_jobs::{BoxError, Outcome, Reconciler};

use crate::{control::live, service::Service};

/// Rooms looked at at the same time.
const AT_ONCE: usize = 16;

/// The worker. Every process has one, for those who watch there.
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
