//! The checks every request passes: rate limit, access token, session freshness and access.

use std::{net::IpAddr, sync::Arc};

use http::HeaderMap;
use urr_http::{Access, Caller, Class, Entrance, Problem};
use urr_kernel::{Actor, Clock};
use urr_passes::{
    Refusal,
    access::{Verified, Verifier},
    hop,
};
use urr_telemetry::Health;

use crate::{
    address::TrustedProxies,
    codes,
    limit::{Blind, Limiter, Verdict, Who},
    origin::Origins,
    revoked::{Revoked, STALE},
    rooms::Rooms,
    slots::Slots,
    table::Route,
    token,
};

/// What the guards need.
#[derive(Clone, Debug)]
pub struct Guards {
    /// Reads access tokens.
    pub access: Verifier,
    /// Tells whether they have expired.
    pub clock: Clock,
    /// Knows requests that another gateway of ours has passed on.
    pub hops: hop::Verifier,
    /// Counts requests. `None`: nobody is counted.
    pub limiter: Option<Arc<Limiter>>,
    /// Sessions that ended. `None` where nobody can end one.
    pub revoked: Option<Arc<Revoked>>,
    /// Events in front of which people wait. `None` where nobody can say.
    pub rooms: Option<Arc<Rooms>>,
    /// Who is believed about where a request comes from.
    pub proxies: TrustedProxies,
    /// Other origins whose pages may change things here.
    pub origins: Origins,
    /// Knows who may buy. `None`: whoever is signed in.
    pub slots: Option<Arc<Slots>>,
    /// Once it drains, answers that would not end do.
    pub health: Health,
}

impl Guards {
    /// The token of whoever asks, if the request may go on. `None`: nobody has signed in. `client`: whom to count it for, if it was
    /// not. Nothing is said about a route before the request was counted.
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
        let (class, blind) = route
            .map_or((Some(Class::General), Blind::CountHere), |route| (route.policy.limit, route.blind()));
        if let (Some(class), Some(client)) = (class, client) {
            let user = actor.user().filter(|_| !route.is_some_and(Route::counts_addresses));
            let who = user.map_or_else(|| Who::address(client), Who::User);
            self.count(class, who, blind).await?;
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
            // Part of a list says nothing about a session that is not on it.
            Some(revoked) if !revoked.is_loaded() => Err(Why::Unknown),
            _ => Ok(Some(verified)),
        }
    }

    /// For which event the caller may buy. Asked where the service is: a gateway before it only passes the token on.
    pub(crate) async fn entrance(&self, headers: &HeaderMap, actor: Actor) -> Result<Entrance, Problem> {
        match &self.slots {
            Some(slots) => slots.entrance(headers, actor).await,
            None => Ok(Entrance::Open),
        }
    }

    async fn count(&self, class: Class, who: Who, blind: Blind) -> Result<(), Problem> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        match limiter.check(class, who, blind).await {
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

    /// Where an ended session could do the most harm, not knowing which ones ended means refusing all.
    fn check_freshness(&self, route: &Route) -> Result<(), Problem> {
        match &self.revoked {
            Some(revoked) if route.needs_fresh_sessions() && !revoked.is_fresh() => Err(sessions_unknown()),
            _ => Ok(()),
        }
    }
}

/// On whose behalf a request with this token runs.
pub(crate) fn actor(verified: Option<&Verified>) -> Actor {
    verified.map_or(Actor::Anonymous, |verified| verified.access.actor())
}

/// A token that is not accepted. `said`: the client sent it by itself, in `Authorization`; else a browser sent its cookie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    why: Why,
    said: bool,
}

#[derive(Clone, Copy, Debug)]
enum Why {
    Token(Refusal),
    Revoked,
    /// Nobody has said yet which sessions ended.
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
    Problem::of(codes::UNAVAILABLE, "Sign-in is unavailable right now. Please try again in a moment.")
        .retry_after(STALE)
        .field("service", "auth")
}
