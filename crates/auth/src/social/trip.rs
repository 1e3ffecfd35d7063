//! Sending a browser to a provider and taking it back.

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
    port::Port,
    rules::{Knots, return_path},
    sign_up,
};
use crate::{service::Service, sessions, trouble::Trouble};

/// How long somebody may take to sign in at a provider.
const LIFETIME: Duration = Duration::from_mins(10);

/// What the browser carries.
#[derive(Debug, Serialize, Deserialize)]
struct Carried {
    provider: Provider,
    return_to: String,
    /// The account that wants the account elsewhere linked, whose owner has proved that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<UserId>,
}

/// Sends a browser to a provider to sign in.
pub(crate) async fn begin(service: &Service, request: &BeginTrip) -> Result<Trip, Trouble> {
    leave(service, request.provider, request.return_to.as_deref(), None).await
}

/// Sends a browser to a provider, to sign in or for an account that wants the account elsewhere linked.
pub(super) async fn leave(
    service: &Service,
    provider: Provider,
    return_to: Option<&str>,
    link: Option<UserId>,
) -> Result<Trip, Trouble> {
    let port = redirecting(service, provider)?;
    let carried = Carried { provider, return_to: return_path(return_to)?, link };
    let now = service.clock.now();
    let expires_at = now.after(LIFETIME);
    let slip = Sensitive::new(service.slips.trips.sign(&carried, service.ids.next(), (now, expires_at)));
    let location = port.authorize(&Knots::of(&slip), &redirect_uri(service, provider)).await;
    let location = location.map_err(|source| Trouble::Provider { provider, source })?;
    Ok(Trip { location, slip, expires_at })
}

fn redirecting(service: &Service, provider: Provider) -> Result<&Port, Error> {
    Some(service.social.port(provider)?).filter(|port| port.redirects()).ok_or(Error::ProviderOff)
}

/// Where providers send browsers back to. It must be registered with them, letter by letter.
fn redirect_uri(service: &Service, provider: Provider) -> String {
    format!("{}/api/auth/{}/callback", service.settings.site_url, provider.name())
}

/// Takes a browser back. Whatever comes of it, it cannot return a second time.
pub(crate) async fn end(service: &Service, ctx: &Ctx, request: &EndTrip) -> Result<TripEnd, Trouble> {
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
        // A slip that was planted in somebody's browser must not link what they are to another's account.
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

/// The slip is ours, in time, of this provider, and the state is the one that was made from it.
fn verify(service: &Service, slip: &Sensitive, request: &EndTrip) -> Result<Slip<Carried>, Error> {
    let trip = service.slips.trips.verify::<Carried>(slip.expose(), service.clock.now());
    let trip = trip.map_err(|_| Error::TripInvalid)?;
    let state = request.state.as_ref().map(Sensitive::expose).unwrap_or_default();
    let same = bool::from(state.as_bytes().ct_eq(Knots::of(slip).state.as_bytes()));
    if same && trip.carries.provider == request.provider { Ok(trip) } else { Err(Error::TripInvalid) }
}
