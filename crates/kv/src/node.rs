//! One Redis node: a multiplexed connection and a circuit breaker.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redis::{
    Cmd, ErrorKind, RedisError, ServerErrorKind, Value,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use tokio::{sync::Semaphore, time::timeout};
use urr_kernel::{BreakerLimits, Clock};

use crate::{
    Error, Reply,
    config::Endpoint,
    incidents::{Incident, IncidentBreaker},
};

/// Concurrent calls per node. One Redis core handles at most 150,000 calls per second; at 50 ms,
/// half the deadline, 7,500 are in flight. Rounded up to a power of two. At about 1 kB each they
/// take 8 MB.
const MAX_IN_FLIGHT: usize = 8_192;

/// Commands queued for the socket. Further callers wait within their deadline.
const WRITE_AHEAD: usize = 1_024;

/// Connect timeout: three round trips for TLS and AUTH across a continent, plus a lost packet.
const CONNECT_TIME: Duration = Duration::from_secs(1);

/// Opens after three consecutive incidents (for a silent node: three deadlines). A shorter pause,
/// such as a fork for a snapshot, does not open it. After one second, three trial calls decide
/// whether it closes; more would add load to a struggling node.
pub(crate) const fn breaker_limits(deadline: Duration) -> BreakerLimits {
    BreakerLimits {
        window: 3,
        failures_percent: 100,
        open_for: Duration::from_secs(1),
        trials: 3,
        slow_call: deadline,
    }
}

/// Host and port of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Why a call to a node failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// MOVED: another node owns the slot.
    Moved(Address),
    /// ASK: the slot is migrating and these keys are already on the other node.
    Ask(Address),
    /// TRYAGAIN: the slot is migrating and its keys are on both nodes.
    TryAgain,
    /// NOSCRIPT: the script is not in the node's cache.
    NoScript,
    /// An error that an immediate retry cannot fix.
    Error(Error),
}

/// A node of Redis.
pub(crate) struct Node {
    address: Address,
    endpoint: Arc<Endpoint>,
    clock: Clock,
    in_flight: Semaphore,
    state: Mutex<State>,
}

struct State {
    breaker: IncidentBreaker,
    link: ConnectionManager,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Node").field(&self.address).finish()
    }
}

impl Node {
    /// Creates a node. The first call connects.
    pub(crate) fn new(
        address: Address,
        endpoint: Arc<Endpoint>,
        limits: BreakerLimits,
        clock: Clock,
    ) -> Result<Self, Error> {
        let link = link(&endpoint, &address)?;
        let state = Mutex::new(State { breaker: IncidentBreaker::new(limits), link });
        Ok(Self { address, endpoint, clock, in_flight: Semaphore::new(MAX_IN_FLIGHT), state })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a command and waits at most `limit` for the reply. `asking` is for a slot that is
    /// migrating to this node.
    pub(crate) async fn call(&self, command: &Cmd, asking: bool, limit: Duration) -> Result<Reply, Fault> {
        let _place = self.in_flight.try_acquire().map_err(|_| Fault::Error(Error::Full))?;
        let started = self.clock.ticks();
        let (incident, mut link) = {
            let mut state = self.state();
            let incident = state.breaker.permit(started).map_err(|refused| Fault::Error(refused.into()))?;
            (incident, state.link.clone())
        };
        let answer = timeout(limit, send(&mut link, command, asking)).await;
        let stuck = matches!(&answer, Ok(Err(error)) if stays_broken(error));
        let answer = match answer {
            Ok(Ok(value)) => Ok(Reply::from(value)),
            Ok(Err(error)) => Err(self.fault(&error)),
            Err(_) => Err(Fault::Error(Error::Timeout(limit))),
        };
        let served = !matches!(&answer, Err(Fault::Error(error)) if error.is_unavailable());
        self.report(incident, started, served, stuck);
        answer
    }

    fn report(&self, incident: Incident, started: Duration, served: bool, stuck: bool) {
        let now = self.clock.ticks();
        let mut state = self.state();
        let was_open = state.breaker.is_open(now);
        state.breaker.report(incident, now, now.saturating_sub(started), served);
        let opened = !was_open && state.breaker.is_open(now);
        if opened {
            metrics::counter!("urr_kv_breaker_opened_total", "node" => self.address.to_string()).increment(1);
            tracing::warn!(node = %self.address, "redis keeps failing or does not answer: calls are refused for a second, then three trial calls are made");
        }
        if opened || stuck {
            // A connection can break without either end noticing, so trials use a new one.
            match link(&self.endpoint, &self.address) {
                Ok(fresh) => state.link = fresh,
                Err(error) => {
                    tracing::error!(node = %self.address, %error, "cannot create a redis client: calls use the old connection until the breaker opens again");
                }
            }
        }
    }

    fn fault(&self, error: &RedisError) -> Fault {
        let elsewhere = || {
            let (address, _slot) = error.redirect_node()?;
            let (host, port) = address.rsplit_once(':')?;
            // A node that does not know its own address sends no host; then it is this node's host.
            let host = if host.is_empty() { &self.address.host } else { host };
            Some(Address { host: host.to_owned(), port: port.parse().ok()? })
        };
        let down = || Fault::Error(Error::Down(format!("{}: {error}", self.address)));
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::Moved) => elsewhere().map_or_else(down, Fault::Moved),
            ErrorKind::Server(ServerErrorKind::Ask) => elsewhere().map_or_else(down, Fault::Ask),
            ErrorKind::Server(ServerErrorKind::TryAgain) => Fault::TryAgain,
            ErrorKind::Server(ServerErrorKind::NoScript) => Fault::NoScript,
            ErrorKind::Server(
                ServerErrorKind::BusyLoading
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ReadOnly,
            ) => down(),
            // BUSY: a script does not end. NOAUTH, WRONGPASS: the password was changed.
            ErrorKind::Extension if matches!(error.code(), Some("BUSY" | "NOAUTH" | "WRONGPASS")) => down(),
            ErrorKind::Server(_) | ErrorKind::Extension => Fault::Error(Error::Reply(error.to_string())),
            _ => down(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is opened on first use and reopened when lost.
fn link(endpoint: &Endpoint, address: &Address) -> Result<ConnectionManager, Error> {
    let client = endpoint.client(address).map_err(|error| Error::Down(error.to_string()))?;
    let config = ConnectionManagerConfig::new()
        // Each failed call triggers a reconnect. The breaker limits how often.
        .set_number_of_retries(0)
        .set_connection_timeout(Some(CONNECT_TIME))
        // The caller's deadline is the only timeout.
        .set_response_timeout(None)
        .set_pipeline_buffer_size(WRITE_AHEAD);
    ConnectionManager::new_lazy_with_config(client, config).map_err(|error| Error::Down(error.to_string()))
}

async fn send(link: &mut ConnectionManager, command: &Cmd, asking: bool) -> Result<Value, RedisError> {
    if !asking {
        return link.send_packed_command(command).await?.extract_error();
    }
    // ASKING applies to the next command of the connection, so both go in one pipeline.
    let mut both = redis::pipe();
    both.cmd("ASKING").add_command(command.clone());
    let answers = link.send_packed_commands(&both, 0, 2).await?;
    answers.into_iter().next_back().unwrap_or(Value::Nil).extract_error()
}

/// Whether the connection must be replaced. It recovers from network errors and stays usable after
/// error replies, but never retries a refused password.
fn stays_broken(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Io | ErrorKind::Server(_) => false,
        ErrorKind::Extension => matches!(error.code(), Some("NOAUTH" | "WRONGPASS")),
        _ => true,
    }
}
