//! Cursors of the background jobs that scan tables.

use urr_jobs::Scan;
use urr_kernel::{Timestamp, UserId};

/// All cursors.
pub(crate) struct Scans {
    /// Personal data to re-encrypt, by key id and account.
    pub(crate) accounts: Scan<(String, UserId)>,
    pub(crate) identities: Scan<(String, UserId)>,
    pub(crate) second_factors: Scan<(String, UserId)>,
    /// Accounts to erase, by closing time.
    pub(crate) closed: Scan<(Timestamp, UserId)>,
}

impl Scans {
    pub(crate) const fn new() -> Self {
        Self {
            accounts: Scan::new("reseal_accounts"),
            identities: Scan::new("reseal_identities"),
            second_factors: Scan::new("reseal_second_factors"),
            closed: Scan::new("erase"),
        }
    }
}
