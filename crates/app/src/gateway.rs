//! The front door of the process: guards before the domains that run here, and the way to those that run elsewhere.

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
    limit::{Blind, Limiter, Verdict, Who},
    places::Places,
    revoked::{Revocation, RevocationPage, RevocationSource, Revoked},
    rooms::{OpenRoom, RoomSource, Rooms},
    slots::{SlotSource, Slots},
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
    wire::{self, Domains, Ground},
};

/// How far back a process asks that has just started: as long as a revocation matters.
const LOOK_BACK: Duration = urr_auth::revocation_life(access::LIFETIME);

/// What the guards remember while the process runs.
#[derive(Clone)]
pub(crate) struct Memory {
    /// Sessions that ended; `None` if nobody could say which.
    pub revoked: Option<Arc<Revoked>>,
    /// Events in front of which people wait; `None` if nobody could say which.
    pub rooms: Option<Arc<Rooms>>,
    /// Who came how often; `None` if nobody is counted.
    pub limiter: Option<Arc<Limiter>>,
    /// Addresses of other gateways of this installation.
    pub gateways: Arc<Gateways>,
}

impl Memory {
    /// Nothing yet.
    pub(crate) fn new(config: &Config, kv: Option<&Kv>, clock: &Clock) -> Self {
        let knows = config.is_reachable(&domains::auth::ROLE);
        let passes = Passes::new(config.secrets().map(|secret| vwr_pass::key(&secret.0)));
        let tickets = config.secrets().map(|secret| queue_ticket::key(&secret.0));
        let places = Places::new(entries(config), queue_ticket::Tickets::new(tickets));
        let rooms = || Arc::new(Rooms::new(clock.clone(), passes, places, config.secure_cookies()));
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

    /// The memory of an installation in which nothing has happened yet: for benchmarks, which need nobody to tell them so.
    pub(crate) fn brand_new(config: &Config, clock: &Clock) -> Self {
        let memory = Self::new(config, None, clock);
        if let Some(revoked) = &memory.revoked {
            revoked.begin();
        }
        memory
    }

    /// Tells the guards of this process at once which sessions ended in it.
    pub(crate) fn on_revoked(&self) -> urr_auth::OnRevoked {
        let revoked = self.revoked.clone();
        Arc::new(move |ended| {
            if let Some(revoked) = &revoked {
                let ended: Vec<_> = ended.iter().map(ended_session).collect();
                // What there was no room for is asked for again, and reported, by whoever watches.
                let _all = revoked.add(&ended);
            }
        })
    }

    /// Counts how often an account is tried.
    pub(crate) fn login_limit(&self) -> Option<Arc<dyn LoginLimit>> {
        self.limiter.clone().map(|limiter| Arc::new(CountLogins(limiter)) as Arc<dyn LoginLimit>)
    }
}

/// Counts attempts to sign in with what counts requests.
struct CountLogins(Arc<Limiter>);

#[async_trait]
impl LoginLimit for CountLogins {
    async fn count(&self, account: [u8; 16]) -> Result<(), NotNow> {
        match self.0.check(Class::Login, Who::Account(account), Blind::Refuse).await {
            Verdict::Pass => Ok(()),
            Verdict::Wait(wait) => Err(NotNow::Wait(wait)),
            Verdict::Unknown => Err(NotNow::Unknown),
        }
    }
}

fn ended_session(ended: &auth::Revocation) -> Revocation {
    Revocation { session: ended.session, until: ended.until }
}

/// Asks auth, wherever it is, which sessions ended.
pub(crate) struct AskAuth {
    /// Here or there.
    pub auth: Arc<dyn Auth>,
    /// The time.
    pub clock: Clock,
    /// Names each question.
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

/// Asks Tier 1 of the waiting room, wherever it is, which rooms are open.
pub(crate) struct AskVwr {
    /// Here or there.
    pub vwr: Arc<dyn Vwr>,
    /// The time.
    pub clock: Clock,
    /// Names each question.
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

/// The guards, and behind them every domain that is here or that requests are passed on to.
pub(crate) fn door(
    config: &Config,
    domains: &Domains,
    ground: &Ground,
) -> Result<impl Respond + use<>, Failure> {
    let slots = slots(config, domains, ground);
    let mut gateway = Gateway::new(Guards { slots, ..guards(config, &domains.memory, ground) });
    let mut upstreams = upstreams(config, &ground.clock)?;
    for (role, (routes, names)) in declared() {
        let place = upstreams.iter().position(|(elsewhere, _)| *elsewhere == role);
        gateway = match (domains.routes(role), place) {
            (Some(here), _) => gateway.local(routes, here),
            (None, Some(place)) => gateway.remote(upstreams.swap_remove(place).1, &names),
            (None, None) => gateway.absent(routes, names),
        };
    }
    Ok(gateway.finish())
}

/// The public routes of every role, wherever it runs: its code is part of this binary in any case.
pub(crate) fn declared() -> impl Iterator<Item = (Role, PublicRoutes)> {
    Role::all().filter_map(|role| Some((role, role.routes?())))
}

/// What the guards go by.
pub(crate) fn guards(config: &Config, memory: &Memory, ground: &Ground) -> Guards {
    Guards {
        access: Verifier::new(wire::access_keys(config)),
        hops: hop::Verifier::new(config.secrets().map(|secret| hop::key(&secret.0))),
        gateways: Arc::clone(&memory.gateways),
        clock: ground.clock.clone(),
        limiter: memory.limiter.clone(),
        revoked: memory.revoked.clone(),
        rooms: memory.rooms.clone(),
        proxies: config.door.proxies(),
        origins: config.door.origins.clone().at_home(config.public_url.as_ref().map_or("", HttpUrl::expose)),
        slots: None,
        health: ground.health.clone(),
    }
}

/// The guard before what buys, if seats are sold only to those who are in.
fn slots(config: &Config, domains: &Domains, ground: &Ground) -> Option<Arc<Slots>> {
    let queue = domains.peer().filter(|_| config.guards_seats())?;
    let ask = AskQueue { queue, clock: ground.clock.clone(), ids: ground.ids.clone() };
    Some(Arc::new(Slots::new(entries(config), Arc::new(ask), ground.clock.clone())))
}

/// Reads entry tokens.
fn entries(config: &Config) -> Entries {
    Entries::new(config.secrets().map(|secret| entry::key(&secret.0)))
}

/// Asks the waiting room, wherever it is, whether a slot goes on.
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

/// The roles that requests are passed on to.
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

