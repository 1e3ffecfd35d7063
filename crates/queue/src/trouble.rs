//! Internal errors and the error the caller gets. Causes are logged once and not revealed.

use urr_contracts::{catalog, queue::Error};
use urr_db::Kind;
use urr_rpc::Ctx;

use crate::room::Closed;

/// A refusal by the rules, or a failure of a store.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    Refused(#[from] Error),
    /// The rooms' store is unavailable.
    #[error(transparent)]
    Room(#[from] Closed),
    /// The database failed.
    #[error("the database failed")]
    Db(#[from] urr_db::Error),
}

impl From<catalog::Error> for Trouble {
    fn from(error: catalog::Error) -> Self {
        Self::Refused(match error {
            catalog::Error::EventNotFound => Error::EventNotFound,
            _ => Error::Unavailable,
        })
    }
}

impl Trouble {
    /// The error for the caller. Store failures are logged here, once, with the request id.
    pub(crate) fn reveal(self, ctx: &Ctx, method: &'static str) -> Error {
        let answer = match &self {
            Self::Refused(error) => return error.clone(),
            // Users keep waiting; a failure must never admit.
            Self::Room(Closed) => Error::Unavailable,
            // It is unknown whether the change was committed; a retry finds out.
            Self::Db(error) if error.is_unavailable() || error.kind() == Kind::UnknownCommit => {
                Error::Unavailable
            }
            Self::Db(_) => Error::Internal,
        };
        ctx.log_trouble("queue", method, &self);
        answer
    }
}

#[cfg(test)]
mod tests {
    use urr_db::{Db, Tx};
    use urr_testkit::{Proxy, fixed_clock, fresh_database, seeded_ids};

    use super::*;
    use crate::DOMAIN;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_connection_lost_at_commit_returns_unavailable() {
        let Some(mut config) = fresh_database(&[&DOMAIN]).await else { return };
        let server =
            config.url.split_once('@').and_then(|(_, rest)| rest.split_once('/')).unwrap().0.to_owned();
        let mut proxy = Proxy::start(&server).await;
        config.url = config.url.replace(&server, &proxy.address().to_string());
        let db = Db::postgres(&config, &DOMAIN).unwrap();
        db.migrate().await.unwrap();
        urr_db::statements! { TOUCH = postgres "update leases set owner = owner"; }
        let lost = db.write("test.commit", async |tx: &mut Tx<'_>| {
            tx.execute(&TOUCH, &[]).await?;
            proxy.stall().await;
            Ok::<_, urr_db::Error>(())
        });
        let error = lost.await.unwrap_err();
        assert_eq!(error.kind(), Kind::UnknownCommit);
        let clock = fixed_clock();
        let ctx = Ctx::system(&seeded_ids(&clock), &clock);
        assert_eq!(Trouble::from(error).reveal(&ctx, "test"), Error::Unavailable);
    }
}
