//! Statements and rows of used Tier 1 passes; nothing else.

use urr_db::{Error, Tx, statements};
use urr_kernel::{EventId, Timestamp, UserId, VisitorId};

statements! {
    /// Claims a pass for a user, unless it is claimed.
    USE_PASS = "
        insert into used_passes (event_id, visitor_id, user_id, at) values ($1, $2, $3, $4)
        on conflict (event_id, visitor_id) do nothing";

    /// The user who claimed a pass.
    USER_OF_PASS = "select user_id from used_passes where event_id = $1 and visitor_id = $2";

    /// Deletes a batch of passes that expired long ago.
    FORGET = "
        delete from used_passes where (event_id, visitor_id) in
            (select event_id, visitor_id from used_passes where at < $1 order by at limit $2)";
}

/// The user who claimed a pass, if any.
pub(crate) async fn user_of_pass(
    tx: &mut Tx<'_>,
    event: EventId,
    visitor: VisitorId,
) -> Result<Option<UserId>, Error> {
    tx.optional(&USER_OF_PASS, &[&event, &visitor], |row| row.get(0)).await
}

/// Claims a pass for `user`, unless it is claimed. Returns its owner.
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

/// Deletes up to `limit` passes that were used before `before`. Returns their number.
pub(crate) async fn forget(tx: &mut Tx<'_>, before: Timestamp, limit: i64) -> Result<u64, Error> {
    tx.execute(&FORGET, &[&before, &limit]).await
}
