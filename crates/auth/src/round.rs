//! Which background work of this domain goes round.

use urr_jobs::Round;
use urr_kernel::{Timestamp, UserId};

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
