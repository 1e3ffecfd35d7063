//! Places: getting one, keeping it, giving it up.

mod promises;
pub(crate) mod routes;
pub(crate) mod rules;
pub(crate) mod store;

use urr_contracts::{
    catalog::EventStatus,
    queue::{
        CheckIn, Error, EventInfo, LeaveLine, Left, Place, SlotOf, SlotState, Standing, StatusOf,
        TokenRefusal,
    },
};
use urr_kernel::{Actor, EventId, UserId};
use urr_passes::{entry, entry::Entry, queue_ticket, queue_ticket::Ticket};
use urr_rpc::Ctx;

use crate::{hall, journal::Why, notices::Admitted, room::Answer, service::Service, trouble::Trouble};

/// Puts the calling user in line, or in.
pub(crate) async fn check(service: &Service, ctx: &Ctx, request: &CheckIn) -> Result<Place, Trouble> {
    let user = signed_in(ctx)?;
    let event = request.event;
    let Some(known) = service.events.get(ctx, event).await? else {
        // Nobody knows whether there is such an event, so nobody new is taken.
        return resume_only(service, user, (event, None), Vec::new(), Error::Unavailable).await;
    };
    match known.status {
        EventStatus::Cancelled => return Err(Error::EventCancelled.into()),
        EventStatus::Ended => return Err(Error::SaleEnded.into()),
        EventStatus::Upcoming | EventStatus::OnSale => {}
    }
    let promises::Promised { promise, refused, is_taken } = promises::of(service, user, request).await?;
    if is_taken {
        let info = Some(known.info.clone());
        return resume_only(service, user, (event, info), refused, Error::PassTaken).await;
    }
    let answer = service.rooms()?.check(event, user, promise).await?;
    let most = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    match answer.standing {
        hall::Standing::Full => Err(Error::LineFull { max: most(service.limits.max_waiting) }.into()),
        hall::Standing::Elsewhere => {
            Err(Error::TooManyLines { max: most(service.limits.max_events_per_user) }.into())
        }
        _ => Ok(place(service, user, event, Some(known.info.clone()), refused, &answer)),
    }
}

/// Whoever has a place keeps it; anybody else is refused.
async fn resume_only(
    service: &Service,
    user: UserId,
    (event, info): (EventId, Option<EventInfo>),
    refused: Vec<TokenRefusal>,
    otherwise: Error,
) -> Result<Place, Trouble> {
    let answer = service.rooms()?.status(event, user).await?;
    match answer.standing {
        hall::Standing::Waiting { .. } | hall::Standing::Active { .. } => {
            Ok(place(service, user, event, info, refused, &answer))
        }
        _ => Err(otherwise.into()),
    }
}

/// How the calling user stands.
pub(crate) async fn status(service: &Service, ctx: &Ctx, request: StatusOf) -> Result<Place, Trouble> {
    let user = signed_in(ctx)?;
    let known = service.events.get(ctx, request.event).await?;
    let answer = service.rooms()?.status(request.event, user).await?;
    let info = known.map(|known| known.info.clone());
    Ok(place(service, user, request.event, info, Vec::new(), &answer))
}

/// The calling user goes.
pub(crate) async fn leave(service: &Service, ctx: &Ctx, request: LeaveLine) -> Result<Left, Trouble> {
    let user = signed_in(ctx)?;
    service.events.get(ctx, request.event).await?;
    Ok(Left { was_here: service.rooms()?.leave(request.event, user, Why::Left).await? })
}

/// Whether a slot goes on, which keeps it alive.
pub(crate) async fn slot(service: &Service, ctx: &Ctx, request: SlotOf) -> Result<SlotState, Trouble> {
    match ctx.actor {
        Actor::System => {}
        Actor::User { id, .. } if id == request.user => {}
        _ => return Err(Error::SignInRequired.into()),
    }
    let answer = service.rooms()?.status(request.event, request.user).await?;
    let open = matches!(answer.standing, hall::Standing::Active { slot, .. } if slot.id == request.slot);
    Ok(SlotState { open })
}

fn signed_in(ctx: &Ctx) -> Result<UserId, Error> {
    ctx.actor.user().ok_or(Error::SignInRequired)
}

fn place(
    service: &Service,
    user: UserId,
    event: EventId,
    info: Option<EventInfo>,
    refused: Vec<TokenRefusal>,
    answer: &Answer,
) -> Place {
    let totals = &answer.totals;
    let (standing, next_poll_secs) = match answer.standing {
        hall::Standing::Waiting { order, ahead } => {
            let position = count(ahead).saturating_add(1);
            // A ticket is good for a day from now. When its owner came is what the place tells.
            let issued = answer.now;
            let ticket = Ticket { event, user, order, epoch: totals.epoch, issued };
            let wait = rules::wait(position, totals.per_second);
            let next_poll = rules::next_poll_secs(position, &wait, &service.limits);
            let waiting = Standing::Waiting {
                position,
                wait,
                ticket: service.sign_ticket(&ticket),
                ticket_expires_at: issued.after(queue_ticket::LIFETIME),
            };
            (waiting, next_poll)
        }
        hall::Standing::Active { slot, ends } => {
            service.teller.tell(Admitted { event, user, slot: slot.id, at: answer.now });
            let expires = ends.min(answer.now.after(entry::LIFETIME));
            let entry_token = service.sign_entry(&Entry { event, user, slot: slot.id, expires });
            (Standing::Active { entry_token, token_expires_at: expires }, rules::IDLE_POLL_SECS)
        }
        hall::Standing::Absent | hall::Standing::Full | hall::Standing::Elsewhere => {
            (Standing::Absent, rules::IDLE_POLL_SECS)
        }
    };
    Place {
        event,
        info,
        standing,
        waiting: count(totals.waiting),
        active: count(totals.active),
        threshold: totals.threshold,
        paused: totals.paused,
        next_poll_secs,
        refused,
    }
}

pub(crate) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
