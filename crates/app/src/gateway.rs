//! Wires the gateway: the guards in front of the roles of this process, and the proxy to roles in
//! other processes.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use urr_auth::{LoginLimit, NotNow};
use urr_contracts::{
    auth::{self, Auth, RevocationsSince},
    queue::{Queue, SlotOf},
    vwr::{ListRooms, Vwr},
};
use urr_gateway::{
    Gateway, Gateways, Guards, Upstream,
    limit::{Limiter, OnStoreOutage, Verdict, Who},
    revoked::{Revocation, RevocationPage, RevocationSource, Revoked},
    rooms::{OpenRoom, RoomSource, Rooms},
    slots::{SlotSource, Slots},
    tier2_tokens::Tier2Tokens,
};
use urr_http::{Class, Client, ClientLimits, Respond};
use urr_kernel::{Clock, Ids, Timestamp};
use urr_kv::Kv;
use urr_passes::{
    access::{self, Verifier},
    entry::{self, Entries, Entry},
    hop, queue_ticket,
    vwr_pass::{self, Passes},
};
use urr_rpc::Ctx;
use uuid::Uuid;

use crate::{
    config::{Config, HttpUrl},
    domains::{self, PublicRoutes},
    failure::Failure,
    roles::Role,
    wire::{self, Domains, Runtime},
};

/// How far back a process loads revocations at start: as long as a revoked token could be valid.
const LOOK_BACK: Duration = urr_auth::revocation_life(access::LIFETIME);

/// State of the guards, shared by all requests.
#[derive(Clone)]
pub(crate) struct GuardState {
    /// Revoked sessions; `None` if this process cannot reach `auth`.
    pub revoked: Option<Arc<Revoked>>,
    /// Open waiting rooms of Tier 1; `None` if this process cannot reach `vwr`.
    pub rooms: Option<Arc<Rooms>>,
    /// Rate limits; `None` if they are off.
    pub limiter: Option<Arc<Limiter>>,
    /// Addresses of other gateways of this installation.
    pub gateways: Arc<Gateways>,
}

impl GuardState {
    /// Empty: revoked sessions and open rooms are loaded later.
    pub(crate) fn new(config: &Config, kv: Option<&Kv>, clock: &Clock) -> Self {
        let knows = config.is_reachable(&domains::auth::ROLE);
        let passes = Passes::new(config.secrets().map(|secret| vwr_pass::key(&secret.0)));
        let tickets = config.secrets().map(|secret| queue_ticket::key(&secret.0));
        let tier2_tokens = Tier2Tokens::new(entries(config), queue_ticket::Tickets::new(tickets));
        let rooms = || Arc::new(Rooms::new(clock.clone(), passes, tier2_tokens, config.secure_cookies()));
        let has_rooms = config.is_reachable(&domains::vwr::ROLE);
        let limiter = config.limits.enabled.then_some(config.limits).map(|limits| match kv {
            Some(kv) => Limiter::redis(kv.clone(), limits, clock.clone()),
            None => Limiter::memory(limits, clock.clone()),
        });
        Self {
            revoked: knows.then(|| Arc::new(Revoked::new(clock.clone(), LOOK_BACK))),
            rooms: has_rooms.then(rooms),
            limiter: limiter.map(Arc::new),
            gateways: Arc::default(),
        }
    }

    /// For benchmarks of a new installation: counts as loaded, with no revoked sessions.
    pub(crate) fn brand_new(config: &Config, clock: &Clock) -> Self {
        let guard_state = Self::new(config, None, clock);
        if let Some(revoked) = &guard_state.revoked {
            revoked.begin();
        }
        guard_state
    }

    /// Reports sessions that end in this process to its guards at once.
    pub(crate) fn on_revoked(&self) -> urr_auth::OnRevoked {
        let revoked = self.revoked.clone();
        Arc::new(move |ended| {
            if let Some(revoked) = &revoked {
                let ended: Vec<_> = ended.iter().map(ended_session).collect();
                // If the list is full, the task `gateway.revoked` retries and logs it.
                let _all = revoked.add(&ended);
            }
        })
    }

    /// The rate limit of sign-in attempts per account.
    pub(crate) fn login_limit(&self) -> Option<Arc<dyn LoginLimit>> {
        self.limiter.clone().map(|limiter| Arc::new(CountLogins(limiter)) as Arc<dyn LoginLimit>)
    }
}

/// Counts sign-in attempts with the rate limiter of requests.
struct CountLogins(Arc<Limiter>);

