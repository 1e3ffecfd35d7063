//! Throttling of code guessing, with counters separate from those of passwords: a right password
//! does not reset wrong codes.

use urr_contracts::auth::{Error, LoginAttempt, LoginFailure, LoginMethod, Origin};
use urr_db::{Tx, transaction};
use urr_kernel::UserId;

use crate::{
    Failure,
    lockout::{self, Attempt},
    service::Service,
    sessions::{self, rules::network},
};

/// A code that was counted before it is compared.
pub(super) struct Tried {
    user: UserId,
    origin: Origin,
    method: LoginMethod,
    attempt: Attempt,
}

impl Tried {
    /// Counts a code, per account and per network. A network has its own counter only if all
    /// factors were verified there before. Otherwise an attacker with access to the mailbox could
    /// reset the password from one network after another and guess from each.
    pub(super) async fn begin(
        service: &Service,
        user: UserId,
        origin: &Origin,
        method: LoginMethod,
    ) -> Result<Self, Failure> {
        let known = match network(&origin.address) {
            None => false,
            Some(network) => {
                let known = service.db.read("auth.second_factor.known", async |tx: &mut Tx<'_>| {
                    Ok::<_, Failure>(sessions::store::is_known_in_full(tx, user, network).await?)
                });
                known.await?
            }
        };
        // No e-mail address contains a space, so this key differs from every password counter.
        let attempt = Attempt::begin(service, &format!("second factor {user}"), origin, known).await?;
        Ok(Self { user, origin: origin.clone(), method, attempt })
    }

    /// The code was right: resets the counter, in the transaction that used the code.
    pub(super) async fn forgive(&self, tx: &mut Tx<'_>) -> Result<(), Failure> {
        Ok(lockout::store::clear(tx, &self.attempt.key).await?)
    }

    /// After the transaction: records a wrong code in the owner's history. Other errors are no
    /// guesses.
    pub(super) async fn settle<T>(
        self,
        service: &Service,
        outcome: Result<T, Failure>,
    ) -> Result<T, Failure> {
        match &outcome {
            Ok(_) => self.attempt.forgive_network(service),
            Err(Failure::Refused(Error::WrongCode)) => self.note(service).await?,
            Err(_) => self.attempt.take_back(service).await?,
        }
        outcome
    }

    async fn note(&self, service: &Service) -> Result<(), Failure> {
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
