//! The redirect flow: sending a browser to a provider and handling its return.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;
use urr_contracts::auth::{BeginTrip, EndTrip, Error, Provider, Sensitive, Trip, TripEnd, TripOutcome};
use urr_db::{Tx, transaction};
use urr_kernel::UserId;
use urr_passes::slip::Slip;
use urr_rpc::Ctx;

use super::{
    enter, linking,
    once::Once,
    port::{Port, no_answer},
    rules::{Knots, return_path},
    sign_up,
};
use crate::{Failure, service::Service, sessions};

/// How long a user may take to sign in at a provider.
const LIFETIME: Duration = Duration::from_mins(10);

/// The slip's content.
#[derive(Debug, Serialize, Deserialize)]
struct Carried {
    provider: Provider,
    return_to: String,
    /// The account to link, whose owner has confirmed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<UserId>,
}

/// Starts the redirect flow for a sign-in.
pub(crate) async fn begin(service: &Service, request: &BeginTrip) -> Result<Trip, Failure> {
    leave(service, request.provider, request.return_to.as_deref(), None).await
}

/// Starts the redirect flow, for a sign-in or to link an account.
pub(super) async fn leave(
    service: &Service,
    provider: Provider,
    return_to: Option<&str>,
    link: Option<UserId>,
) -> Result<Trip, Failure> {
    let port = redirecting(service, provider)?;
    let carried = Carried { provider, return_to: return_path(return_to)?, link };
    let now = service.clock.now();
    let expires_at = now.after(LIFETIME);
    let slip = Sensitive::new(service.slips.trips.sign(&carried, service.ids.next(), (now, expires_at)));
    let location = port.authorize(&Knots::of(&slip), &redirect_uri(service, provider)).await;
    let location = location.map_err(|source| no_answer(provider, source))?;
    Ok(Trip { location, slip, expires_at })
}

fn redirecting(service: &Service, provider: Provider) -> Result<&Port, Error> {
    Some(service.social.port(provider)?).filter(|port| port.redirects()).ok_or(Error::ProviderOff)
}

/// The callback URL. It must be registered with the provider, exactly as written.
fn redirect_uri(service: &Service, provider: Provider) -> String {
    format!("{}/api/auth/{}/callback", service.settings.site_url, provider.name())
}

/// Handles the return of a browser. The slip is used up in any case.
pub(crate) async fn end(service: &Service, ctx: &Ctx, request: &EndTrip) -> Result<TripEnd, Failure> {
    let port = redirecting(service, request.provider)?;
    let slip = request.slip.as_ref().ok_or(Error::TripInvalid)?;
    let (trip, knots) = (verify(service, slip, request)?, Knots::of(slip));
    let now = service.clock.now();
    let once = Once::slip(service, trip.id, trip.expires, Error::TripInvalid);
    transaction!(service.db, "auth.social.return", async |tx: &mut Tx<'_>| once.spend(service, tx).await)?;
    if request.refusal.is_some() {
        return Err(Error::TripRefused.into());
    }
    let code = request.code.as_ref().ok_or(Error::TripInvalid)?;
    let profile = port.identify(code, &knots, &redirect_uri(service, port.provider), now).await;
    let profile = profile.map_err(|unknown| unknown.because_of(port.provider, Error::TripInvalid))?;
    let Carried { return_to, link, .. } = trip.carries;
    let origin = sessions::rules::clean(&request.origin);
    let outcome = match link {
        // A slip planted in another user's browser must not link that user's provider account.
        Some(account) if ctx.actor.user() != Some(account) => return Err(Error::TripInvalid.into()),
        Some(account) => {
            TripOutcome::Linked { linked: linking::link_proved(service, account, &profile).await? }
        }
        None => match enter(service, &profile, None, &origin).await? {
            Some(login) => TripOutcome::Login { login },
            None => TripOutcome::SignUp { offer: Box::new(sign_up::offer(service, profile).await?) },
        },
    };
    Ok(TripEnd { return_to, outcome })
}

/// Verifies the slip, its provider and the state derived from it.
fn verify(service: &Service, slip: &Sensitive, request: &EndTrip) -> Result<Slip<Carried>, Error> {
    let trip = service.slips.trips.verify::<Carried>(slip.expose(), service.clock.now());
    let trip = trip.map_err(|_| Error::TripInvalid)?;
    let state = request.state.as_ref().map(Sensitive::expose).unwrap_or_default();
    let same = bool::from(state.as_bytes().ct_eq(Knots::of(slip).state.as_bytes()));
    if same && trip.carries.provider == request.provider { Ok(trip) } else { Err(Error::TripInvalid) }
}
