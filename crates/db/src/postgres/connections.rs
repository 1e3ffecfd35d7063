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
use tokio::{runtime::Handle, sync::Semaphore, time::timeout};
use tokio_postgres_rustls::MakeRustlsConnect;
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
    /// For asking the server to stop a statement, which goes over a connection of its own.
    tls: MakeRustlsConnect,
    /// As many such requests at a time as the pool has connections. One that finds no room is not made: the server's own
    /// time limit ends the statement then.
    cancels: Arc<Semaphore>,
}

impl Connections {
    pub(super) fn new(config: &PostgresConfig, domain: &Domain) -> Result<Self, Error> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let tls = tls::connector(config)?;
        let manager = Manager::from_config(config.for_domain(domain)?, tls.clone(), recycling);
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
        let cancels = Arc::new(Semaphore::new(config.pool_size));
        Ok(Self { pool, trust, acquire: config.acquire, role: domain.role(), tls, cancels })
    }

    /// A live connection, within the time that the configuration allows for waiting and connecting together.
    pub(super) async fn get(&self) -> Result<Lent<'_>, Error> {
        let Ok(found) = timeout(self.acquire, self.pool.get()).await else {
            let (role, limit) = (&self.role, self.acquire.as_millis());
            return Err(Error::unavailable(format!("{role}: no connection to PostgreSQL within {limit} ms")));
        };
        let conn = found.map_err(|e| {
            Error::unavailable(format!("{}: no connection to PostgreSQL", self.role)).because(e)
        })?;
        Ok(Lent { conn: Some(conn), from: self })
    }

    /// Closes a connection whose statement nobody waits for, so that its place in the pool is free, and asks the server
    /// to stop the statement: it would not notice by itself until the statement ends.
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
            // Whether it arrives or not, there is nothing more to do.
            let _ = timeout(limit, token.cancel_query(tls)).await;
            drop(room);
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "called from drop, where nothing can be awaited; it is bounded and nobody depends on its end"
        )]
        tokio::spawn(ask);
    }
}

/// A connection that is out of the pool. It goes back only if somebody says that nothing runs on it any more; a request
/// that goes away in the middle of a statement says nothing.
pub(super) struct Lent<'p> {
    conn: Option<Object>,
    from: &'p Connections,
}

impl Lent<'_> {
    pub(super) fn connection(&mut self) -> &mut Object {
        self.conn.as_mut().expect("the connection leaves only with the loan")
    }

    /// Nothing runs on it.
    pub(super) fn give_back(mut self) {
        drop(self.conn.take());
    }

    /// It is lost or stuck, and so may be the others.
    pub(super) fn lose(self) {
        self.from.trust.lose();
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            self.from.abandon(conn);
        }
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
