//! What is good once: slips and credentials. That one was used is kept until it would be of no use anyway.

use urr_contracts::auth::Error;
use urr_db::Tx;
use urr_kernel::Timestamp;
use uuid::Uuid;

use super::port::Credential;
use crate::{lockout, service::Service, trouble::Trouble};

/// Something that is good once, and what whoever brings it again is told.
pub(super) struct Once {
    key: Vec<u8>,
    until: Timestamp,
    again: Error,
}

impl Once {
    /// A slip that is good until `expires`.
    pub(super) fn slip(service: &Service, id: Uuid, expires: Timestamp, again: Error) -> Self {
        Self { key: service.vault.index("slip", &id.to_string()), until: expires, again }
    }

    /// An ID token that a browser brought.
    pub(super) fn credential(service: &Service, credential: &Credential) -> Self {
        let key = service.vault.index("credential", &credential.digest);
        Self { key, until: credential.good_until, again: Error::CredentialUsed }
    }

    /// Uses it, together with what it is used for: what is undone did not use it up.
    pub(super) async fn spend(&self, service: &Service, tx: &mut Tx<'_>) -> Result<(), Trouble> {
        let fresh = lockout::store::once(tx, &self.key, service.clock.now(), self.until).await?;
        if fresh { Ok(()) } else { Err(self.again.clone().into()) }
    }
}
