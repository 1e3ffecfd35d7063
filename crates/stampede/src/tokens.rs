//! Access tokens for a crowd, signed with the secret of the installation under test.

use std::time::Duration;

use anyhow::Context as _;
use urr_kernel::{Clock, Ids, Role, UserId};
use urr_passes::{
    Secret,
    access::{self, Access, Signer},
};

/// Longer than any run, even with a clock a thousand times as fast for half an hour.
const LIFETIME: Duration = Duration::from_hours(24 * 31);

/// Signs access tokens as auth does.
pub(crate) struct Tokens {
    signer: Signer,
    clock: Clock,
    ids: Ids,
}

impl Tokens {
    /// Uses the `security.secret` of the installation.
    pub(crate) fn new(secret: &str, clock: &Clock, ids: &Ids) -> anyhow::Result<Self> {
        let secret = Secret::new(secret).context("security.secret")?;
        let signer = Signer::new(access::key(&secret), LIFETIME);
        Ok(Self { signer, clock: clock.clone(), ids: ids.clone() })
    }

    /// An access token of a user.
    pub(crate) fn of(&self, user: UserId, role: Role) -> String {
        let access = Access { user, role, email: None, session: self.ids.next() };
        self.signer.sign(&access, self.ids.next(), self.clock.now())
    }
}

/// A fresh `security.secret`.
pub(crate) fn random_secret(ids: &Ids) -> String {
    format!("{:032x}{:032x}", u128::from_le_bytes(ids.bytes()), u128::from_le_bytes(ids.bytes()))
}
