//! Proving an address with a mailed link.

use std::time::Duration;

use urr_contracts::auth::{Done, Error, VerifyEmail};
use urr_db::{Tx, transaction};
use urr_rpc::Ctx;

use super::{own, store};
use crate::{
    links::{self, Purpose},
    lockout, mail,
    service::{Service, signed_in},
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

/// Proves an address with what the link carries.
pub(crate) async fn verify(service: &Service, request: &VerifyEmail) -> Result<Done, Trouble> {
    transaction!(service.db, "auth.verify_email", async |tx: &mut Tx<'_>| {
        let user = links::spend(service, tx, &request.token, Purpose::VerifyEmail).await?;
        let stored = store::get(&service.vault, tx, user).await?;
        stored.filter(store::Stored::is_open).ok_or(Error::LinkInvalid)?;
        store::verified(tx, user, service.clock.now()).await?;
        Ok(Done {})
    })
}
