//! The pool: connections that are alive when they are handed out.
//!
//! A connection that the server closed is known to be closed. One that died in silence (a firewall that forgot it, a host
//! that lost its power) is not, and each would fail one more request after the server is back. So a connection that lay
//! idle is asked first, and when one turns out to be lost, all that were used before that moment go with it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Metrics, Object, Pool, RecyclingMethod,
};
use tokio::time::timeout;
use urr_kernel::Clock;

use super::{PostgresConfig, tls};
use crate::{Domain, Error};

/// A connection that was last taken this long ago is asked whether it is still there. A busy one is not: the question
/// costs a round trip.
const ASK_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Connections {
    pool: Pool,
    trust: Arc<Trust>,
    /// How long to wait for a connection, made or free.
    acquire: Duration,
    role: String,
}

impl Connections {
    pub(super) fn new(config: &PostgresConfig, domain: &Domain) -> Result<Self, Error> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config.for_domain(domain)?, tls::connector(config)?, recycling);
        // Half of the time for asking, so that the other half is left for connecting anew.
        let trust = Arc::new(Trust {
            clock: Clock::system(),
            lost_at_micros: AtomicU64::new(0),
            answer: config.acquire / 2,
        });
        let asked = Arc::clone(&trust);
        let ask = Hook::async_fn(move |conn: &mut ClientWrapper, metrics: &Metrics| {
            let (trust, unused) = (Arc::clone(&asked), metrics.last_used());
            Box::pin(async move {
                if trust.holds(conn, unused).await { Ok(()) } else { Err(HookError::message("lost")) }
            })
        });
        let pool = Pool::builder(manager)
            .max_size(config.pool_size)
            .pre_recycle(ask)
            .build()
            .map_err(|e| Error::bug("the connection pool could not be built").because(e))?;
        Ok(Self { pool, trust, acquire: config.acquire, role: domain.role() })
    }

    /// A live connection, within the time that the configuration allows for waiting and connecting together.
    pub(super) async fn get(&self) -> Result<Object, Error> {
        let Ok(found) = timeout(self.acquire, self.pool.get()).await else {
            let (role, limit) = (&self.role, self.acquire.as_millis());
            return Err(Error::unavailable(format!("{role}: no connection to PostgreSQL within {limit} ms")));
        };
        found
            .map_err(|e| Error::unavailable(format!("{}: no connection to PostgreSQL", self.role)).because(e))
    }

    /// Closes a connection that is lost or stuck.
    pub(super) fn discard(&self, conn: Object) {
        drop(Object::take(conn));
        self.trust.lose();
    }
}

/// Which connections are still believed in.
struct Trust {
    clock: Clock,
    /// When a connection was last found to be lost, in ticks.
    lost_at_micros: AtomicU64,
    /// How long a connection may take to answer.
    answer: Duration,
}

impl Trust {
    /// Whether a connection that was last taken so long ago may be handed out.
    async fn holds(&self, conn: &ClientWrapper, unused: Duration) -> bool {
        let taken_at = self.clock.ticks().saturating_sub(unused);
        let lost_at = Duration::from_micros(self.lost_at_micros.load(Ordering::Relaxed));
        if taken_at <= lost_at {
            return false;
        }
        if unused < ASK_AFTER {
            return true;
        }
        let alive = matches!(timeout(self.answer, conn.check_connection()).await, Ok(Ok(())));
        if !alive {
            self.lose();
        }
        alive
    }

    fn lose(&self) {
        let now = u64::try_from(self.clock.ticks().as_micros()).unwrap_or(u64::MAX);
        self.lost_at_micros.fetch_max(now, Ordering::Relaxed);
    }
}
