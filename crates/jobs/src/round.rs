//! Background work that goes past what it cannot do: one damaged row must not keep it from all the others.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use uuid::Uuid;

/// Rows of one kind of work that are remembered as told of, at about 20 bytes each. Beyond them they are only counted.
const MAX_TOLD: usize = 10_000;

/// How far a kind of work has come, and which rows it had to leave as they are. In memory: another process begins anew.
#[derive(Debug)]
pub struct Round<K> {
    work: &'static str,
    at: Mutex<Option<K>>,
    told: Mutex<BTreeSet<Uuid>>,
}

impl<K: Clone> Round<K> {
    /// Work that has not begun.
    pub const fn new(work: &'static str) -> Self {
        Self { work, at: Mutex::new(None), told: Mutex::new(BTreeSet::new()) }
    }

    /// Behind which row to go on. `None`: with the first.
    pub fn at(&self) -> Option<K> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The next run goes on behind this row, whatever becomes of it.
    pub fn pass(&self, row: &K) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(row.clone());
    }

    /// All rows were looked at: the next run begins with the first again, and with what was left.
    pub fn begin_anew(&self) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// A row was left as it is. Counted each time, told once.
    pub fn leave(&self, row: Uuid, error: &(dyn std::error::Error + 'static)) {
        metrics::counter!("urr_job_left_total", "work" => self.work).increment(1);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < MAX_TOLD && told.insert(row) {
            let error = urr_telemetry::chain(error);
            tracing::error!(work = self.work, %row, error, "a row is left as it is; the others go on");
        }
    }
}
