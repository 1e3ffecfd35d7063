//! The connection pool.
//!
//! The driver notices when the server closes a connection. It does not notice a connection that
//! died silently, for example behind a firewall that dropped its state, and each of those would
//! fail one more request after the server is back. So idle connections are checked before use, and
//! when one is found dead, all connections last used before that moment are dropped too.

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
use tokio::{runtime::Handle, sync::Semaphore, time::timeout};
use tokio_postgres_rustls::MakeRustlsConnect;
use urr_kernel::Clock;

use super::{PostgresConfig, tls};
use crate::{Domain, Error};

/// A connection idle for longer than this is checked before use. A busy one is not, because the
/// check costs a round trip.
const ASK_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Connections {
    pool: Pool,
    trust: Arc<Trust>,
    /// Time limit for getting a connection, pooled or new.
    acquire: Duration,
    role: String,
    /// For cancel requests, which use a connection of their own.
    tls: MakeRustlsConnect,
    /// Limits concurrent cancel requests to the size of the pool. Without a permit no cancel
    /// request is sent; the server's statement timeout ends the statement instead.
    cancels: Arc<Semaphore>,
}

impl Connections {
    pub(super) fn new(config: &PostgresConfig, domain: &Domain) -> Result<Self, Error> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let tls = tls::connector(config)?;
        let manager = Manager::from_config(config.for_domain(domain)?, tls.clone(), recycling);
        // Half of the time for the check, so that the other half is left for a new connection.
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
        let cancels = Arc::new(Semaphore::new(config.pool_size));
        Ok(Self { pool, trust, acquire: config.acquire, role: domain.role(), tls, cancels })
    }

    /// Returns a live connection, or fails within the time limit for waiting and connecting.
    pub(super) async fn get(&self) -> Result<PooledConnection<'_>, Error> {
        let Ok(found) = timeout(self.acquire, self.pool.get()).await else {
            let (role, limit) = (&self.role, self.acquire.as_millis());
            return Err(Error::unavailable(format!("{role}: no connection to PostgreSQL within {limit} ms")));
        };
        let conn = found.map_err(|e| {
            Error::unavailable(format!("{}: no connection to PostgreSQL", self.role)).because(e)
        })?;
        Ok(PooledConnection { conn: Some(conn), from: self })
    }

    /// Closes a connection with an abandoned statement, which frees its slot in the pool, and asks
    /// the server to cancel that statement. Otherwise the server would not notice until it ends.
    fn abandon(&self, conn: Object) {
        let client = Object::take(conn);
        if client.is_closed() {
            return;
        }
        let (token, tls, limit) = (client.cancel_token(), self.tls.clone(), self.acquire);
        drop(client);
        let Ok(room) = Arc::clone(&self.cancels).try_acquire_owned() else { return };
        if Handle::try_current().is_err() {
            return;
        }
        let ask = async move {
            // Best effort: the statement timeout applies if the cancel request is lost.
            let _ = timeout(limit, token.cancel_query(tls)).await;
            drop(room);
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "called from drop, which cannot await; bounded by `limit`, and its result is not used"
        )]
        tokio::spawn(ask);
    }
}

/// A connection taken from the pool. It returns to the pool only after an explicit
/// [`give_back`](Self::give_back), which means that no statement is running on it. A request
/// dropped in the middle of a statement does not call it.
pub(super) struct PooledConnection<'p> {
    conn: Option<Object>,
    from: &'p Connections,
}

impl PooledConnection<'_> {
    pub(super) fn connection(&mut self) -> &mut Object {
        self.conn.as_mut().expect("taken only by give_back or drop")
    }

    /// Returns the connection to the pool. No statement may be running on it.
    pub(super) fn give_back(mut self) {
        drop(self.conn.take());
    }

    /// Closes the connection because it is dead or stuck, and marks all connections last used
    /// before now as dead too.
    pub(super) fn lose(self) {
        self.from.trust.lose();
    }
}

impl Drop for PooledConnection<'_> {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            self.from.abandon(conn);
        }
    }
}

/// Decides which pooled connections may be used.
struct Trust {
    clock: Clock,
    /// When a dead connection was last found, in ticks.
    lost_at_micros: AtomicU64,
    /// Time limit of the check.
    answer: Duration,
}

impl Trust {
    /// Whether a connection idle for `unused` may be used.
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
