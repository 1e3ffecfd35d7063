//! Background work that goes past what it cannot do: one damaged row must not keep it from all the others.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use urr_kernel::{Timestamp, UserId};

use crate::trouble::Trouble;

/// Accounts of one kind of work that are remembered as told of, at about 20 bytes each. Beyond them they are only counted.
const MAX_TOLD: usize = 10_000;

/// How far a kind of work has come, and which accounts it had to leave as they are. In memory: another process begins anew.
pub(crate) struct Round<K> {
    work: &'static str,
    at: Mutex<Option<K>>,
    told: Mutex<BTreeSet<UserId>>,
}

/// Everything that goes round.
pub(crate) struct Rounds {
    /// Personal data to seal anew, by its key and account.
    pub(crate) accounts: Round<(String, UserId)>,
    pub(crate) identities: Round<(String, UserId)>,
    pub(crate) second_factors: Round<(String, UserId)>,
    /// Accounts to erase, by when they were closed.
    pub(crate) closed: Round<(Timestamp, UserId)>,
}

impl Rounds {
    pub(crate) const fn new() -> Self {
        Self {
            accounts: Round::new("reseal_accounts"),
            identities: Round::new("reseal_identities"),
            second_factors: Round::new("reseal_second_factors"),
            closed: Round::new("erase"),
        }
    }
}

impl<K: Clone> Round<K> {
    const fn new(work: &'static str) -> Self {
        Self { work, at: Mutex::new(None), told: Mutex::new(BTreeSet::new()) }
    }

    /// Behind which row to go on. `None`: with the first.
    pub(crate) fn at(&self) -> Option<K> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The next run goes on behind this row, whatever becomes of it.
    pub(crate) fn pass(&self, row: &K) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(row.clone());
    }

    /// All rows were looked at: the next run begins with the first again, and with what was left.
    pub(crate) fn begin_anew(&self) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// An account was left as it is. Counted each time, told once.
    pub(crate) fn leave(&self, account: UserId, trouble: &Trouble) {
        metrics::counter!("urr_auth_left_total", "work" => self.work).increment(1);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < MAX_TOLD && told.insert(account) {
            let error = urr_telemetry::chain(trouble);
            tracing::error!(work = self.work, %account, error, "an account is left as it is; the others go on");
        }
    }
}
