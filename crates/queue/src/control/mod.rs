//! Operator commands: look, set the threshold, pause, resume, clear. All but looking are written to
//! the audit log first.

pub(crate) mod live;
pub(crate) mod routes;
pub(crate) mod store;

use urr_contracts::queue::{
    Audit, AuditOf, ClearRoom, Error, MAX_ACTIONS, MAX_THRESHOLD, PauseRoom, RoomOf, RoomState, SetThreshold,
};
use urr_db::{Tx, transaction};
use urr_kernel::EventId;
use urr_rpc::Ctx;

use crate::{Failure, positions::count, room::Order, room_model::Totals, service::Service};
use store::{Action, Asked};

/// The state of a room.
pub(crate) async fn look(service: &Service, ctx: &Ctx, request: RoomOf) -> Result<RoomState, Failure> {
    operator(service, ctx, request.event).await?;
    let totals = service.rooms()?.order(request.event, Order::Look).await?;
    Ok(state(request.event, &totals))
}

/// Sets the number of slots. Active slots are kept, even above the new number.
pub(crate) async fn set_threshold(
    service: &Service,
    ctx: &Ctx,
    request: SetThreshold,
) -> Result<RoomState, Failure> {
    operator(service, ctx, request.event).await?;
    if request.threshold > MAX_THRESHOLD {
        return Err(Error::BadThreshold { max: MAX_THRESHOLD }.into());
    }
    let (action, number) = (Action::Threshold, Some(request.threshold));
    act(service, ctx, request.event, (action, number), Order::Threshold(request.threshold)).await
}

/// Pauses or resumes admissions.
pub(crate) async fn pause(service: &Service, ctx: &Ctx, request: PauseRoom) -> Result<RoomState, Failure> {
    operator(service, ctx, request.event).await?;
    let (action, order) =
        if request.paused { (Action::Pause, Order::Pause) } else { (Action::Resume, Order::Resume) };
    act(service, ctx, request.event, (action, None), order).await
}

/// Removes all users.
pub(crate) async fn clear(service: &Service, ctx: &Ctx, request: ClearRoom) -> Result<RoomState, Failure> {
    operator(service, ctx, request.event).await?;
    if request.confirmed != Some(request.event) {
        let totals = service.rooms()?.order(request.event, Order::Look).await?;
        let (waiting, active) = (count(totals.waiting), count(totals.active));
        return Err(Error::NotConfirmed { waiting, active }.into());
    }
    act(service, ctx, request.event, (Action::Clear, None), Order::Clear).await
}

/// The audit log.
pub(crate) async fn audit(service: &Service, ctx: &Ctx, request: AuditOf) -> Result<Audit, Failure> {
    operator(service, ctx, request.event).await?;
    let deeds = service.db.read("queue.audit", async |tx: &mut Tx<'_>| {
        Ok::<_, Failure>(store::newest(tx, request.event, MAX_ACTIONS).await?)
    });
    Ok(Audit { deeds: deeds.await? })
}

/// Returns an error unless the caller may watch the room.
pub(crate) async fn may_watch(service: &Service, ctx: &Ctx, event: EventId) -> Result<(), Error> {
    operator(service, ctx, event).await.map_err(|failure| ctx.reveal("live", failure))
}

/// Returns an error unless the caller is an admin and the event exists.
async fn operator(service: &Service, ctx: &Ctx, event: EventId) -> Result<(), Failure> {
    ctx.require_admin()?;
    service.events.get(ctx, event).await?;
    Ok(())
}

/// Writes the audit entry, executes the command, and marks the entry as done. Without an entry
/// nothing is executed.
async fn act(
    service: &Service,
    ctx: &Ctx,
    event: EventId,
    (action, number): (Action, Option<u32>),
    order: Order,
) -> Result<RoomState, Failure> {
    let room = service.rooms()?;
    let (id, at, by) = (service.ids.next(), service.clock.now(), ctx.actor.user());
    let asked = Asked { id, event, at, by, action, number };
    transaction!(service.db, "queue.ask", async |tx: &mut Tx<'_>| {
        Ok::<_, Failure>(store::ask(tx, &asked).await?)
    })?;
    let totals = room.order(event, order).await?;
    transaction!(service.db, "queue.done", async |tx: &mut Tx<'_>| {
        Ok::<_, Failure>(store::done(tx, id).await?)
    })?;
    tracing::info!(%event, action = action.as_str(), number, by = ?by, "operator changed a waiting room");
    Ok(state(event, &totals))
}

fn state(event: EventId, totals: &Totals) -> RoomState {
    RoomState {
        event,
        waiting: count(totals.waiting),
        active: count(totals.active),
        threshold: totals.threshold,
        paused: totals.paused,
        admitted_per_second: totals.per_second,
    }
}
