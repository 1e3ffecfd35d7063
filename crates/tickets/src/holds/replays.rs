//! Batched lookups of idempotency keys. In a rush nearly every hold is rejected, and each rejection
//! checks whether it repeats an earlier request; concurrent checks share one read.

use std::{collections::HashMap, time::Duration};

use urr_db::{Db, Tx};
use urr_jobs::Work;
use urr_kernel::UserId;

use super::store::{self, Stored};
use crate::Failure;

/// Keys per read.
const MAX_TOGETHER: usize = 256;

/// Runs batches of key lookups.
pub(crate) struct Replaying(pub(crate) Db);

impl Work for Replaying {
    type Key = ();
    type Job = (UserId, String);
    type Answer = Result<Option<Stored>, Failure>;

    const NAME: &'static str = "tickets.replay";
    /// A few seconds of load, as for claims.
    const MAX_WAITING: usize = 20_000;
    /// Few, to leave the database connections to the claims.
    const LANES: usize = 2;
    const PATIENCE: Duration = super::PATIENCE;

    fn choose<T>(waiting: &mut Vec<(Self::Job, T)>) -> Vec<(Self::Job, T)> {
        waiting.drain(..waiting.len().min(MAX_TOGETHER)).collect()
    }

    /// Decoding errors are returned per key, so that one damaged row does not fail the whole batch.
    async fn run(&self, (): (), asked: Vec<Self::Job>) -> Vec<Self::Answer> {
        match self.look(&asked).await {
            Ok(known) => answers(known, &asked),
            Err(error) if error.is_unavailable() || asked.len() == 1 => {
                let failure = Failure::from(error);
                asked.iter().map(|_| Err(failure.clone())).collect()
            }
            Err(_) => {
                let mut found = Vec::with_capacity(asked.len());
                for one in asked.chunks(1) {
                    found.push(self.look(one).await.map(|known| known.into_iter().next().map(|(_, it)| it)));
                }
                found.into_iter().map(|found| found.map_err(Failure::from)).collect()
            }
        }
    }
}

impl Replaying {
    async fn look(
        &self,
        asked: &[(UserId, String)],
    ) -> Result<Vec<((UserId, String), Stored)>, urr_db::Error> {
        self.0.read("tickets.replay", async |tx: &mut Tx<'_>| store::of_keys(tx, asked).await).await
    }
}

/// Several lookups in a batch may have the same key.
fn answers(
    known: Vec<((UserId, String), Stored)>,
    asked: &[(UserId, String)],
) -> Vec<Result<Option<Stored>, Failure>> {
    let known: HashMap<_, _> = known.into_iter().collect();
    asked.iter().map(|asked| Ok(known.get(asked).cloned())).collect()
}
