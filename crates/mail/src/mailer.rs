//! The transport trait: a mail, and how it is sent.

use std::{fmt, io};

use async_trait::async_trait;
use urr_kernel::Timestamp;
use uuid::Uuid;

/// A mail that is ready to be sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Mail {
    /// The same for every attempt. The `Message-ID` contains it.
    pub id: Uuid,
    /// The recipient's address.
    pub to: String,
    /// One line.
    pub subject: String,
    /// Plain text. It may contain a link that signs its reader in, so `Debug` omits it.
    pub text: String,
    /// When this attempt began.
    pub at: Timestamp,
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, subject, at, .. } = self;
        f.debug_struct("Mail")
            .field("id", id)
            .field("subject", subject)
            .field("at", at)
            .finish_non_exhaustive()
    }
}

/// Why a mail was not sent.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// Another attempt may succeed.
    #[error("the mail could not be sent now")]
    Temporary(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Every attempt would fail.
    #[error("the mail was refused for good")]
    Permanent(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A transport. After a crash or a lost reply the same mail is sent again with the same id.
#[async_trait]
pub trait Mailer: Send + Sync + 'static {
    /// Sends one mail. The implementation limits the time this takes.
    async fn send(&self, mail: Mail) -> Result<(), MailError>;

    /// Deletes the copies this transport keeps of these mails. Transports that keep none do
    /// nothing.
    async fn forget(&self, _mails: &[Uuid]) -> io::Result<()> {
        Ok(())
    }

    /// Deletes the copies this transport keeps of mails sent before `then`.
    async fn forget_before(&self, _then: Timestamp) -> io::Result<()> {
        Ok(())
    }
}