#[async_trait]
impl LoginLimit for CountLogins {
    async fn count(&self, account: [u8; 16]) -> Result<(), NotNow> {
        match self.0.check(Class::Login, Who::Account(account), OnStoreOutage::Refuse).await {
            Verdict::Pass => Ok(()),
            Verdict::Wait(wait) => Err(NotNow::Wait(wait)),
            Verdict::Unknown => Err(NotNow::Unknown),
        }
    }
}

fn ended_session(ended: &auth::Revocation) -> Revocation {
    Revocation { session: ended.session, until: ended.until }
}

/// Reads revoked sessions from `auth`, in this process or another.
pub(crate) struct AskAuth {
    /// Local or remote.
    pub auth: Arc<dyn Auth>,
    /// The clock.
    pub clock: Clock,
    /// Source of request ids.
    pub ids: Ids,
}

#[async_trait]
impl RevocationSource for AskAuth {
    async fn since(&self, since: Timestamp, after: Option<Uuid>) -> Result<RevocationPage, String> {
        let ctx = Ctx::system(&self.ids, &self.clock);
        let page = self.auth.revocations(&ctx, RevocationsSince { since, after }).await;
        let page = page.map_err(|error| urr_telemetry::chain(&error))?;
        let ended = page.ended.iter().map(ended_session).collect();
        Ok(RevocationPage { ended, as_of: page.as_of, next: page.next })
    }
}

/// Reads the open waiting rooms from `vwr`, in this process or another.
pub(crate) struct AskVwr {
    /// Local or remote.
    pub vwr: Arc<dyn Vwr>,
    /// The clock.
    pub clock: Clock,
    /// Source of request ids.
    pub ids: Ids,
}

#[async_trait]
impl RoomSource for AskVwr {
    async fn open(&self) -> Result<Vec<OpenRoom>, String> {
        let ctx = Ctx::system(&self.ids, &self.clock);
        let known = self.vwr.rooms(&ctx, ListRooms {}).await;
        let known = known.map_err(|error| urr_telemetry::chain(&error))?;
        let open = known.rooms.into_iter().filter(|room| room.active);
        let open = open.map(|room| OpenRoom {
            event: room.event,
            fail_open: room.fail_open,
            opened_at: room.opened_at,
        });
        Ok(open.collect())
    }
}

/// The guards, and behind them the roles of this process and those that requests are forwarded to.
pub(crate) fn build(
    config: &Config,
    domains: &Domains,
    runtime: &Runtime,
) -> Result<impl Respond + use<>, Failure> {
    let slots = slots(config, domains, runtime);
    let mut gateway = Gateway::new(Guards { slots, ..guards(config, &domains.guard_state, runtime) });
    let mut upstreams = upstreams(config, &runtime.clock)?;
    for (role, (routes, names)) in declared() {
        let place = upstreams.iter().position(|(remote_role, _)| *remote_role == role);
        gateway = match (domains.routes(role), place) {
            (Some(here), _) => gateway.local(routes, here),
            (None, Some(place)) => gateway.remote(upstreams.swap_remove(place).1, &names),
            (None, None) => gateway.absent(routes, names),
        };
    }
    Ok(gateway.finish())
}

/// The public routes of every role, whether or not it runs here.
pub(crate) fn declared() -> impl Iterator<Item = (Role, PublicRoutes)> {
    Role::all().filter_map(|role| Some((role, role.routes?())))
}

/// The guards with their keys and state, without the slot guard.
pub(crate) fn guards(config: &Config, guard_state: &GuardState, runtime: &Runtime) -> Guards {
    Guards {
        access: Verifier::new(wire::access_keys(config)),
        hops: hop::Verifier::new(config.secrets().map(|secret| hop::key(&secret.0))),
        gateways: Arc::clone(&guard_state.gateways),
        clock: runtime.clock.clone(),
        limiter: guard_state.limiter.clone(),
        revoked: guard_state.revoked.clone(),
        rooms: guard_state.rooms.clone(),
        proxies: config.door.proxies(),
        origins: config.door.origins.clone().at_home(config.public_url.as_ref().map_or("", HttpUrl::expose)),
        slots: None,
        health: runtime.health.clone(),
    }
}

/// The guard of routes that buy, if they require a slot.
fn slots(config: &Config, domains: &Domains, runtime: &Runtime) -> Option<Arc<Slots>> {
    let queue = domains.peer().filter(|_| config.guards_seats())?;
    let ask = AskQueue { queue, clock: runtime.clock.clone(), ids: runtime.ids.clone() };
    Some(Arc::new(Slots::new(entries(config), Arc::new(ask), runtime.clock.clone())))
}

