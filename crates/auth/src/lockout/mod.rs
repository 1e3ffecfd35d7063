//! Throttling of password guessing.
//!
//! An attempt is counted before its password is compared and reverted if it was right, so
//! concurrent attempts cannot bypass the limit. Attempts are counted per account address, whether
//! the account exists or not, and per network. For networks, each process counts attempts in
//! advance in memory, and failures are counted in the database for all processes, so a correct
//! password writes nothing about its network. The maximum wait is 15 minutes. A network from which
//! the owner signed in before has its own counter, so failures from elsewhere cannot lock the owner
//! out.

pub(crate) mod brake;
pub(crate) mod limit;
mod shared;
pub(crate) mod store;

use std::{net::IpAddr, time::Duration};

use urr_contracts::auth::{Error, Origin};
use urr_db::{Tx, transaction};

use crate::{
    Failure,
    service::Service,
    sessions::rules::{FORGET_TRIES_AFTER, FREE_TRIES, network, wait_after},
};

/// An attempt that was counted and whose outcome is not known yet.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) key: Vec<u8>,
    network: Option<IpAddr>,
}

impl Attempt {
    /// Counts an attempt on the account of this address. `known`: the owner signed in from this
    /// network before.
    pub(crate) async fn begin(
        service: &Service,
        email: &str,
        origin: &Origin,
        known: bool,
    ) -> Result<Self, Failure> {
        let network = network(&origin.address);
        let key = match network {
            Some(network) if known => service.vault.index("login from", &format!("{email} {network}")),
            _ => key_of_strangers(service, email),
        };
        limit::count(service, &key).await?;
        let attempt = Self { key, network };
        if let Some(network) = network {
            service.brake.charge(network).map_err(refuse)?;
        }
        if let Err(refused) = attempt.charge(service).await {
            attempt.forgive_network(service);
            return Err(refused);
        }
        Ok(attempt)
    }

    async fn charge(&self, service: &Service) -> Result<(), Failure> {
        let now = service.clock.now();
        transaction!(service.db, "auth.charge", async |tx: &mut Tx<'_>| {
            if let Some(network) = self.network {
                shared::check(service, tx, network, now).await?;
            }
            let forget_before = now.before(FORGET_TRIES_AFTER);
            let Some(tries) = store::charge(tx, &self.key, now, forget_before).await? else {
                let until = store::locked_until(tx, &self.key).await?.unwrap_or(now);
                return Err(refuse(until.since(now)));
            };
            if let Some(wait) = wait_after(tries, FREE_TRIES) {
                store::lock(tx, &self.key, now.after(wait)).await?;
            }
            Ok(())
        })
    }

    /// Records a wrong password in the given transaction, for all processes.
    pub(crate) async fn fail(&self, service: &Service, tx: &mut Tx<'_>) -> Result<(), Failure> {
        let now = service.clock.now();
        store::failed(tx, &self.key, now).await?;
        match self.network {
            Some(network) => shared::fail(service, tx, network, now).await,
            None => Ok(()),
        }
    }

    /// The password was never compared: reverts the count.
    pub(crate) async fn take_back(&self, service: &Service) -> Result<(), Failure> {
        self.forgive_network(service);
        transaction!(service.db, "auth.take_back", async |tx: &mut Tx<'_>| {
            Ok(store::take_back(tx, &self.key).await?)
        })
    }

    /// The password was right. Call after the sign-in is committed.
    pub(crate) fn forgive_network(&self, service: &Service) {
        if let Some(network) = self.network {
            service.brake.take_back(network);
        }
    }
}

/// Throttles a network that sends invalid requests: a refused attempt counts, one that fails for
/// another reason does not.
pub(crate) async fn braked<T>(
    service: &Service,
    origin: &Origin,
    attempt: impl AsyncFnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(network) = network(&origin.address) else { return attempt().await };
    service.brake.charge(network).map_err(refuse)?;
    let outcome = attempt().await;
    if !matches!(outcome, Err(Failure::Refused(_))) {
        service.brake.take_back(network);
    }
    outcome
}

/// Fails while the network of a registration is throttled.
pub(crate) fn check_registration(service: &Service, origin: &Origin) -> Result<(), Failure> {
    network(&origin.address).map_or(Ok(()), |network| service.brake.check(network).map_err(refuse))
}

/// Counts a registration with a registered address like a wrong password. The response reveals that
/// the address has an account, so a network that tries many is throttled. Successful registrations
/// are free: at an on-sale many come from one carrier's address.
pub(crate) fn count_taken_address(service: &Service, origin: &Origin) {
    if let Some(network) = network(&origin.address) {
        // A network that is already throttled is not counted twice.
        let _waits = service.brake.charge(network);
    }
}

/// The key under which attempts from unknown networks are counted.
pub(crate) fn key_of_strangers(service: &Service, email: &str) -> Vec<u8> {
    service.vault.index("login", email)
}

fn refuse(wait: Duration) -> Failure {
    let wait_secs = (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1);
    Error::TooManyAttempts { wait_secs }.into()
}

#[cfg(test)]
mod tests;
