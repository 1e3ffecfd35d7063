//! The mails of accounts and how they are composed.
//!
//! A queued mail names an account. Address, text and link are created for each attempt, so that the
//! link's token is never on disk and an erased account leaves no address behind.

mod texts;

use async_trait::async_trait;
use urr_db::{Tx, transaction};
use urr_jobs::BoxError;
use urr_kernel::{Scalar as _, UserId, Value};
use urr_mail::{Compose, Draft, NewMail, Queued};

use crate::{Failure, accounts, links, links::Purpose, service::Service};

/// The kind of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Verify the address.
    VerifyEmail,
    /// Set a new password.
    ResetPassword,
    /// A registration used the address of an existing account.
    AlreadyRegistered,
    /// The password was changed.
    PasswordChanged,
    /// A refresh token was used twice.
    SessionStolen,
    /// The second factor was turned on or off, or its recovery codes were replaced.
    SecondFactorChanged,
    /// A provider was linked or unlinked.
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
    /// The purpose of its link, if it has one.
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

/// Queues a mail to an account's owner; for [`accounts::NOBODY`] this costs the same and queues
/// nothing. Nudge the sender after the commit.
pub(crate) async fn queue(
    service: &Service,
    tx: &mut Tx<'_>,
    account: UserId,
    kind: Kind,
) -> Result<(), Failure> {
    // A flood of registrations must not delay password resets.
    let urgent = kind == Kind::ResetPassword;
    let mail = NewMail { urgent, ..NewMail::new(kind.as_str(), account.as_uuid()) };
    service.mails.queue(tx, &mail).await?;
    Ok(())
}

#[async_trait]
impl Compose for Service {
    async fn compose(&self, mail: &Queued) -> Result<Draft, BoxError> {
        let kind = Kind::from_value(Value::Text(mail.kind.as_str().into()))?;
        Ok(compose(self, UserId::from_uuid(mail.recipient), kind).await?)
    }
}

async fn compose(service: &Service, id: UserId, kind: Kind) -> Result<Draft, Failure> {
    transaction!(service.db, "auth.compose_mail", async |tx: &mut Tx<'_>| {
        let found = accounts::store::get(&service.vault, tx, id).await?;
        let Some(stored) = found.filter(accounts::store::Stored::is_open) else {
            return Ok(Draft::Drop("the account is closed"));
        };
        let account = &stored.account;
        if kind == Kind::VerifyEmail && account.email_verified {
            return Ok(Draft::Drop("the address is verified already"));
        }
        let carried = match kind.purpose() {
            Some(purpose) => Some(links::make(service, tx, id, purpose).await?),
            None => None,
        };
        let text = texts::render(kind, account, &service.settings.site_url, carried.as_ref());
        Ok::<_, Failure>(Draft::Send { to: account.email.clone(), text })
    })
}
