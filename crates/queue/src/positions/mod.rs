//! Positions and slots of users: join, resume, poll, leave.

mod away;
pub(crate) mod routes;
pub(crate) mod rules;
pub(crate) mod store;
mod token_positions;

use urr_contracts::queue::{
    CheckIn, EntryState, EntryStatus, Error, LeaveLine, Left, QueueEntries, QueueEntry, QueueTicket, SlotOf,
    SlotState, StatusOf, TokenRefusal,
};
use urr_kernel::{Actor, CommonError, EventId, UserId};
use urr_passes::{entry, entry::Entry, queue_ticket, queue_ticket::Ticket};
use urr_rpc::Ctx;

use self::rules::Outlook;
use crate::{
    Failure,
    events::CachedEvent,
    journal::Why,
    notices::Admitted,
    room::{Admissions, Answer},
    room_model,
    service::Service,
    token_position::{Claim, Flaw},
};

/// Joins the line for the calling user, or admits them at once.
pub(crate) async fn check(service: &Service, ctx: &Ctx, request: &CheckIn) -> Result<EntryStatus, Failure> {
    let user = ctx.user()?;
    let event = request.event;
    let Some(known) = service.events.get(ctx, event).await? else {
        // The catalog is unreachable, so it is unknown whether the event exists: only known users
        // are served.
        return resume_only(
            service,
            user,
            (event, None),
            Vec::new(),
            Error::Common(CommonError::Unavailable),
        )
        .await;
    };
    if let Some(over) = known.is_over() {
        return Err(over.into());
    }
    let token_positions::Promised { promises, mut refused, is_taken } =
        token_positions::of(service, user, request).await?;
    if is_taken && promises.is_empty() {
        return resume_only(service, user, (event, Some(&known)), refused, Error::PassTaken).await;
    }
    if request.only_resume && promises.is_empty() {
        let over = Error::PlaceOver { turn_used: false };
        return resume_only(service, user, (event, Some(&known)), refused, over).await;
    }
    // Users who come before the sale opens wait in order of arrival; there are no admissions yet.
    let admissions = if known.opens_at().is_some() { Admissions::Closed } else { Admissions::Open };
    let claim = Claim { promises: &promises, may_be_new: !is_taken && !request.only_resume };
    let answer = service.rooms()?.come(event, user, &claim, admissions).await?;
    let turn_used = answer.flaws.pass == Some(Flaw::Used);
    refused.extend(token_positions::broken(answer.flaws));
    let most = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    match answer.state {
        room_model::UserState::Full => Err(Error::LineFull { max: most(service.limits.max_waiting) }.into()),
        room_model::UserState::Absent if is_taken => Err(Error::PassTaken.into()),
        room_model::UserState::Elsewhere => {
            Err(Error::TooManyLines { max: most(service.limits.max_events_per_user) }.into())
        }
        // The position was used or cleared, or the Tier 1 pass was used.
        room_model::UserState::Absent => Err(Error::PlaceOver { turn_used }.into()),
        _ => Ok(place_given(service, user, (event, Some(&known)), refused, &answer)),
    }
}

/// Returns the position or slot of a user who has one, else the given error.
async fn resume_only(
    service: &Service,
    user: UserId,
    (event, known): (EventId, Option<&CachedEvent>),
    refused: Vec<TokenRefusal>,
    otherwise: Error,
) -> Result<EntryStatus, Failure> {
    let answer = service.rooms()?.status(event, user).await?;
    match answer.state {
        room_model::UserState::Waiting { .. } | room_model::UserState::Active { .. } => {
            Ok(place_given(service, user, (event, known), refused, &answer))
        }
        _ => Err(otherwise.into()),
    }
}

/// The calling user's state.
pub(crate) async fn status(service: &Service, ctx: &Ctx, request: StatusOf) -> Result<EntryStatus, Failure> {
    let user = ctx.user()?;
    let event = request.event;
    let known = service.events.get(ctx, event).await?;
    if let Some(over) = known.as_ref().and_then(|known| known.is_over()) {
        return Err(over.into());
    }
    let answer = service.rooms()?.status(event, user).await?;
    Ok(place(service, user, (event, known.as_deref()), Vec::new(), &answer))
}

