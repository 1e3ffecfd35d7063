//! Re-encrypts personal data with the current key, and checks at start that all keys are present.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use urr_db::{Sql, Tx, transaction};
use urr_jobs::{BoxError, Outcome, Reconciler, Scan};
use urr_kernel::UserId;
use uuid::Uuid;

use super::{
    Unreadable,
    store::{self, Stale},
};
use crate::{
    Failure,
    accounts::store::{self as accounts, Personal},
    identity,
    scans::Scans,
    second_factor,
    service::Service,
};

/// Rows of each kind per run, in one transaction: about 100 rows of 500 bytes.
pub(crate) const BATCH: u32 = 100;

/// The reconciler that re-encrypts after a key change.
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
        let mut all = Outcome::default();
        for part in Part::ALL {
            let Outcome { done, more } = self.0.reseal(part, BATCH).await?;
            all = Outcome { done: all.done + done, more: all.more || more };
        }
        if all.done > 0 {
            tracing::info!(
                rows = all.done,
                key = self.0.vault.key(),
                "re-encrypted personal data with the current key"
            );
        }
        Ok(all)
    }
}

/// The kinds of encrypted data.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Accounts,
    /// Identities.
    Identities,
    /// Secrets of second factors.
    SecondFactors,
}

impl Part {
    pub(crate) const ALL: [Self; 3] = [Self::Accounts, Self::Identities, Self::SecondFactors];

    /// The transaction's name and the statement that finds its rows.
    const fn parts(self) -> (&'static str, &'static Sql) {
        match self {
            Self::Accounts => ("auth.reseal", &store::STALE),
            Self::Identities => ("auth.reseal_identities", &identity::store::STALE),
            Self::SecondFactors => ("auth.reseal_second_factors", &second_factor::store::STALE),
        }
    }

    const fn scan(self, scans: &Scans) -> &Scan<Stale> {
        match self {
            Self::Accounts => &scans.accounts,
            Self::Identities => &scans.identities,
            Self::SecondFactors => &scans.second_factors,
        }
    }
}

impl Service {
    /// Re-encrypts a batch. Unreadable rows are skipped, and the next batch starts after them.
    pub(crate) async fn reseal(&self, part: Part, limit: u32) -> Result<Outcome, Failure> {
        let (scan, (name, sql)) = (part.scan(&self.scans), part.parts());
        let after = scan.at().unwrap_or((String::new(), UserId::from_uuid(Uuid::nil())));
        let (found, left) = transaction!(self.db, name, async |tx: &mut Tx<'_>| {
            let (found, mut left) =
                (store::stale(tx, sql, self.vault.key(), &after, limit).await?, Vec::new());
            for (_, id) in &found {
                match self.reseal_one(part, tx, *id).await {
                    Err(unreadable) if unreadable.cause::<Unreadable>().is_some() => {
                        left.push((*id, unreadable));
                    }
                    outcome => outcome?,
                }
            }
            Ok::<_, Failure>((found, left))
        })?;
        for (id, unreadable) in &left {
            scan.leave(id.as_uuid(), unreadable);
        }
        let more = found.len() as u64 >= u64::from(limit);
        match found.last() {
            Some(last) if more => scan.pass(last),
            _ => scan.begin_anew(),
        }
        Ok(Outcome { done: (found.len() - left.len()) as u64, more })
    }

    async fn reseal_one(&self, part: Part, tx: &mut Tx<'_>, id: UserId) -> Result<(), Failure> {
        let keys = (&self.vault, &self.ids);
        // Locked, so that a concurrent change by the owner is not overwritten.
        let locked = match accounts::lock(keys.0, tx, id).await {
            // A damaged account is locked nevertheless.
            Err(failure) if failure.cause::<Unreadable>().is_some() && !matches!(part, Part::Accounts) => {
                None
            }
            locked => locked?,
        };
        match (part, locked) {
            (Part::Accounts, None) => Ok(()),
            (Part::Accounts, Some(found)) => {
                let personal = Personal::seal(keys.0, keys.1, &found.account);
                Ok(store::reseal(tx, id, &personal, keys.0.key(), self.clock.now()).await?)
            }
            (Part::Identities, _) => identity::store::reseal(keys, tx, id).await,
            (Part::SecondFactors, _) => second_factor::store::reseal(keys, tx, id).await,
        }
    }

    /// Returns an error unless the configured keys match the database.
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

/// The configured keys do not match the database. Continuing would lock all users out or create
/// duplicate accounts.
#[derive(Debug, thiserror::Error)]
pub enum WrongKeys {
    /// Existing accounts could not be found.
    #[error("auth.index_key differs from the one that the accounts were created with")]
    Index,
    /// Existing accounts could not be decrypted.
    #[error("personal data is encrypted with the key {0:?}, which is not in auth.pii_keys")]
    Missing(String),
    /// Unencrypted accounts could be inserted by anyone with access to the database.
    #[error(
        "personal data was written before there were keys: set auth.pii_seal_plain = true until \
         all of it is encrypted; see *Secrets* in docs/operations.md"
    )]
    Plain,
    /// The database did not answer.
    #[error("cannot check the keys: the database failed")]
    Db(#[from] urr_db::Error),
}

#[cfg(test)]
mod tests;