    /// A session that ended, dated a little before the last token of it was signed.
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
    async fn a_process_that_starts_late_knows_every_ended_session_whose_token_is_still_good() {
        let (clock, ids) = urr_testkit::fixed();
        let dir = tempfile::tempdir().unwrap();
        let input = Input { working_dir: dir.path().to_owned(), ..Input::default() };
        let config = config::load(&input).unwrap().1;
        let secret = urr_passes::Secret::new("correct horse battery staple, twice").unwrap();
        let signer = Signer::new(access::key(&secret), access::LIFETIME);
        let verifier = Verifier::new([access::key(&secret)]);

        // The revocation was dated, waited for its turn, and meanwhile another request signed a token.
        let source = Ended { at: clock.now(), session: ids.next(), asked: Mutex::default() };
        clock.advance(Duration::from_secs(59));
        let bearer =
            Access { user: ids.next(), role: urr_kernel::Role::User, email: None, session: source.session };
        let token = signer.sign(&bearer, ids.next(), clock.now());
        clock.advance(access::LIFETIME.saturating_sub(Duration::from_secs(1)));
        assert!(verifier.verify(&token, clock.now()).is_ok(), "the token is good");

        let revoked = Memory::new(&config, None, &clock).revoked.unwrap();
        revoked.load(&source).await.unwrap();
        assert!(revoked.contains(source.session), "asked since {:?}", source.asked.lock().unwrap());
    }
}

#[cfg(test)]
mod line_tests;
#[cfg(test)]
mod table_tests;