/// Removes the calling user.
pub(crate) async fn leave(service: &Service, ctx: &Ctx, request: LeaveLine) -> Result<Left, Failure> {
    let user = ctx.user()?;
    service.events.get(ctx, request.event).await?;
    Ok(Left { was_here: service.rooms()?.leave(request.event, user, Why::Left).await? })
}

/// The events in whose rooms the calling user is.
pub(crate) async fn entries(service: &Service, ctx: &Ctx) -> Result<QueueEntries, Failure> {
    let user = ctx.user()?;
    let mut entries = Vec::new();
    for (event, active) in service.rooms()?.entries(user).await? {
        // An event that was deleted meanwhile still counts towards the limit, so its entry must be
        // listed.
        let known = service.events.get(ctx, event).await.ok().flatten();
        entries.push(QueueEntry { event, info: known.map(|known| known.info.clone()), active });
    }
    Ok(QueueEntries { entries })
}

/// Whether a slot is active. Counts as activity.
pub(crate) async fn slot(service: &Service, ctx: &Ctx, request: SlotOf) -> Result<SlotState, Failure> {
    match ctx.actor {
        Actor::System => {}
        Actor::User { id, .. } if id == request.user => {}
        _ => return Err(CommonError::SignInRequired.into()),
    }
    let open = match service.rooms()?.status_unless_away(request.event, request.user).await? {
        Some(Answer { state: room_model::UserState::Active { slot, .. }, .. }) => slot.id == request.slot,
        Some(_) => false,
        None => away::goes_on(service, request).await?,
    };
    Ok(SlotState { open })
}

fn place(
    service: &Service,
    user: UserId,
    (event, known): (EventId, Option<&CachedEvent>),
    refused: Vec<TokenRefusal>,
    answer: &Answer,
) -> EntryStatus {
    let totals = &answer.totals;
    let opens_at = known.and_then(CachedEvent::opens_at);
    let shut_secs = opens_at.map_or(0, |opens| opens.since(answer.now).as_secs());
    let (state, next_poll_secs) = match answer.state {
        room_model::UserState::Waiting { ahead, .. } => {
            let position = count(ahead).saturating_add(1);
            let wait = rules::wait(position, &Outlook::of(totals, &service.limits));
            let next_poll = rules::next_poll_secs(position, &wait, shut_secs, &service.limits);
            let is_stopped = totals.paused || totals.threshold == 0;
            let wait = (!is_stopped).then(|| rules::after(shut_secs, wait));
            (EntryState::Waiting { position, wait, ticket: None }, next_poll)
        }
        room_model::UserState::Active { slot, ends } => {
            service.teller.tell(Admitted { event, user, slot: slot.id, at: answer.now });
            let expires = ends.min(answer.now.after(entry::LIFETIME));
            let entry_token = service.sign_entry(&Entry { event, user, slot: slot.id, expires });
            let slot_ends_at = Some(slot.since.after(service.limits.slot_total));
            let state = EntryState::Active { entry_token, token_expires_at: expires, slot_ends_at };
            (state, rules::IDLE_POLL_SECS)
        }
        room_model::UserState::Absent | room_model::UserState::Full | room_model::UserState::Elsewhere => {
            (EntryState::Absent, rules::IDLE_POLL_SECS)
        }
    };
    EntryStatus {
        event,
        info: known.map(|known| known.info.clone()),
        opens_at,
        state,
        waiting: count(totals.waiting),
        active: count(totals.active),
        threshold: totals.threshold,
        paused: totals.paused,
        next_poll_secs,
        refused,
    }
}

/// The state of a user who has just joined, with a ticket that restores their position.
fn place_given(
    service: &Service,
    user: UserId,
    (event, known): (EventId, Option<&CachedEvent>),
    refused: Vec<TokenRefusal>,
    answer: &Answer,
) -> EntryStatus {
    let mut place = place(service, user, (event, known), refused, answer);
    if let (EntryState::Waiting { ticket, .. }, room_model::UserState::Waiting { order, .. }) =
        (&mut place.state, answer.state)
    {
        // A ticket is valid for a day from now; the order key says when its owner joined.
        let (epoch, issued) = (answer.totals.epoch, answer.now);
        let token = service.sign_ticket(&Ticket { event, user, order, epoch, issued });
        *ticket = Some(QueueTicket { token, expires_at: issued.after(queue_ticket::LIFETIME) });
    }
    place
}

pub(crate) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
