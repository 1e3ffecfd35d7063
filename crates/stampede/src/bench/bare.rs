//! Upper bound of the storage: one durable transaction that claims two seats and appends a message.
//!
//! The distance of holds from it is our own cost; its distance from another machine's result is the
//! machine's.

use urr_db::{Db, Domain, Error, Migration, Tx, outbox, statements};
use urr_kernel::{Clock, Ids, MessageId, SeatId, Timestamp, UserId};

use super::load::Client;

/// How long a claim lasts.
const HOLD_SECS: u64 = 300;

pub(super) static DOMAIN: Domain = Domain {
    name: "bare",
    migrations: &[Migration {
        name: "0001_claims",
        sqlite: "create table claims (seat_id blob not null primary key, user_id blob not null, expires_at integer not null)
                 strict, without rowid;",
        postgres: "create table claims (seat_id uuid not null primary key, user_id uuid not null, expires_at timestamptz not null);",
    }],
};

statements! {
    CLAIM = "
        insert into claims (seat_id, user_id, expires_at) values ($1, $2, $3)
        on conflict (seat_id) do update set user_id = excluded.user_id, expires_at = excluded.expires_at
         where claims.expires_at <= $4";
}

/// A client that claims two seats no other client claims.
pub(super) struct Claims {
    pub(super) db: Db,
    pub(super) clock: Clock,
    pub(super) ids: Ids,
}

impl Claims {
    async fn claim(
        &self,
        tx: &mut Tx<'_>,
        user: UserId,
        seats: [SeatId; 2],
        now: Timestamp,
    ) -> Result<bool, Error> {
        let until = now.after(std::time::Duration::from_secs(HOLD_SECS));
        for seat in seats {
            if tx.execute(&CLAIM, &[&seat, &user, &until, &now]).await? == 0 {
                return Ok(false);
            }
        }
        let id: MessageId = self.ids.next();
        let message = outbox::Message {
            id,
            topic: "bare".to_owned(),
            key: user.to_string(),
            kind: "CLAIMED".to_owned(),
            payload: "{}".to_owned(),
            at: now,
        };
        outbox::append(tx, &message).await?;
        Ok(true)
    }
}

impl Client for Claims {
    async fn once(&mut self) -> Option<Result<(), String>> {
        let (user, seats, now) = (self.ids.next(), [self.ids.next(), self.ids.next()], self.clock.now());
        let claimed =
            self.db.write("bench.bare", async |tx: &mut Tx<'_>| self.claim(tx, user, seats, now).await).await;
        Some(match claimed {
            Ok(true) => Ok(()),
            Ok(false) => Err("a fresh seat is already claimed".to_owned()),
            Err(error) => Err(error.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use urr_testkit::{fresh_postgres, fresh_sqlite};

    use super::*;

    #[tokio::test]
    async fn every_statement_prepares_on_its_engines() {
        let (_dir, sqlite) = fresh_sqlite(&DOMAIN).await;
        let postgres = fresh_postgres(&DOMAIN).await;
        let databases: Vec<&Db> = std::iter::once(&sqlite).chain(&postgres).collect();
        urr_db::check_statements(&databases, STATEMENTS).await.unwrap();
    }
}
