//! The sign-in history of an account.

use urr_contracts::auth::{ListLogins, Logins, MAX_HISTORY_PER_PAGE};
use urr_db::Tx;
use urr_rpc::Ctx;
use uuid::Uuid;

use super::store;
use crate::{Failure, accounts::rules::invalid, service::Service};

/// Returns the caller's sign-in attempts, newest first.
pub(crate) async fn login_history(
    service: &Service,
    ctx: &Ctx,
    request: ListLogins,
) -> Result<Logins, Failure> {
    let user = ctx.user()?;
    if !(1..=MAX_HISTORY_PER_PAGE).contains(&request.limit) {
        return Err(invalid("limit", &format!("A page has 1 to {MAX_HISTORY_PER_PAGE} sign-ins")).into());
    }
    let before = request.before.unwrap_or(Uuid::max());
    let page = service.db.read("auth.login_history", async |tx: &mut Tx<'_>| {
        Ok::<_, Failure>(store::history(tx, user, before, request.limit).await?)
    });
    Ok(Logins { logins: page.await? })
}
