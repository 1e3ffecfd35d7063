//! Guessing codes gets slower, as guessing passwords does, and is counted apart: a right password forgives no wrong code.

use urr_contracts::auth::{Error, LoginAttempt, LoginFailure, LoginMethod, Origin};
use urr_db::{Tx, transaction};
use urr_kernel::UserId;

use crate::{
    lockout::{self, Attempt},
    service::Service,
    sessions::{self, rules::network},
    trouble::Trouble,
};

/// A code that was counted before it is compared.
pub(super) struct Tried {
    user: UserId,
    origin: Origin,
    method: LoginMethod,
    attempt: Attempt,
}

impl Tried {
    /// Counts a code for an account, per account and per network. A network has a count of its own if every factor was shown there
    /// before: whoever reads the mailbox could otherwise set new passwords from one network after another and guess from each.
    pub(super) async fn begin(
        service: &Service,
        user: UserId,
        origin: &Origin,
        method: LoginMethod,
    ) -> Result<Self, Trouble> {
        let known = match network(&origin.address) {
            None => false,
            Some(network) => {
                let known = service.db.read("auth.second_factor.known", async |tx: &mut Tx<'_>| {
                    Ok::<_, Trouble>(sessions::store::is_known_in_full(tx, user, network).await?)
                });
                known.await?
            }
        };
        // No address has a space in it, so this is counted apart from passwords.
        let attempt = Attempt::begin(service, &format!("second factor {user}"), origin, known).await?;
        Ok(Self { user, origin: origin.clone(), method, attempt })
    }

    /// The code was right: forgets the wrong ones, in the transaction that used it.
    pub(super) async fn forgive(&self, tx: &mut Tx<'_>) -> Result<(), Trouble> {
        Ok(lockout::store::clear(tx, &self.attempt.key).await?)
    }

    /// After the transaction: a wrong code is noted for the owner to see; whatever else went wrong was no guess.
    pub(super) async fn settle<T>(
        self,
        service: &Service,
        outcome: Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        match &outcome {
            Ok(_) => self.attempt.forgive_network(service),
            Err(Trouble::Refused(Error::WrongCode)) => self.note(service).await?,
            Err(_) => self.attempt.take_back(service).await?,
        }
        outcome
    }

    async fn note(&self, service: &Service) -> Result<(), Trouble> {
        let now = service.clock.now();
        transaction!(service.db, "auth.second_factor.failed", async |tx: &mut Tx<'_>| {
            self.attempt.fail(service, tx).await?;
            let failure = LoginAttempt {
                id: service.ids.next(),
                at: now,
                origin: self.origin.clone(),
                method: self.method,
                failure: Some(LoginFailure::WrongCode),
            };
            Ok(sessions::store::note(tx, self.user, &failure).await?)
        })
    }
}
