//! Cursors of the background jobs that scan tables in rounds.

use urr_jobs::Round;
use urr_kernel::{Timestamp, UserId};

/// All cursors.
pub(crate) struct Rounds {
    /// Personal data to re-encrypt, by key id and account.
    pub(crate) accounts: Round<(String, UserId)>,
    pub(crate) identities: Round<(String, UserId)>,
    pub(crate) second_factors: Round<(String, UserId)>,
    /// Accounts to erase, by closing time.
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
