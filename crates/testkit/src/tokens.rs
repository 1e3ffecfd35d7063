//! Access tokens for a crowd: ten thousand runs of `urr token` would take minutes.

use urr_kernel::{Clock, Ids, Role, UserId};
use urr_passes::{
    Secret,
    access::{self, Access, LIFETIME, Signer},
};

/// Makes access tokens of an installation whose `security.secret` is known.
#[derive(Debug)]
pub struct AccessTokens {
    signer: Signer,
    clock: Clock,
    ids: Ids,
}

impl AccessTokens {
    /// # Panics
    /// When the secret is too short to be one.
    pub fn new(secret: &str) -> Self {
        let clock = Clock::system();
        let secret = Secret::new(secret).expect("a test knows how long a secret is");
        let ids = Ids::random(clock.clone());
        Self { signer: Signer::new(access::key(&secret), LIFETIME), clock, ids }
    }

    /// A user nobody has met before, and their token.
    pub fn somebody(&self) -> (UserId, String) {
        let user = self.ids.next();
        (user, self.of(user, Role::User))
    }

    /// The token of a user.
    pub fn of(&self, user: UserId, role: Role) -> String {
        let access = Access { user, role, email: None, session: self.ids.next() };
        self.signer.sign(&access, self.ids.next(), self.clock.now())
    }
}
