//! Queueing mails in a domain's transaction, and deleting them later.

use std::{io, sync::Arc, time::Duration};

use serde_json::Value;
use urr_db::{Db, Error, Tx, transaction};
use urr_jobs::Nudge;
use urr_kernel::{Clock, Failure, Ids, Refusal};
use uuid::Uuid;

use crate::{Mailer, store};

/// Ended mails are stored this long, for operators.
const KEPT: Duration = Duration::from_hours(30 * 24);

/// Rows that one sweep deletes: a few milliseconds of work.
pub(crate) const SWEEP_BATCH: u32 = 1_000;

/// Maximum number of mails of one recipient whose copies are deleted in one call.
const MAX_OF_RECIPIENT: u32 = 10_000;

/// A mail to be sent once the transaction commits. It contains neither address nor text, so that
/// neither is in the database: [`Compose`](crate::Compose) creates both when the mail is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMail<'a> {
    /// Which of the domain's templates, such as `reset_password`.
    pub kind: &'a str,
    /// The recipient's id, such as an account. With the nil id nothing is queued, at the same cost,
    /// so that the response time does not reveal whether an address is known.
    pub recipient: Uuid,
    /// Queueing a second mail with the same key has no effect while the first is stored (until 30
    /// days after it ended). `None`: always a new mail.
    pub key: Option<String>,
    /// The values of the template, at most 16 kB of JSON. No personal data: it is not encrypted.
    pub data: Value,
    /// Sent before others, because the recipient is waiting for it.
    pub urgent: bool,
}

impl<'a> NewMail<'a> {
    /// A mail without key and data, not urgent.
    pub const fn new(kind: &'a str, recipient: Uuid) -> Self {
        Self { kind, recipient, key: None, data: Value::Null, urgent: false }
    }
}

/// Why copies of mails could not be deleted.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// The database failed.
    #[error(transparent)]
    Db(#[from] Error),
    /// The transport failed.
    #[error("copies of mails cannot be deleted")]
    Copies(#[from] io::Error),
}

impl<E: Refusal> From<ForgetError> for Failure<E> {
    fn from(error: ForgetError) -> Self {
        match error {
            ForgetError::Db(error) => error.into(),
            copies @ ForgetError::Copies(_) => Self::internal(copies),
        }
    }
}

/// The mails of one domain.
#[derive(Clone)]
pub struct Mails {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    ids: Ids,
    pub(crate) mailer: Arc<dyn Mailer>,
    pub(crate) nudge: Nudge,
}

impl Mails {
    /// Queues in `db` and sends with `mailer`.
    pub fn new(db: Db, clock: Clock, ids: Ids, mailer: Arc<dyn Mailer>) -> Self {
        Self { db, clock, ids, mailer, nudge: Nudge::new() }
    }

    /// Queues a mail in the domain's transaction: it is sent if and only if that commits. Returns
    /// `false` if a mail with the same key exists. Call [`Mails::nudge`] after the commit.
    pub async fn queue(&self, tx: &mut Tx<'_>, mail: &NewMail<'_>) -> Result<bool, Error> {
        store::insert(tx, self.ids.next(), mail, self.clock.now()).await
    }

    /// Wakes the sender of this process. Without this call mails are sent within five seconds.
    pub fn nudge(&self) {
        self.nudge.nudge();
    }

    /// Deletes the transport's copies of a recipient's mails. Call it before [`erase`], which
    /// deletes the rows with the ids of these mails.
    pub async fn forget(&self, recipient: Uuid) -> Result<(), ForgetError> {
        let mails = self.db.read("mail.of_recipient", async |tx: &mut Tx<'_>| {
            let params: &[&dyn urr_kernel::Scalar] = &[&recipient, &MAX_OF_RECIPIENT];
            tx.all(&store::OF_RECIPIENT, params, |row| row.get::<Uuid>(0)).await
        });
        let mails: Vec<Uuid> = mails.await.map_err(|error: Error| error)?;
        Ok(self.mailer.forget(&mails).await?)
    }

    /// Deletes a batch of mails that ended 30 days ago, and the transport's copies. Returns the
    /// number.
    pub async fn sweep(&self) -> Result<u64, ForgetError> {
        let before = self.clock.now().before(KEPT);
        self.mailer.forget_before(before).await?;
        let swept: Result<u64, Error> = transaction!(self.db, "mail.sweep", async |tx: &mut Tx<'_>| {
            tx.execute(&store::SWEEP, &[&before, &SWEEP_BATCH]).await
        });
        Ok(swept?)
    }
}

/// Deletes a recipient's mails, waiting ones too.
pub async fn erase(tx: &mut Tx<'_>, recipient: Uuid) -> Result<(), Error> {
    tx.execute(&store::ERASE, &[&recipient]).await.map(|_| ())
}
