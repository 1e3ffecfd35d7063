//! Proving an address with a mailed link.

use std::time::Duration;

use urr_contracts::auth::{Done, Error, VerifyEmail};
use urr_db::{Tx, transaction};
use urr_kernel::UserId;
use urr_rpc::Ctx;

use super::{own, store};
use crate::{
    links::{self, Purpose},
    lockout, mail, second_factor,
    service::{Service, signed_in},
    sessions::{self, store::EndReason},
    social,
    trouble::Trouble,
};

/// One mail a minute is enough for somebody who waits for it.
const ASK_EVERY: Duration = Duration::from_mins(1);

/// Mails the caller a link, unless they just got one or need none.
pub(crate) async fn request(service: &Service, ctx: &Ctx) -> Result<Done, Trouble> {
    let (user, now) = (signed_in(ctx)?, service.clock.now());
    let key = service.vault.index("verify", &user.to_string());
    transaction!(service.db, "auth.request_verification", async |tx: &mut Tx<'_>| {
        let stored = own(store::get(&service.vault, tx, user).await?)?;
        if !stored.account.email_verified && lockout::store::once(tx, &key, now, now.after(ASK_EVERY)).await?
        {
            mail::queue(service, tx, user, mail::Kind::VerifyEmail).await?;
        }
        Ok::<_, Trouble>(())
    })?;
    service.mail_nudge.nudge();
    Ok(Done {})
}

/// Proves an address with what the link carries. Whoever follows it without being signed in to the account may not be who made it.
pub(crate) async fn verify(service: &Service, ctx: &Ctx, request: &VerifyEmail) -> Result<Done, Trouble> {
    let purpose = Purpose::VerifyEmail;
    let ended = transaction!(service.db, "auth.verify_email", async |tx: &mut Tx<'_>| {
        let user = links::owner(service, tx, &request.token, purpose).await?;
        let locked = store::lock(&service.vault, tx, user).await?;
        let account = locked.filter(store::Stored::is_open).ok_or(Error::LinkInvalid)?.account;
        links::spend(service, tx, &request.token, purpose).await?;
        store::verified(tx, user, service.clock.now()).await?;
        let is_owner = account.email_verified || ctx.actor.user() == Some(user);
        if is_owner || !drop_claims(service, tx, user).await? {
            return Ok(Vec::new());
        }
        sessions::end_all(service, tx, user, EndReason::AddressProved).await
    })?;
    service.announce(&ended);
    service.mail_nudge.nudge();
    Ok(Done {})
}

/// Until an address is proved anybody may have claimed it. Takes away what they left to come back with, or to keep its owner out:
/// accounts elsewhere and the second factor. `false`: there was nothing.
pub(crate) async fn drop_claims(service: &Service, tx: &mut Tx<'_>, user: UserId) -> Result<bool, Trouble> {
    let unlinked = social::store::remove_all(tx, user).await? > 0;
    let had_factor = second_factor::store::is_on(tx, user).await?;
    // A secret that waits for its first code goes, too.
    second_factor::store::remove(tx, user, service.clock.now()).await?;
    if unlinked {
        mail::queue(service, tx, user, mail::Kind::SignInChanged).await?;
    }
    if had_factor {
        mail::queue(service, tx, user, mail::Kind::SecondFactorChanged).await?;
    }
    Ok(unlinked || had_factor)
}
