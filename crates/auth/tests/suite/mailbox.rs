//! An in-memory mail transport.

use std::sync::Mutex;

use async_trait::async_trait;
use urr_kernel::Timestamp;
use urr_mail::{Mail, MailError, Mailer};
use uuid::Uuid;

/// Stores mails, or refuses them as configured.
#[derive(Default)]
pub(crate) struct Mailbox {
    mails: Mutex<Vec<Mail>>,
    /// The time limit of the last deletion.
    pub(crate) forgot_before: Mutex<Option<Timestamp>>,
    pub(crate) refuses: Mutex<Option<fn() -> MailError>>,
    /// The recipient whose mails cannot be deleted.
    pub(crate) clings_to: Mutex<Option<String>>,
}

impl Mailbox {
    /// All mails to an address, oldest first.
    pub(crate) fn to(&self, email: &str) -> Vec<Mail> {
        self.mails.lock().unwrap().iter().filter(|mail| mail.to == email).cloned().collect()
    }

    pub(crate) fn subjects(&self, email: &str) -> Vec<String> {
        self.to(email).into_iter().map(|mail| mail.subject).collect()
    }
}

#[async_trait]
impl Mailer for Mailbox {
    async fn send(&self, mail: Mail) -> Result<(), MailError> {
        if let Some(refuse) = *self.refuses.lock().unwrap() {
            return Err(refuse());
        }
        self.mails.lock().unwrap().push(mail);
        Ok(())
    }

    async fn forget(&self, mails: &[Uuid]) -> std::io::Result<()> {
        let mut kept = self.mails.lock().unwrap();
        let stuck = self.clings_to.lock().unwrap().clone();
        if kept.iter().any(|mail| mails.contains(&mail.id) && Some(&mail.to) == stuck.as_ref()) {
            return Err(std::io::Error::other("the disk is read only"));
        }
        kept.retain(|mail| !mails.contains(&mail.id));
        Ok(())
    }

    async fn forget_before(&self, then: Timestamp) -> std::io::Result<()> {
        *self.forgot_before.lock().unwrap() = Some(then);
        Ok(())
    }
}
