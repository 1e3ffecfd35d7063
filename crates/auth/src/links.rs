//! Mailed links. Their token is random, stored as a hash, and valid once.

use std::time::Duration;

use urr_contracts::auth::{Error, Sensitive};
use urr_db::{Tx, statements};
use urr_kernel::UserId;

use crate::{
    Failure,
    service::Service,
    sessions::rules::{token, token_hash},
};

statements! {
    /// Inserts a link.
    INSERT = "
        insert into links (token_hash, account_id, purpose, created_at, expires_at) values ($1, $2, $3, $4, $5)";

    /// The account of a valid link.
    OWNER = "
        select account_id from links where token_hash = $1 and purpose = $2 and used_at is null and expires_at > $3";

    /// Marks a link as used. Only one caller gets a row.
    SPEND = "
        update links set used_at = $3
         where token_hash = $1 and purpose = $2 and used_at is null and expires_at > $3
        returning account_id";

    /// Invalidates the other links for the same purpose.
    VOID = "update links set used_at = $3 where account_id = $1 and purpose = $2 and used_at is null";
}

/// The purpose of a link. It is invalid for any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    VerifyEmail,
    ResetPassword,
}
urr_db::text_enum! { Purpose { VerifyEmail = "verify_email", ResetPassword = "reset_password" } }

impl Purpose {
    /// How long a link is valid. Verifying an address may wait until the evening; setting a
    /// password may not.
    pub(crate) const fn lifetime(self) -> Duration {
        match self {
            Self::VerifyEmail => Duration::from_hours(24),
            Self::ResetPassword => Duration::from_mins(30),
        }
    }
}

/// Creates a link. Its token is only ever in the mail.
pub(crate) async fn make(
    service: &Service,
    tx: &mut Tx<'_>,
    account: UserId,
    purpose: Purpose,
) -> Result<Sensitive, Failure> {
    let (now, carried) = (service.clock.now(), token(service.ids.bytes()));
    let hash = token_hash(&carried).expect("a freshly created token is well-formed");
    tx.execute(&INSERT, &[&hash, &account, &purpose, &now, &now.after(purpose.lifetime())]).await?;
    Ok(carried)
}

/// The account of a link, without using it.
pub(crate) async fn owner(
    service: &Service,
    tx: &mut Tx<'_>,
    carried: &Sensitive,
    purpose: Purpose,
) -> Result<UserId, Failure> {
    let hash = token_hash(carried).ok_or(Error::LinkInvalid)?;
    let owner = tx.optional(&OWNER, &[&hash, &purpose, &service.clock.now()], |row| row.get(0)).await?;
    Ok(owner.ok_or(Error::LinkInvalid)?)
}

/// Uses a link, and invalidates every other one for the same purpose.
pub(crate) async fn spend(
    service: &Service,
    tx: &mut Tx<'_>,
    carried: &Sensitive,
    purpose: Purpose,
) -> Result<UserId, Failure> {
    let now = service.clock.now();
    let hash = token_hash(carried).ok_or(Error::LinkInvalid)?;
    let owner: Option<UserId> = tx.optional(&SPEND, &[&hash, &purpose, &now], |row| row.get(0)).await?;
    let owner = owner.ok_or(Error::LinkInvalid)?;
    void(service, tx, owner, purpose).await?;
    Ok(owner)
}

/// Invalidates every link for a purpose.
pub(crate) async fn void(
    service: &Service,
    tx: &mut Tx<'_>,
    account: UserId,
    purpose: Purpose,
) -> Result<(), Failure> {
    tx.execute(&VOID, &[&account, &purpose, &service.clock.now()]).await?;
    Ok(())
}
