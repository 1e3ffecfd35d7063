//! Deletes mails that ended long ago.

use std::time::Duration;

use async_trait::async_trait;
use urr_jobs::{BoxError, Outcome, Reconciler};

use crate::{Mails, queue::SWEEP_BATCH};

pub(crate) struct Sweep(pub(crate) Mails);

#[async_trait]
impl Reconciler for Sweep {
    fn name(&self) -> &'static str {
        "mail.sweep"
    }

    fn period(&self) -> Duration {
        Duration::from_mins(10)
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        Ok(Outcome::batch(self.0.sweep().await?, u64::from(SWEEP_BATCH)))
    }
}
