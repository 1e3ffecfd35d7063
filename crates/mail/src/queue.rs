//! Queueing mails in a domain's transaction, and deleting what is kept of them.

use std::{io, sync::Arc, time::Duration};

use serde_json::Value;
use urr_db::{Db, Error, Tx, transaction};
use urr_jobs::Nudge;
use urr_kernel::{Clock, Ids};
use uuid::Uuid;

use crate::{Mailer, store};

/// Ended mails are kept this long, for operators.
const KEPT: Duration = Duration::from_hours(30 * 24);

/// Rows that one sweep deletes: a few milliseconds of work.
pub(crate) const SWEEP_BATCH: u32 = 1_000;

/// Mails of one recipient whose copies are deleted at once: a month of one every five minutes.
const MAX_OF_RECIPIENT: u32 = 10_000;

/// A mail to be sent once the transaction commits. It holds neither address nor text: both are made
/// by [`Compose`](crate::Compose) when it is sent, so that neither is in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMail<'a> {
    /// Which of the domain's templates, such as `reset_password`.
    pub kind: &'a str,
    /// The recipient's id, such as an account. With the nil id nothing is queued, at the same cost: a
    /// request about an unknown address then takes as long as one about a known one.
    pub recipient: Uuid,
    /// Queueing a second mail with the same key does nothing, for as long as the first is kept (30
    /// days after it ended). `None`: always a new mail.
    pub key: Option<String>,
    /// What the template needs besides the recipient, at most 16 kB of JSON. No personal data: it is
    /// stored as it is.
    pub data: Value,
    /// Sent before others: somebody waits for it.
    pub urgent: bool,
}

impl<'a> NewMail<'a> {
    /// A mail without key and data, not urgent.
    pub const fn new(kind: &'a str, recipient: Uuid) -> Self {
        Self { kind, recipient, key: None, data: Value::Null, urgent: false }
    }
}

/// Why copies of mails are still there.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// The database failed.
    #[error(transparent)]
    Db(#[from] Error),
    /// The transport failed.
    #[error("copies of mails cannot be deleted")]
    Copies(#[from] io::Error),
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
    /// Mails that are queued in the domain's database and handed to `mailer`.
    pub fn new(db: Db, clock: Clock, ids: Ids, mailer: Arc<dyn Mailer>) -> Self {
        Self { db, clock, ids, mailer, nudge: Nudge::new() }
    }

    /// Queues a mail in the domain's own transaction: it is sent if and only if that commits. Returns
    /// `false` if a mail with the same key exists. Call [`Mails::nudge`] after the commit.
    pub async fn queue(&self, tx: &mut Tx<'_>, mail: &NewMail<'_>) -> Result<bool, Error> {
        store::insert(tx, self.ids.next(), mail, self.clock.now()).await
    }

    /// Wakes the sender of this process. Without it mails leave within five seconds.
    pub fn nudge(&self) {
        self.nudge.nudge();
    }

    /// Deletes the copies that the transport keeps of a recipient's mails. Call it before [`erase`],
    /// which deletes the rows that say which mails these are.
    pub async fn forget(&self, recipient: Uuid) -> Result<(), ForgetError> {
        let mails = self.db.read("mail.of_recipient", async |tx: &mut Tx<'_>| {
            let params: &[&dyn urr_kernel::Scalar] = &[&recipient, &MAX_OF_RECIPIENT];
            tx.all(&store::OF_RECIPIENT, params, |row| row.get::<Uuid>(0)).await
        });
        let mails: Vec<Uuid> = mails.await.map_err(|error: Error| error)?;
        Ok(self.mailer.forget(&mails).await?)
    }

    /// Deletes a batch of mails that ended 30 days ago, and the transport's copies of them. Returns how many.
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
