//! The client: routes calls to nodes, follows redirections, records metrics.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::future::join_all;
use redis::Cmd;
use tokio::{sync::Notify, task::JoinSet};
use urr_kernel::{Clock, Timestamp};

use crate::{
    Arg, ConfigError, Error, KvConfig, Reply, Script,
    config::Endpoint,
    keeper,
    node::{Address, Fault, Node, breaker_limits},
    slots::{self, Map},
};

/// Attempts without a pause: by hash, by source, after MOVED, after ASK.
const TRIES_AT_ONCE: usize = 4;

/// Pause before every further attempt. The nodes disagree, or a migrating slot has keys on both
/// nodes; either usually lasts milliseconds.
const PAUSE: Duration = Duration::from_millis(5);

/// Attempts per call. The default deadline of 100 ms ends a call earlier, after about twenty
/// pauses.
const MAX_TRIES: usize = 64;

/// A client of one Redis node or of a Cluster. Clones share all state.
#[derive(Clone)]
pub struct Kv(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    endpoint: Arc<Endpoint>,
    clock: Clock,
    deadline: Duration,
    pub(crate) start: Vec<Address>,
    /// All nodes in use, so that connections and breakers survive a new slot map.
    nodes: Mutex<BTreeMap<Address, Arc<Node>>>,
    map: RwLock<Arc<Map>>,
    /// Notifies the keeper that the slot map may be out of date.
    pub(crate) doubt: Arc<Notify>,
    /// Aborted when the last clone is dropped.
    keeper: Mutex<JoinSet<()>>,
}

impl fmt::Debug for Kv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kv").field("start", &self.0.start).finish_non_exhaustive()
    }
}

impl Kv {
    /// Creates a client, which connects in the background. If Redis is down, calls fail, not this
    /// function.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn connect(config: &KvConfig, clock: Clock) -> Result<Self, ConfigError> {
        let (endpoint, start) = Endpoint::new(config)?;
        if endpoint.uses_tls() {
            // Fails if a provider is already installed, which is fine.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let endpoint = Arc::new(endpoint);
        let limits = breaker_limits(config.deadline);
        let node = Node::new(start[0].clone(), Arc::clone(&endpoint), limits, clock.clone());
        let first = Arc::new(node.map_err(|error| ConfigError::BadUrl { entry: 1, why: error.to_string() })?);
        let is_cluster = config.cluster || start.len() > 1;
        let doubt = Arc::new(Notify::new());
        let inner = Arc::new(Inner {
            endpoint,
            clock,
            deadline: config.deadline,
            nodes: Mutex::new(BTreeMap::from([(start[0].clone(), Arc::clone(&first))])),
            // Until the slot map is loaded, the first node gets all calls and redirects them.
            map: RwLock::new(Arc::new(Map::all_at(first))),
            start,
            doubt: Arc::clone(&doubt),
            keeper: Mutex::new(JoinSet::new()),
        });
        let keeper = keeper::keep(Arc::downgrade(&inner), doubt, is_cluster);
        inner.keeper.lock().unwrap_or_else(PoisonError::into_inner).spawn(keeper);
        Ok(Self(inner))
    }

