//! The checks every request passes: rate limit, access token, session freshness and access.

use std::{net::IpAddr, sync::Arc};

use http::HeaderMap;
use urr_http::{Access, Caller, Class, Problem};
use urr_kernel::{Actor, Clock, EventId};
use urr_passes::{
    Refusal,
    access::{Verified, Verifier},
    hop,
};
use urr_telemetry::Health;

use crate::{
    address::TrustedProxies,
    codes,
    gateways::Gateways,
    limit::{Limiter, OnStoreOutage, Verdict, Who},
    origin::Origins,
    revoked::{Revoked, STALE},
    rooms::Rooms,
    slots::Slots,
    table::Route,
    token,
};

/// Configuration of the guards.
#[derive(Clone, Debug)]
pub struct Guards {
    /// Verifies access tokens.
    pub access: Verifier,
    /// The clock, for expiry checks.
    pub clock: Clock,
    /// Verifies requests forwarded by another gateway of this installation.
    pub hops: hop::Verifier,
    /// Learns the addresses of those gateways.
    pub gateways: Arc<Gateways>,
    /// Rate limiter; `None` disables it.
    pub limiter: Option<Arc<Limiter>>,
    /// Ended sessions; `None` if this installation has no source of them.
    pub revoked: Option<Arc<Revoked>>,
    /// Events with an open Tier 1 room; `None` if this installation has no source of them.
    pub rooms: Option<Arc<Rooms>>,
    /// Proxies trusted to report the client address.
    pub proxies: TrustedProxies,
    /// Other origins whose pages may send requests that change state.
    pub origins: Origins,
    /// Slots of the waiting room; `None` lets every signed-in user buy.
    pub slots: Option<Arc<Slots>>,
    /// Ends streams when the process drains.
    pub health: Health,
}

impl Guards {
    /// Returns the caller's token if the request may proceed; `None` for an anonymous caller.
    /// `client` is whom to count it for, unless it is already counted. Counting comes first, so
    /// that probing routes is limited too.
    pub(crate) async fn admit(
        &self,
        route: Option<&Route>,
        identity: Result<Option<Verified>, Refused>,
        client: Option<IpAddr>,
    ) -> Result<Option<Verified>, Problem> {
        let (verified, refused) = match identity {
            Ok(verified) => (verified, None),
            Err(refused) => (None, Some(refused)),
        };
        let actor = actor(verified.as_ref());
        let (class, on_outage) = route.map_or((Some(Class::General), OnStoreOutage::CountHere), |route| {
            (route.policy.limit, route.on_outage())
        });
        if let (Some(class), Some(client)) = (class, client) {
            let user = actor.user().filter(|_| !route.is_some_and(Route::counts_addresses));
            let who = user.map_or_else(|| Who::address(client), Who::User);
            self.count(class, who, on_outage).await?;
        }
        let Some(route) = route else { return Ok(verified) };
        match refused {
            Some(Refused { why, said }) if route.refuses_bad_tokens(said) => return Err(why.problem()),
            _ => {}
        }
        self.check_freshness(route)?;
        match route.policy.access {
            Access::Public => {}
            Access::User => drop(Caller(actor).user()?),
            Access::Admin => drop(Caller(actor).admin()?),
        }
        Ok(verified)
    }

    pub(crate) fn identity(&self, headers: &HeaderMap) -> Result<Option<Verified>, Refused> {
        self.verified(headers).map_err(|why| Refused { why, said: token::is_said(headers) })
    }

    fn verified(&self, headers: &HeaderMap) -> Result<Option<Verified>, Why> {
        let Some(token) = token::find(headers).map_err(Why::Token)? else { return Ok(None) };
        let verified = self.access.verify(token, self.clock.now()).map_err(Why::Token)?;
        match &self.revoked {
            Some(revoked) if revoked.contains(verified.access.session) => Err(Why::Revoked),
            // A partial list says nothing about sessions that are not on it.
            Some(revoked) if !revoked.is_loaded() => Err(Why::Unknown),
            _ => Ok(Some(verified)),
        }
    }

    /// The event of the caller's slot; `None` if buying needs no slot. Checked where the service
    /// runs; a gateway in front only forwards the token.
    pub(crate) async fn slot(&self, headers: &HeaderMap, actor: Actor) -> Result<Option<EventId>, Problem> {
        match &self.slots {
            Some(slots) => slots.event_of(headers, actor).await.map(Some),
            None => Ok(None),
        }
    }

    async fn count(&self, class: Class, who: Who, on_outage: OnStoreOutage) -> Result<(), Problem> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        match limiter.check(class, who, on_outage).await {
            Verdict::Pass => Ok(()),
            Verdict::Wait(wait) => {
                Err(Problem::of(codes::LIMIT_EXCEEDED, "Too many requests. Please wait a moment.")
                    .retry_after(wait)
                    .field("limit", class.name()))
            }
            Verdict::Unknown => {
                let sentence = "This is not possible for a moment. Please try again shortly.";
                Err(Problem::of(codes::LIMIT_UNAVAILABLE, sentence).retry_after(STALE))
            }
        }
    }

    /// On routes where an ended session could do the most harm, rejects all requests while the list
    /// is stale.
    fn check_freshness(&self, route: &Route) -> Result<(), Problem> {
        match &self.revoked {
            Some(revoked) if route.needs_fresh_sessions() && !revoked.is_fresh() => Err(sessions_unknown()),
            _ => Ok(()),
        }
    }
}

/// Returns the actor for a verified token.
pub(crate) fn actor(verified: Option<&Verified>) -> Actor {
    verified.map_or(Actor::Anonymous, |verified| verified.access.actor())
}

/// A rejected token. `said` is true if the client set `Authorization` itself; otherwise a browser
/// sent its cookie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    why: Why,
    said: bool,
}

#[derive(Clone, Copy, Debug)]
enum Why {
    Token(Refusal),
    Revoked,
    /// The list of ended sessions is not loaded yet.
    Unknown,
}

impl Why {
    fn problem(self) -> Problem {
        let (code, sentence) = match self {
            Self::Token(Refusal::Expired) => {
                (codes::TOKEN_EXPIRED, "The access token has expired. Please refresh it or sign in again.")
            }
            Self::Token(Refusal::Invalid) => {
                (codes::TOKEN_INVALID, "The access token is not valid. Please sign in again.")
            }
            Self::Revoked => (codes::TOKEN_REVOKED, "This session has ended. Please sign in again."),
            Self::Unknown => return sessions_unknown(),
        };
        Problem::of(code, sentence)
    }
}

fn sessions_unknown() -> Problem {
    Problem::of(
        urr_http::codes::UNAVAILABLE,
        "Sign-in is unavailable right now. Please try again in a moment.",
    )
    .retry_after(STALE)
    .field("service", "auth")
}