/// Verifies entry tokens.
fn entries(config: &Config) -> Entries {
    Entries::new(config.secrets().map(|secret| entry::key(&secret.0)))
}

/// Checks slots with `queue`, in this process or another.
struct AskQueue {
    queue: Arc<dyn Queue>,
    clock: Clock,
    ids: Ids,
}

#[async_trait]
impl SlotSource for AskQueue {
    async fn is_open(&self, entry: &Entry) -> Result<bool, String> {
        let ctx = Ctx::system(&self.ids, &self.clock);
        let request = SlotOf { event: entry.event, user: entry.user, slot: entry.slot };
        let state = self.queue.slot(&ctx, request).await.map_err(|error| urr_telemetry::chain(&error))?;
        Ok(state.open)
    }
}

/// The roles that requests are forwarded to.
pub(crate) fn upstreams(config: &Config, clock: &Clock) -> Result<Vec<(Role, Upstream)>, Failure> {
    let Some(secret) = config.secrets().next() else { return Ok(Vec::new()) };
    let signer = hop::Signer::new(hop::key(&secret.0));
    let client = Client::new(ClientLimits::default(), clock.clone());
    let upstream = |role: Role| {
        let (routes, _) = role.routes.expect("only roles with public routes are forwarded to")();
        let urls = config.upstream.of(role).iter().map(HttpUrl::expose);
        let upstream = Upstream::new(routes, urls, &client, clock.clone(), signer.clone());
        let upstream =
            upstream.map_err(|error| Failure::because(format!("upstream.{}", role.name), &error))?;
        Ok((role, upstream))
    };
    config.passes_on().map(upstream).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use urr_passes::access::{Access, Signer};

    use super::*;
    use crate::config::{self, Input};

    /// A session that was revoked shortly before its last token was signed.
    struct Ended {
        at: Timestamp,
        session: Uuid,
        asked: Mutex<Vec<Timestamp>>,
    }

    #[async_trait]
    impl RevocationSource for Ended {
        async fn since(&self, since: Timestamp, _: Option<Uuid>) -> Result<RevocationPage, String> {
            self.asked.lock().unwrap().push(since);
            let until = self.at.after(LOOK_BACK);
            let ended = Revocation { session: self.session, until };
            let ended = if self.at >= since { vec![ended] } else { Vec::new() };
            Ok(RevocationPage { ended, as_of: since, next: None })
        }
    }

    #[tokio::test]
    async fn a_new_process_loads_every_revoked_session_whose_token_is_still_valid() {
        let (clock, ids) = urr_testkit::fixed();
        let dir = tempfile::tempdir().unwrap();
        let input = Input { working_dir: dir.path().to_owned(), ..Input::default() };
        let config = config::load(&input).unwrap().1;
        let secret = urr_passes::Secret::new("correct horse battery staple, twice").unwrap();
        let signer = Signer::new(access::key(&secret), access::LIFETIME);
        let verifier = Verifier::new([access::key(&secret)]);

        // The revocation got its time, waited for the database, and meanwhile a token was signed.
        let source = Ended { at: clock.now(), session: ids.next(), asked: Mutex::default() };
        clock.advance(Duration::from_secs(59));
        let bearer =
            Access { user: ids.next(), role: urr_kernel::Role::User, email: None, session: source.session };
        let token = signer.sign(&bearer, ids.next(), clock.now());
        clock.advance(access::LIFETIME.saturating_sub(Duration::from_secs(1)));
        assert!(verifier.verify(&token, clock.now()).is_ok(), "the token is valid");

        let revoked = GuardState::new(&config, None, &clock).revoked.unwrap();
        revoked.load(&source).await.unwrap();
        assert!(revoked.contains(source.session), "loaded since {:?}", source.asked.lock().unwrap());
    }
}

/// Guards that only verify tokens of this secret.
#[cfg(test)]
fn plain_guards(secret: &urr_passes::Secret, clock: &Clock) -> Guards {
    Guards {
        access: Verifier::new([access::key(secret)]),
        clock: clock.clone(),
        hops: hop::Verifier::new([hop::key(secret)]),
        gateways: Arc::default(),
        limiter: None,
        revoked: None,
        rooms: None,
        proxies: urr_gateway::address::TrustedProxies::default(),
        origins: urr_gateway::Origins::default(),
        slots: None,
        health: urr_telemetry::Health::new(),
    }
}

#[cfg(test)]
mod line_tests;
#[cfg(test)]
mod table_tests;
