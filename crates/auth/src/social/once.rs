//! Single-use state tokens and credentials. Their use is recorded until they expire.

use urr_contracts::auth::Error;
use urr_db::Tx;
use urr_kernel::Timestamp;
use uuid::Uuid;

use super::port::Credential;
use crate::{Failure, lockout, service::Service};

/// A single-use proof, and the error for a second use.
pub(super) struct Once {
    key: Vec<u8>,
    until: Timestamp,
    again: Error,
}

impl Once {
    /// A state token that expires at `expires`.
    pub(super) fn state_token(service: &Service, id: Uuid, expires: Timestamp, again: Error) -> Self {
        Self { key: service.vault.index("slip", &id.to_string()), until: expires, again }
    }

    /// An ID token sent by a browser.
    pub(super) fn credential(service: &Service, credential: &Credential) -> Self {
        let key = service.vault.index("credential", &credential.digest);
        Self { key, until: credential.good_until, again: Error::CredentialUsed }
    }

    /// Uses the proof in the given transaction; a rollback keeps it unused.
    pub(super) async fn spend(&self, service: &Service, tx: &mut Tx<'_>) -> Result<(), Failure> {
        let fresh = lockout::store::once(tx, &self.key, service.clock.now(), self.until).await?;
        if fresh { Ok(()) } else { Err(self.again.clone().into()) }
    }
}
