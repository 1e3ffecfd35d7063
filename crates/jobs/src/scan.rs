//! Background work that skips rows it cannot process, so that one damaged row does not block the
//! others.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use uuid::Uuid;

/// Skipped rows that are remembered as already logged, at about 20 bytes each. More are only
/// counted.
const MAX_LOGGED: usize = 10_000;

/// The position in a scan over many rows, and the rows skipped. In memory only: another process
/// starts over.
#[derive(Debug)]
pub struct Scan<K> {
    work: &'static str,
    at: Mutex<Option<K>>,
    logged: Mutex<BTreeSet<Uuid>>,
}

impl<K: Clone> Scan<K> {
    /// Starts with the first row.
    pub const fn new(work: &'static str) -> Self {
        Self { work, at: Mutex::new(None), logged: Mutex::new(BTreeSet::new()) }
    }

    /// The row after which to continue; `None` means from the first row.
    pub fn at(&self) -> Option<K> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Continues after this row in the next run, whether or not it was processed.
    pub fn pass(&self, row: &K) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(row.clone());
    }

    /// Starts over: the next run begins with the first row and retries those that were skipped.
    pub fn begin_anew(&self) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Skips a row after an error. Counts it every time and logs it once.
    pub fn leave(&self, row: Uuid, error: &(dyn std::error::Error + 'static)) {
        metrics::counter!("urr_job_left_total", "work" => self.work).increment(1);
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() < MAX_LOGGED && logged.insert(row) {
            let error = urr_telemetry::chain(error);
            tracing::error!(work = self.work, %row, error, "row skipped after an error; it is retried in every scan");
        }
    }
}
