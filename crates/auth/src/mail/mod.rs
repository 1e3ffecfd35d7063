//! Mails: written down with the change that is their reason, sent afterwards by a reconciler, tried again if need be.
//!
//! A waiting mail holds no address, no text and no link. All three are made when it is sent, so what a link carries is never
//! on disk and an erased account leaves no address behind.

mod file;
pub(crate) mod send;
mod settings;
mod smtp;
pub(crate) mod store;
mod texts;

use std::io;

use async_trait::async_trait;
use urr_contracts::auth::Sensitive;
use urr_db::Tx;
use urr_kernel::{Timestamp, UserId};
use uuid::Uuid;

use crate::{links::Purpose, service::Service, trouble::Trouble};

pub use file::FileMailer;
pub use settings::{MailKind, MailSettings, SmtpSecurity};
pub use smtp::{BadSmtp, SmtpConfig, SmtpMailer};

/// A mail that is ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// The same for every attempt to send it.
    pub id: Uuid,
    /// The address of its reader, in its one spelling.
    pub to: String,
    /// One line.
    pub subject: String,
    /// Plain text. It may carry a link, so it is not for logs.
    pub text: Sensitive,
    /// When it was written.
    pub at: Timestamp,
}

/// Why a mail was not sent.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// Later it may work.
    #[error("the mail could not be sent now")]
    Temporary(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It never will.
    #[error("the mail was refused for good")]
    Permanent(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Whatever brings mails to people. Sending the same mail twice must be harmless: after a crash nobody knows.
#[async_trait]
pub trait Mailer: Send + Sync + 'static {
    /// Hands one mail over. Bounded in time by the implementation.
    async fn send(&self, mail: Mail) -> Result<(), MailError>;

    /// Removes what is kept of these mails here. Whoever hands mails over and keeps none has nothing to do.
    async fn forget(&self, _mails: &[Uuid]) -> io::Result<()> {
        Ok(())
    }

    /// Removes what is kept here of mails from before then.
    async fn forget_before(&self, _then: Timestamp) -> io::Result<()> {
        Ok(())
    }
}

/// Why a mail is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Prove the address.
    VerifyEmail,
    /// Set a new password.
    ResetPassword,
    /// Somebody tried to register with the address.
    AlreadyRegistered,
    /// The password was changed.
    PasswordChanged,
    /// A refresh token was used twice.
    SessionStolen,
    /// The second factor was turned on or off, or its recovery codes were replaced.
    SecondFactorChanged,
    /// An account elsewhere was linked or unlinked.
    SignInChanged,
}
urr_db::text_enum! {
    Kind {
        VerifyEmail = "verify_email",
        ResetPassword = "reset_password",
        AlreadyRegistered = "already_registered",
        PasswordChanged = "password_changed",
        SessionStolen = "session_stolen",
        SecondFactorChanged = "second_factor_changed",
        SignInChanged = "sign_in_changed",
    }
}

impl Kind {
    /// What the link in it is for, if it has one.
    const fn purpose(self) -> Option<Purpose> {
        match self {
            Self::VerifyEmail => Some(Purpose::VerifyEmail),
            Self::ResetPassword => Some(Purpose::ResetPassword),
            Self::AlreadyRegistered
            | Self::PasswordChanged
            | Self::SessionStolen
            | Self::SecondFactorChanged
            | Self::SignInChanged => None,
        }
    }
}

/// Writes down that an account's owner is to get a mail; for [`accounts::NOBODY`](crate::accounts::NOBODY) that is as much work and comes to nothing. Nudge the sender after the commit.
pub(crate) async fn queue(
    service: &Service,
    tx: &mut Tx<'_>,
    account: UserId,
    kind: Kind,
) -> Result<(), Trouble> {
    Ok(store::insert(tx, service.ids.next(), account, kind, service.clock.now()).await?)
}