    /// Runs a script within the default deadline, on the node that owns its keys. All keys must
    /// share a hash tag.
    pub async fn run(
        &self,
        script: &Script,
        keys: &[impl AsRef<str>],
        args: &[Arg<'_>],
    ) -> Result<Reply, Error> {
        self.run_within(self.0.deadline, script, keys, args).await
    }

    /// Like [`Kv::run`], with another deadline.
    pub async fn run_within(
        &self,
        deadline: Duration,
        script: &Script,
        keys: &[impl AsRef<str>],
        args: &[Arg<'_>],
    ) -> Result<Reply, Error> {
        let started = self.0.clock.ticks();
        let outcome = self.0.run(deadline, script, keys, args).await;
        let took = self.0.clock.ticks().saturating_sub(started);
        let label = outcome.as_ref().map_or_else(Error::label, |_| "ok");
        metrics::counter!("urr_kv_calls_total", "script" => script.name(), "outcome" => label).increment(1);
        metrics::histogram!("urr_kv_call_seconds", "script" => script.name()).record(took.as_secs_f64());
        outcome
    }

    /// Returns an error unless every primary responds.
    pub async fn ping(&self) -> Result<(), Error> {
        self.0.ask_all(&redis::cmd("PING")).await.map(drop)
    }

    /// The clock of the first primary that responds.
    pub async fn server_time(&self) -> Result<Timestamp, Error> {
        let mut command = Cmd::new();
        command.arg("TIME");
        let mut failure = Error::Down("no primary is known".to_owned());
        for node in self.0.map().primaries() {
            match self.0.ask(&node, &command).await.and_then(|answer| read_time(&answer)) {
                Ok(time) => return Ok(time),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// The `maxmemory-policy` of the primaries. Any policy but `noeviction` may evict keys that
    /// callers rely on; if one primary has such a policy, it is returned.
    pub async fn maxmemory_policy(&self) -> Result<String, Error> {
        let mut command = Cmd::new();
        command.arg("INFO").arg("memory");
        let mut policies = Vec::new();
        for answer in self.0.ask_all(&command).await? {
            policies.push(read_policy(answer.bytes()?)?);
        }
        let odd = policies.iter().position(|policy| policy != Self::SAFE_POLICY);
        Ok(odd.map_or_else(|| Self::SAFE_POLICY.to_owned(), |odd| policies.swap_remove(odd)))
    }

    /// The only safe value of [`Kv::maxmemory_policy`].
    pub const SAFE_POLICY: &'static str = "noeviction";
}

#[async_trait]
impl urr_telemetry::Check for Kv {
    async fn check(&self) -> Result<(), String> {
        self.ping().await.map_err(|error| error.to_string())
    }
}

impl Inner {
    async fn run(
        &self,
        deadline: Duration,
        script: &Script,
        keys: &[impl AsRef<str>],
        args: &[Arg<'_>],
    ) -> Result<Reply, Error> {
        let slot = slots::common_slot(keys)?;
        let started = self.clock.ticks();
        let mut node = self.map().primary(slot).cloned().ok_or_else(|| self.unserved())?;
        let mut command = script.by_sha(keys, args);
        let mut asking = false;
        for tried in 0..MAX_TRIES {
            if tried >= TRIES_AT_ONCE {
                tokio::time::sleep(PAUSE).await;
            }
            let left = deadline.saturating_sub(self.clock.ticks().saturating_sub(started));
            if left.is_zero() {
                return Err(Error::Timeout(deadline));
            }
            match node.call(&command, asking, left).await {
                Ok(reply) => return Ok(reply),
                Err(Fault::NoScript) => command = script.by_source(keys, args),
                Err(Fault::Moved(address)) => {
                    self.doubt.notify_one();
                    (node, asking) = (self.node(address)?, false);
                }
                Err(Fault::Ask(address)) => (node, asking) = (self.node(address)?, true),
                Err(Fault::TryAgain) => {}
                Err(Fault::Error(Error::Timeout(_))) => {
                    self.doubt.notify_one();
                    return Err(Error::Timeout(deadline));
                }
                Err(Fault::Error(error)) => {
                    if error.is_unavailable() {
                        self.doubt.notify_one();
                    }
                    return Err(error);
                }
            }
        }
        Err(Error::Down(format!("the nodes still disagree about slot {slot} after {MAX_TRIES} attempts")))
    }

    fn unserved(&self) -> Error {
        self.doubt.notify_one();
        Error::Down("no node serves the slot".to_owned())
    }

    /// Sends a command without keys to one node.
    pub(crate) async fn ask(&self, node: &Node, command: &Cmd) -> Result<Reply, Error> {
        node.call(command, false, self.deadline).await.map_err(|fault| match fault {
            Fault::Error(error) => error,
            fault => Error::Reply(format!("{fault:?}")),
        })
    }

    /// Sends a command without keys to every primary concurrently.
    pub(crate) async fn ask_all(&self, command: &Cmd) -> Result<Vec<Reply>, Error> {
        let primaries = self.map().primaries();
        join_all(primaries.iter().map(|node| self.ask(node, command))).await.into_iter().collect()
    }

    pub(crate) fn map(&self) -> Arc<Map> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The node at this address, added if it is new.
    pub(crate) fn node(&self, address: Address) -> Result<Arc<Node>, Error> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = nodes.get(&address) {
            return Ok(Arc::clone(node));
        }
        let limits = breaker_limits(self.deadline);
        let node =
            Arc::new(Node::new(address.clone(), Arc::clone(&self.endpoint), limits, self.clock.clone())?);
        nodes.insert(address, Arc::clone(&node));
        Ok(node)
    }

    /// All known nodes.
    pub(crate) fn met(&self) -> Vec<Arc<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Replaces the slot map. Nodes that are not in it are dropped, except the configured ones.
    pub(crate) fn adopt(&self, map: Map) {
        let primaries = map.primaries();
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.retain(|address, node| {
            self.start.contains(address) || primaries.iter().any(|primary| Arc::ptr_eq(primary, node))
        });
    }
}

fn read_time(answer: &Reply) -> Result<Timestamp, Error> {
    let odd = || Error::Reply("unexpected reply to TIME".to_owned());
    let [secs, micros] = answer.list()? else { return Err(odd()) };
    let number = |reply: &Reply| -> Result<i64, Error> {
        std::str::from_utf8(reply.bytes()?).ok().and_then(|text| text.parse().ok()).ok_or_else(odd)
    };
    let micros = number(secs)?.checked_mul(1_000_000).and_then(|secs| secs.checked_add(number(micros).ok()?));
    micros.map(Timestamp::from_micros).ok_or_else(odd)
}

fn read_policy(info: &[u8]) -> Result<String, Error> {
    let info = String::from_utf8_lossy(info);
    let policy = info.lines().find_map(|line| line.trim().strip_prefix("maxmemory_policy:"));
    policy.map(str::to_owned).ok_or_else(|| Error::Reply("INFO memory has no maxmemory_policy".to_owned()))
}
