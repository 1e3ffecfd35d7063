//! Statements and rows of Tier 1 passes that were used; nothing else.

use urr_db::{Error, Tx, statements};
use urr_kernel::{EventId, Timestamp, UserId, VisitorId};

statements! {
    /// Takes a pass for a user, unless somebody has.
    USE_PASS = "
        insert into used_passes (event_id, visitor_id, user_id, at) values ($1, $2, $3, $4)
        on conflict (event_id, visitor_id) do nothing";

    /// Who has.
    USER_OF_PASS = "select user_id from used_passes where event_id = $1 and visitor_id = $2";

    /// Forgets passes that have expired long since, some at a time.
    FORGET = "
        delete from used_passes where (event_id, visitor_id) in
            (select event_id, visitor_id from used_passes where at < $1 order by at limit $2)";
}

/// Who used a pass, if anybody did.
pub(crate) async fn user_of_pass(
    tx: &mut Tx<'_>,
    event: EventId,
    visitor: VisitorId,
) -> Result<Option<UserId>, Error> {
    tx.optional(&USER_OF_PASS, &[&event, &visitor], |row| row.get(0)).await
}

/// Takes a pass for `user`, unless somebody has. Answers with whoever has it then.
pub(crate) async fn use_pass(
    tx: &mut Tx<'_>,
    event: EventId,
    visitor: VisitorId,
    user: UserId,
    now: Timestamp,
) -> Result<UserId, Error> {
    tx.execute(&USE_PASS, &[&event, &visitor, &user, &now]).await?;
    tx.one(&USER_OF_PASS, &[&event, &visitor], |row| row.get(0)).await
}

/// Forgets up to `limit` passes that were used before `before`. Answers with how many.
pub(crate) async fn forget(tx: &mut Tx<'_>, before: Timestamp, limit: i64) -> Result<u64, Error> {
    tx.execute(&FORGET, &[&before, &limit]).await
}
