#![doc = include_str!("../README.md")]

pub mod admin;
mod file;
mod mailer;
mod queue;
mod send;
mod settings;
mod smtp;
mod store;
mod sweep;
mod template;

use std::sync::Arc;

use urr_db::Sql;
use urr_jobs::Reconciler;

pub use file::FileMailer;
pub use mailer::{Mail, MailError, Mailer};
pub use queue::{ForgetError, Mails, NewMail, erase};
pub use send::{Compose, Draft, Queued, Sender};
pub use settings::{MailKind, Settings, SmtpSecurity};
pub use smtp::{BadSmtp, SmtpConfig, SmtpMailer};
pub use template::{Template, Text, Words};

/// The reconcilers of one domain: one sends its mails, one deletes those that ended long ago.
pub fn reconcilers(mails: &Mails, composer: Arc<dyn Compose>) -> Vec<Arc<dyn Reconciler>> {
    vec![Arc::new(Sender::new(mails.clone(), composer)), Arc::new(sweep::Sweep(mails.clone()))]
}

/// Every statement of this crate, for the test that prepares them on both engines.
pub fn statements() -> &'static [&'static Sql] {
    store::STATEMENTS
}
