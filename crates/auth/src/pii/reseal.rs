//! Moves personal data to the current key, and checks at start that every key is there.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use urr_db::{Tx, transaction};
use urr_jobs::{BoxError, Outcome, Reconciler};

use super::store;
use crate::{
    accounts::store::{self as accounts, Personal},
    identity, second_factor,
    service::Service,
    trouble::Trouble,
};

/// Accounts one run seals anew, in one transaction: about 100 rows of 500 bytes.
const BATCH: u32 = 100;

/// The reconciler behind a change of keys.
pub(crate) struct Reseal(pub(crate) Arc<Service>);

#[async_trait]
impl Reconciler for Reseal {
    fn name(&self) -> &'static str {
        "auth.reseal"
    }

    fn period(&self) -> Duration {
        Duration::from_mins(10)
    }

    async fn run(&self) -> Result<Outcome, BoxError> {
        let (accounts, identities) = (self.0.reseal().await?, self.0.reseal_identities().await?);
        let done = accounts.max(identities).max(self.0.reseal_second_factors().await?);
        if done > 0 {
            tracing::info!(
                rows = done,
                key = self.0.vault.key(),
                "personal data was sealed with the current key"
            );
        }
        Ok(Outcome::batch(done, u64::from(BATCH)))
    }
}

impl Service {
    /// Seals a batch of accounts with the current key. Answers with how many there were.
    pub(crate) async fn reseal(&self) -> Result<u64, Trouble> {
        let (vault, now) = (&self.vault, self.clock.now());
        transaction!(self.db, "auth.reseal", async |tx: &mut Tx<'_>| {
            let stale = store::stale(tx, vault.key(), BATCH).await?;
            for id in &stale {
                // Locked, so that a change its owner makes meanwhile is not undone.
                let Some(found) = accounts::lock(vault, tx, *id).await? else { continue };
                let personal = Personal::seal(vault, &self.ids, &found.account);
                store::reseal(tx, *id, &personal, vault.key(), now).await?;
            }
            Ok::<_, Trouble>(stale.len() as u64)
        })
    }

    /// The same for who the owners of accounts are.
    pub(crate) async fn reseal_identities(&self) -> Result<u64, Trouble> {
        let keys = (&self.vault, &self.ids);
        transaction!(self.db, "auth.reseal_identities", async |tx: &mut Tx<'_>| {
            let stale = identity::store::stale(tx, keys.0.key(), BATCH).await?;
            for id in &stale {
                accounts::lock(keys.0, tx, *id).await?;
                identity::store::reseal(keys, tx, *id).await?;
            }
            Ok::<_, Trouble>(stale.len() as u64)
        })
    }

    /// The same for the secrets of second factors.
    pub(crate) async fn reseal_second_factors(&self) -> Result<u64, Trouble> {
        let keys = (&self.vault, &self.ids);
        transaction!(self.db, "auth.reseal_second_factors", async |tx: &mut Tx<'_>| {
            let stale = second_factor::store::stale(tx, keys.0.key(), BATCH).await?;
            for id in &stale {
                accounts::lock(keys.0, tx, *id).await?;
                second_factor::store::reseal(keys, tx, *id).await?;
            }
            Ok::<_, Trouble>(stale.len() as u64)
        })
    }

    /// Whether the configured keys fit what is in the database.
    pub(crate) async fn check_keys(&self) -> Result<(), WrongKeys> {
        let fingerprint = self.vault.index("fingerprint", "of the index key");
        let (known, keys) = transaction!(self.db, "auth.check_keys", async |tx: &mut Tx<'_>| {
            let known = store::fact(tx, "index_key", &fingerprint).await?;
            Ok::<_, urr_db::Error>((known, store::keys(tx).await?))
        })?;
        if known != fingerprint {
            return Err(WrongKeys::Index);
        }
        match keys.into_iter().find(|key| !self.vault.knows(key)) {
            Some(plain) if plain.is_empty() => Err(WrongKeys::Plain),
            Some(missing) => Err(WrongKeys::Missing(missing)),
            None => Ok(()),
        }
    }
}

/// The configured keys do not fit the database. Going on would lock everybody out, or make second accounts.
#[derive(Debug, thiserror::Error)]
pub enum WrongKeys {
    /// Accounts could not be found any more.
    #[error("the key of the blind index is not the one that the accounts were made with")]
    Index,
    /// Accounts could not be read any more.
    #[error("personal data is sealed with the key {0:?}, which is not configured")]
    Missing(String),
    /// Somebody could put accounts there that no key sealed.
    #[error(
        "personal data was written before there were keys: set auth.pii_seal_plain = true until \
         everything is sealed, as docs/operations.md says"
    )]
    Plain,
    /// The database did not answer.
    #[error("the keys could not be compared with the database")]
    Db(#[from] urr_db::Error),
}
