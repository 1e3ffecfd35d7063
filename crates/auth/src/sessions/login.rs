//! Sign-in with e-mail address and password.

use urr_contracts::auth::{Error, Login, LoginAttempt, LoginFailure, LoginMethod, LoginOutcome, Origin};
use urr_db::{Tx, transaction};
use urr_kernel::UserId;

use super::{
    open,
    rules::{clean, network},
    store,
};
use crate::{
    Failure,
    accounts::{self, rules::invalid, store::Stored},
    lockout::{self, Attempt},
    passwords::{self, HashPermit, NoHash, Verdict},
    service::Service,
};

/// Signs in. Unknown accounts, accounts without a password and wrong passwords cost the same work
/// and get the same response.
pub(crate) async fn login(service: &Service, request: &Login) -> Result<LoginOutcome, Failure> {
    let email = accounts::rules::email(&request.email)?;
    if request.password.expose().is_empty() {
        return Err(invalid("password", "Please enter your password").into());
    }
    let permit = service.pool.enter()?;
    let origin = clean(&request.origin);
    let found = service.db.read("auth.login.find", async |tx: &mut Tx<'_>| {
        accounts::store::by_email(&service.vault, tx, &email).await
    });
    let stored = found.await?;
    let claim = Claim { email: &email, stored: stored.as_ref(), origin: &origin };
    let proof =
        claim.prove(service, permit, request.password.expose()).await.inspect_err(|_| count("refused"))?;
    let entry = transaction!(service.db, "auth.login", async |tx: &mut Tx<'_>| {
        let stored = proof.accept(service, tx).await?;
        open(service, tx, &stored.account, LoginMethod::Password, &origin).await
    })?;
    proof.settle(service);
    let outcome = entry.settle(service);
    count(if matches!(outcome, LoginOutcome::SignedIn(_)) { "signed_in" } else { "challenged" });
    Ok(outcome)
}

fn count(outcome: &'static str) {
    metrics::counter!("urr_auth_logins_total", "method" => "password", "outcome" => outcome).increment(1);
}

/// A claim to own an account, with a password.
pub(crate) struct Claim<'c> {
    pub(crate) email: &'c str,
    /// `None`: there is no such account, which must not be observable.
    pub(crate) stored: Option<&'c Stored>,
    pub(crate) origin: &'c Origin,
}

/// Proof that the password was right.
pub(crate) struct Proof {
    account: UserId,
    /// The hash that was compared. It must still be the account's when the proof is used.
    hash: String,
    upgrade: Option<String>,
    attempt: Attempt,
}

impl Claim<'_> {
    /// Compares the password in the hashing pool. A wrong one counts as a failed attempt.
    pub(crate) async fn prove(
        &self,
        service: &Service,
        permit: HashPermit<'_>,
        password: &str,
    ) -> Result<Proof, Failure> {
        if !passwords::rules::is_possible(password) {
            return Err(Error::InvalidCredentials.into());
        }
        let (known, imported) = self.look_around(service).await?;
        let attempt = Attempt::begin(service, self.email, self.origin, known).await?;
        let hash = self.stored.and_then(|stored| stored.password_hash.as_deref());
        let verdict = match permit.verify(password, hash, imported).await {
            Err(NoHash::Busy) => {
                attempt.take_back(service).await?;
                return Err(Error::Busy.into());
            }
            verdict => verdict?,
        };
        if let (Verdict::Right { upgrade }, Some(stored), Some(hash)) = (verdict, self.stored, hash) {
            return Ok(Proof { account: stored.account.id, hash: hash.to_owned(), upgrade, attempt });
        }
        self.note_failure(service, &attempt).await?;
        Err(Error::InvalidCredentials.into())
    }

    /// The same for a signed-in user who confirms a change.
    pub(crate) async fn prove_again(
        &self,
        service: &Service,
        permit: HashPermit<'_>,
        password: &str,
    ) -> Result<Proof, Failure> {
        self.prove(service, permit, password).await.map_err(|trouble| match trouble {
            Failure::Refused(Error::InvalidCredentials) => Error::WrongPassword.into(),
            other => other,
        })
    }

    /// Returns whether the owner signed in from this network before, and the highest imported
    /// bcrypt cost.
    async fn look_around(&self, service: &Service) -> Result<(bool, Option<u32>), Failure> {
        // For an unknown address the query runs with an id that does not exist.
        let (account, network) = (self.account(), network(&self.origin.address));
        let found = service.db.read("auth.login.known", async |tx: &mut Tx<'_>| {
            let known = match network {
                Some(network) => store::is_known(tx, account, network).await?,
                None => false,
            };
            Ok::<_, Failure>((known, accounts::store::imported(tx).await?))
        });
        found.await
    }

    /// Runs the same statements and one commit whether the account exists or not, so that timing
    /// reveals nothing.
    async fn note_failure(&self, service: &Service, attempt: &Attempt) -> Result<(), Failure> {
        let now = service.clock.now();
        transaction!(service.db, "auth.login.failed", async |tx: &mut Tx<'_>| {
            attempt.fail(service, tx).await?;
            let failure = LoginAttempt {
                id: service.ids.next(),
                at: now,
                origin: self.origin.clone(),
                method: LoginMethod::Password,
                failure: Some(LoginFailure::WrongPassword),
            };
            Ok(store::note(tx, self.account(), &failure).await?)
        })
    }

    /// The account's id; for an unknown address, an id that does not exist.
    fn account(&self) -> UserId {
        self.stored.map_or(accounts::NOBODY, |stored| stored.account.id)
    }
}

impl Proof {
    /// Locks the account. Fails if the password changed or the account was closed since the proof.
    pub(crate) async fn accept(&self, service: &Service, tx: &mut Tx<'_>) -> Result<Stored, Failure> {
        let stored = accounts::store::lock(&service.vault, tx, self.account).await?;
        let stored = stored
            .filter(|stored| stored.is_open() && stored.password_hash.as_ref() == Some(&self.hash))
            .ok_or(Error::InvalidCredentials)?;
        if let Some(upgrade) = &self.upgrade {
            accounts::store::set_password(tx, self.account, upgrade, service.clock.now()).await?;
        }
        lockout::store::clear(tx, &self.attempt.key).await?;
        Ok(stored)
    }

    /// After the commit: reverts the network's count in memory.
    pub(crate) fn settle(&self, service: &Service) {
        self.attempt.forgive_network(service);
    }
}
