//! Guessing passwords gets slower with every wrong one.
//!
//! An attempt is counted before its password is compared and forgiven if it was right, so attempts that come at once cannot
//! slip through together. The count is kept per address of an account, whether the account exists or not, and per
//! network: of a network each process counts attempts for itself before they are made, and all of them together once they have
//! failed, so that right passwords write nothing about it. No wait is longer than a quarter of an hour, and a network from which the owner signed in before has a count of
//! its own: whoever fails elsewhere cannot lock the owner out.

pub(crate) mod brake;
pub(crate) mod limit;
mod shared;
pub(crate) mod store;

use std::{net::IpAddr, time::Duration};

use urr_contracts::auth::{Error, Origin};
use urr_db::{Tx, transaction};

use crate::{
    service::Service,
    sessions::rules::{FORGET_TRIES_AFTER, FREE_TRIES, network, wait_after},
    trouble::Trouble,
};

/// One attempt that was counted and whose outcome is not known yet.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) key: Vec<u8>,
    network: Option<IpAddr>,
}

impl Attempt {
    /// Counts an attempt on the account of this address. `known`: its owner signed in from there before.
    pub(crate) async fn begin(
        service: &Service,
        email: &str,
        origin: &Origin,
        known: bool,
    ) -> Result<Self, Trouble> {
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

    async fn charge(&self, service: &Service) -> Result<(), Trouble> {
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

    /// The password was wrong: what is noted of that, in the transaction that notes the rest. Of the network every process is told.
    pub(crate) async fn fail(&self, service: &Service, tx: &mut Tx<'_>) -> Result<(), Trouble> {
        let now = service.clock.now();
        store::failed(tx, &self.key, now).await?;
        match self.network {
            Some(network) => shared::fail(service, tx, network, now).await,
            None => Ok(()),
        }
    }

    /// The password was never compared: it does not count.
    pub(crate) async fn take_back(&self, service: &Service) -> Result<(), Trouble> {
        self.forgive_network(service);
        transaction!(service.db, "auth.take_back", async |tx: &mut Tx<'_>| {
            Ok(store::take_back(tx, &self.key).await?)
        })
    }

    /// The password was right: call after the sign-in is committed.
    pub(crate) fn forgive_network(&self, service: &Service) {
        if let Some(network) = self.network {
            service.brake.take_back(network);
        }
    }
}

/// Slows down a network from which rubbish comes: an attempt that is refused counts, one that fails for another reason does not.
pub(crate) async fn braked<T>(
    service: &Service,
    origin: &Origin,
    attempt: impl AsyncFnOnce() -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    let Some(network) = network(&origin.address) else { return attempt().await };
    service.brake.charge(network).map_err(refuse)?;
    let outcome = attempt().await;
    if !matches!(outcome, Err(Trouble::Refused(_))) {
        service.brake.take_back(network);
    }
    outcome
}

/// Refuses a registration while its network has to wait.
pub(crate) fn check_registration(service: &Service, origin: &Origin) -> Result<(), Trouble> {
    network(&origin.address).map_or(Ok(()), |network| service.brake.check(network).map_err(refuse))
}

/// Counts a registration with a taken address, as a wrong password is counted. The answer says that the address has an account, so
/// a network that asks for many of them has to wait. Registrations that succeed cost nothing: at an on-sale many come at once from
/// one carrier's address.
pub(crate) fn count_taken_address(service: &Service, origin: &Origin) {
    if let Some(network) = network(&origin.address) {
        // A network that waits already is not counted twice.
        let _waits = service.brake.charge(network);
    }
}

/// What attempts from anywhere are counted under.
pub(crate) fn key_of_strangers(service: &Service, email: &str) -> Vec<u8> {
    service.vault.index("login", email)
}

fn refuse(wait: Duration) -> Trouble {
    let wait_secs = (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1);
    Error::TooManyAttempts { wait_secs }.into()
}
