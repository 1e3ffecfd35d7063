//! Access tokens for load tests: ten thousand runs of `urr token` would take minutes.

use urr_kernel::{Clock, Ids, Role, UserId};
use urr_passes::{
    Secret,
    access::{self, Access, LIFETIME, Signer},
};

/// Signs access tokens for an installation whose `security.secret` is known.
#[derive(Debug)]
pub struct AccessTokens {
    signer: Signer,
    clock: Clock,
    ids: Ids,
}

impl AccessTokens {
    /// # Panics
    ///
    /// If the secret is too weak.
    pub fn new(secret: &str) -> Self {
        let clock = Clock::system();
        let secret = Secret::new(secret).expect("the secret is strong enough");
        let ids = Ids::random(clock.clone());
        Self { signer: Signer::new(access::key(&secret), LIFETIME), clock, ids }
    }

    /// A new user and a token for it.
    pub fn somebody(&self) -> (UserId, String) {
        let user = self.ids.next();
        (user, self.of(user, Role::User))
    }

    /// A token for a user.
    pub fn of(&self, user: UserId, role: Role) -> String {
        let access = Access { user, role, email: None, session: self.ids.next() };
        self.signer.sign(&access, self.ids.next(), self.clock.now())
    }
}
