//! Scenarios of users and operators.

use std::time::Duration;

use tokio::task::JoinSet;
use urr_contracts::{
    catalog::EventStatus,
    queue::{
        AuditOf, CheckIn, ClearRoom, EntryState, EntryStatus, Error, LeaveLine, Left, MyEntries, PauseRoom,
        RoomOf, SetThreshold, SlotOf, StatusOf, TokenRefusal,
    },
};
use urr_kernel::{Actor, CommonError, UserId};
use urr_passes::{entry, entry::Entries};
use urr_queue::{Limits, journal};
use urr_testkit::{STORY_LIMIT, until};
use uuid::Uuid;

use crate::stage::Stage;

pub(crate) fn ticket_of(place: &EntryStatus) -> String {
    match &place.state {
        EntryState::Waiting { ticket: Some(ticket), .. } => ticket.token.expose().to_owned(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn is_in(place: &EntryStatus) -> bool {
    matches!(place.state, EntryState::Active { .. })
}

pub(crate) async fn a_user_waits_is_admitted_and_leaves(stage: &Stage) {
    let Some(world) = stage.slots(1).await else { return };
    let [first, second, third] = [(); 3].map(|()| world.somebody());
    assert!(is_in(&world.check(first).await.unwrap()));
    for (user, expected) in [(second, 1), (third, 2)] {
        let place = world.check(user).await.unwrap();
        let EntryState::Waiting { position, wait, .. } = &place.state else { panic!("{place:?}") };
        assert_eq!((*position, place.next_poll_secs), (expected, 3));
        assert!(wait.is_some_and(|wait| wait.from_secs <= wait.secs && wait.secs <= wait.to_secs));
        assert_eq!((place.waiting, place.active, place.threshold), (expected, 1, 1));
        assert_eq!(place.info.unwrap().artist.as_deref(), Some("The Crowd"));
    }
    world.admit().await;
    assert_eq!(world.position(second).await, Some(1), "the room is full");
    let request = LeaveLine { event: world.event };
    assert_eq!(world.queue.leave(&world.ctx(first), request).await, Ok(Left { was_here: true }));
    assert_eq!(world.queue.leave(&world.ctx(first), request).await, Ok(Left { was_here: false }));
    until(STORY_LIMIT, async || {
        world.admit().await;
        is_in(&world.status(second).await)
    })
    .await;
    assert_eq!(world.position(third).await, Some(1));
    let place = world.status(second).await;
    let EntryState::Active { entry_token, token_expires_at, slot_ends_at } = place.state else { panic!() };
    assert!(slot_ends_at.is_some_and(|ends| ends > token_expires_at), "a slot lasts longer than one token");
    let entry = Entries::new([entry::key(&world.secret)]).verify(entry_token.expose(), world.clock.now());
    let entry = entry.unwrap();
    assert_eq!((entry.event, entry.user), (world.event, second));
    assert!(token_expires_at <= world.clock.now().after(Duration::from_mins(10)));
    let heard: Vec<UserId> = world.heard.all().iter().map(|admitted| admitted.user).collect();
    assert_eq!(heard, [first, second], "each admission is reported once");

    assert_eq!(world.status(first).await.state, EntryState::Absent);
    let nobody = world.acting(Actor::Anonymous);
    let refused = world.queue.status(&nobody, StatusOf { event: world.event }).await;
    assert_eq!(refused, Err(Error::Common(CommonError::SignInRequired)));
    let unknown = world.ids.next();
    assert_eq!(world.check_with(first, unknown, None, None).await, Err(Error::EventNotFound));
    for (status, error) in
        [(EventStatus::Cancelled, Error::EventCancelled), (EventStatus::Ended, Error::SaleEnded)]
    {
        let event = world.ids.next();
        world.catalog.set_status(event, status);
        assert_eq!(world.check_with(first, event, None, None).await, Err(error));
    }
    world.assert_fair().await;
}

pub(crate) async fn tickets_restore_positions(stage: &Stage) {
    let Some(world) = stage.slots(0).await else { return };
    let people: Vec<UserId> = (0..3).map(|_| world.somebody()).collect();
    let mut tickets = Vec::new();
    for user in &people {
        tickets.push(ticket_of(&world.check(*user).await.unwrap()));
    }
    world.fall_silent(people[0]).await;
    let back = world.check_with(people[0], world.event, Some(&tickets[0]), None).await.unwrap();
    assert_eq!(back.refused, []);
    assert_eq!(world.position(people[0]).await, Some(1), "the old position");
    let read = |ticket: &str| world.tickets().verify(ticket, world.clock.now()).unwrap();
    assert_eq!(
        read(&ticket_of(&back)).order,
        read(&tickets[0]).order,
        "the new ticket has the same position"
    );

    let clear = ClearRoom { event: world.event, confirmed: Some(world.event) };
    world.queue.clear(&world.admin(), clear).await.unwrap();
    world.check(people[2]).await.unwrap();
    let late = world.check_with(people[1], world.event, Some(&tickets[1]), None).await.unwrap();
    assert_eq!(late.refused, [TokenRefusal::TicketVoid]);
    assert_eq!(world.position(people[1]).await, Some(2), "a ticket from before the line was cleared is void");
    world.assert_fair().await;
}

pub(crate) async fn passes_keep_the_order_of_tier_one(stage: &Stage) {
    let Some(world) = stage.slots(0).await else { return };
    let [late, early, direct] = [(); 3].map(|()| world.somebody());
    let (second, first) = (world.pass(world.event, 2), world.pass(world.event, 1));
    world.check(direct).await.unwrap();
    world.check_with(late, world.event, None, Some(&second)).await.unwrap();
    world.check_with(early, world.event, None, Some(&first)).await.unwrap();
    assert_eq!(world.position(early).await, Some(1));
    assert_eq!(world.position(late).await, Some(2));
    assert_eq!(world.position(direct).await, Some(3), "without a pass the position is the arrival here");

    // However long Tier 1 has been open, a ticket is valid for a day from its issue.
    let ticket = ticket_of(&world.check_with(early, world.event, None, Some(&first)).await.unwrap());
    world.fall_silent(early).await;
    let back = world.check_with(early, world.event, Some(&ticket), None).await.unwrap();
    let EntryState::Waiting { position: 1, ticket: Some(ticket), .. } = back.state else {
        panic!("{back:?}")
    };
    assert_eq!(back.refused, []);
    assert!(ticket.expires_at > world.clock.now().after(Duration::from_hours(23)), "{ticket:?}");

    // A pass belongs to the first user who presents it. A copy is refused for others and stays
    // valid for its owner.
    let copycat = world.somebody();
    let copied = world.check_with(copycat, world.event, None, Some(&first)).await;
    assert_eq!(copied, Err(Error::PassTaken));
    assert_eq!(world.status(copycat).await.state, EntryState::Absent, "the copy gives no position at all");
    let own = world.check_with(copycat, world.event, None, Some(&world.pass(world.event, 3))).await.unwrap();
    assert_eq!(world.position(copycat).await, Some(3), "without the pass the user joins normally");
    // A user with a position or a ticket keeps it, whichever pass their browser sends.
    let place = world.check_with(copycat, world.event, None, Some(&first)).await.unwrap();
    assert_eq!(place.refused, [TokenRefusal::PassForeign]);
    world.fall_silent(copycat).await;
    let place = world.check_with(copycat, world.event, Some(&ticket_of(&own)), Some(&first)).await.unwrap();
    assert_eq!(place.refused, [TokenRefusal::PassForeign]);
    assert_eq!(world.position(copycat).await, Some(3));

    world.fall_silent(early).await;
    let again = world.check_with(early, world.event, None, Some(&first)).await.unwrap();
    assert_eq!(again.refused, []);
    assert_eq!(world.position(early).await, Some(1));
    world.assert_fair().await;
}

pub(crate) async fn full_lines_and_too_many_lines_are_refused(stage: &Stage) {
    let Some(world) = stage.world(Limits { threshold: 0, max_waiting: 2, ..Limits::default() }).await else {
        return;
    };
    let people: Vec<UserId> = (0..3).map(|_| world.somebody()).collect();
    world.check(people[0]).await.unwrap();
    world.check(people[1]).await.unwrap();
    let full = world.check(people[2]).await.unwrap_err();
    assert_eq!(full, Error::LineFull { max: 2 });
    assert!(urr_rpc::ServiceError::retry_after(&full).is_some());
    world.check(people[1]).await.unwrap();

    for _ in 0..2 {
        world.check_with(people[0], world.another_event(), None, None).await.unwrap();
    }
    let fourth = world.another_event();
    let refused = world.check_with(people[0], fourth, None, None).await;
    assert_eq!(refused, Err(Error::TooManyLines { max: 3 }));
    let entries = async || world.queue.entries(&world.ctx(people[0]), MyEntries {}).await.unwrap().entries;
    let found = entries().await;
    assert_eq!(found.len(), 3, "every entry is listed: {found:?}");
    assert!(found.iter().all(|entry| entry.info.is_some() && !entry.active));
    world.check(people[0]).await.unwrap();
    world.queue.leave(&world.ctx(people[0]), LeaveLine { event: world.event }).await.unwrap();
    assert!(entries().await.iter().all(|entry| entry.event != world.event));
    world.check_with(people[0], fourth, None, None).await.unwrap();
}

pub(crate) async fn concurrent_joins_respect_the_line_limit(stage: &Stage) {
    let Some(world) = stage.slots(0).await else { return };
    let user = world.somebody();
    let mut arriving = JoinSet::new();
    for _ in 0..12 {
        let (queue, ctx, event) = (world.queue.clone(), world.ctx(user), world.another_event());
        arriving.spawn(async move {
            queue
                .check(
                    &ctx,
                    CheckIn { event, ticket: None, pass: None, line_since: None, only_resume: false },
                )
                .await
        });
    }
    let answers = arriving.join_all().await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 3, "{answers:#?}");
}

/// Tier 1 was opened during a sale, and its guard lets users with a position pass.
pub(crate) async fn resuming_past_tier_one_gives_no_new_position(stage: &Stage) {
    let Some(world) = stage.slots(1).await else { return };
    let [inside, second, third] = [(); 3].map(|()| world.somebody());
    assert!(is_in(&world.check(inside).await.unwrap()));
    let tickets = [second, third].map(|user| (user, world.check(user)));
    let mut kept = Vec::new();
    for (user, place) in tickets {
        kept.push((user, ticket_of(&place.await.unwrap())));
    }
    assert!(is_in(&world.come_back(inside, None).await.unwrap()), "an entry token is enough");
    let leave = async |user| {
        world.queue.leave(&world.ctx(user), LeaveLine { event: world.event }).await.unwrap();
    };
    world.fall_silent(second).await;
    for ((user, ticket), position) in kept.iter().zip([1, 2]) {
        world.come_back(*user, Some(ticket)).await.unwrap();
        assert_eq!(world.position(*user).await, Some(position), "in their order of arrival");
    }
    assert_eq!(world.come_back(world.somebody(), None).await, Err(Error::PlaceOver { turn_used: false }));

    leave(inside).await;
    until(STORY_LIMIT, async || {
        world.admit().await;
        is_in(&world.status(second).await)
    })
    .await;
    leave(second).await;
    for ticket in [Some(&*kept[0].1), None] {
        assert_eq!(
            world.come_back(second, ticket).await,
            Err(Error::PlaceOver { turn_used: false }),
            "a position is good for one slot"
        );
    }
    assert_eq!(world.come_back(inside, None).await, Err(Error::PlaceOver { turn_used: false }));
    world.assert_fair().await;
}

pub(crate) async fn operator_commands_are_audited(stage: &Stage) {
    let Some(world) = stage.slots(0).await else { return };
    let (user, admin) = (world.somebody(), world.admin());
    world.check(user).await.unwrap();
    let event = world.event;
    for refused in [
        world.queue.room(&world.ctx(user), RoomOf { event }).await,
        world.queue.set_threshold(&world.ctx(user), SetThreshold { event, threshold: 1 }).await,
        world.queue.pause(&world.ctx(user), PauseRoom { event, paused: true }).await,
        world.queue.clear(&world.ctx(user), ClearRoom { event, confirmed: Some(event) }).await,
    ] {
        assert_eq!(refused, Err(Error::Common(CommonError::AdminRequired)));
    }
    assert_eq!(
        world.queue.audit(&world.ctx(user), AuditOf { event }).await,
        Err(Error::Common(CommonError::AdminRequired))
    );

    assert!(world.queue.pause(&admin, PauseRoom { event, paused: true }).await.unwrap().paused);
    // The audit log is ordered by time.
    world.wait(Duration::from_millis(1));
    let room = world.queue.set_threshold(&admin, SetThreshold { event, threshold: 3 }).await.unwrap();
    assert_eq!((room.threshold, room.waiting, room.active, room.paused), (3, 1, 0, true));
    world.admit().await;
    let place = world.status(user).await;
    assert!(place.paused && !is_in(&place));
    world.queue.pause(&admin, PauseRoom { event, paused: false }).await.unwrap();
    until(STORY_LIMIT, async || {
        world.admit().await;
        is_in(&world.status(user).await)
    })
    .await;

    let too_much = world.queue.set_threshold(&admin, SetThreshold { event, threshold: u32::MAX }).await;
    assert_eq!(too_much, Err(Error::BadThreshold { max: 1_000_000 }));
    for confirmed in [None, Some(world.ids.next())] {
        let refused = world.queue.clear(&admin, ClearRoom { event, confirmed }).await;
        assert_eq!(refused, Err(Error::NotConfirmed { waiting: 0, active: 1 }));
    }
    let cleared = world.queue.clear(&admin, ClearRoom { event, confirmed: Some(event) }).await.unwrap();
    assert_eq!((cleared.waiting, cleared.active, cleared.threshold), (0, 0, 3));
    assert_eq!(world.status(user).await.state, EntryState::Absent);

    let audit = world.queue.audit(&admin, AuditOf { event }).await.unwrap();
    let told: Vec<_> =
        audit.deeds.iter().map(|action| (action.what.as_str(), action.number, action.done)).collect();
    let expected =
        [("clear", None, true), ("resume", None, true), ("threshold", Some(3), true), ("pause", None, true)];
    assert_eq!(told, expected);
    assert!(audit.deeds.iter().all(|action| action.by == admin.actor.user()));
    world.assert_fair().await;
}

pub(crate) async fn slot_state_is_checked_by_owner_and_system(stage: &Stage) {
    let Some(world) = stage.slots(1).await else { return };
    let [user, other] = [(); 2].map(|()| world.somebody());
    let place = world.check(user).await.unwrap();
    let EntryState::Active { entry_token, .. } = &place.state else { panic!() };
    let entry = Entries::new([entry::key(&world.secret)]).verify(entry_token.expose(), world.clock.now());
    let slot = entry.unwrap().slot;
    let ask = async |ctx, user, slot, event| world.queue.slot(&ctx, SlotOf { event, user, slot }).await;
    let system = || world.acting(Actor::System);
    let open = |state: urr_contracts::queue::SlotState| state.open;
    assert_eq!(ask(system(), user, slot, world.event).await.map(open), Ok(true));
    assert_eq!(ask(world.ctx(user), user, slot, world.event).await.map(open), Ok(true));
    assert_eq!(
        ask(world.ctx(other), user, slot, world.event).await.map(open),
        Err(Error::Common(CommonError::SignInRequired))
    );
    assert_eq!(ask(system(), user, Uuid::nil(), world.event).await.map(open), Ok(false));
    assert_eq!(ask(system(), other, slot, world.event).await.map(open), Ok(false));
    assert_eq!(ask(system(), user, slot, world.another_event()).await.map(open), Ok(false));
    world.queue.leave(&world.ctx(user), LeaveLine { event: world.event }).await.unwrap();
    assert_eq!(ask(system(), user, slot, world.event).await.map(open), Ok(false));
    let again = world.check(user).await.unwrap();
    assert!(is_in(&again));
    assert_eq!(ask(system(), user, slot, world.event).await.map(open), Ok(false), "another slot is not open");
}

pub(crate) async fn an_empty_room_is_closed_and_opened_again(stage: &Stage) {
    let Some(mut world) = stage.slots(5).await else { return };
    let (user, event) = (world.somebody(), world.event);
    world.check(user).await.unwrap();
    world.queue.set_threshold(&world.admin(), SetThreshold { event, threshold: 7 }).await.unwrap();
    world.leave_alone(event).await;
    assert_eq!(world.tidy().await, 0, "the room is in use");
    world.queue.leave(&world.ctx(user), LeaveLine { event }).await.unwrap();
    assert_eq!(world.tidy().await, 0, "the room was in use a moment ago");
    world.leave_alone(event).await;
    assert_eq!(world.tidy().await, 1);
    assert_eq!(world.status(user).await.state, EntryState::Absent);
    world.check(user).await.unwrap();
    let place = world.status(user).await;
    assert_eq!((is_in(&place), place.threshold), (true, 7), "the operator's threshold is kept");
    world.restart().await;
    let place = world.status(user).await;
    assert_eq!((is_in(&place), place.threshold), (true, 7), "the operator's threshold survives a restart");
    world.assert_fair().await;

    world.queue.leave(&world.ctx(user), LeaveLine { event }).await.unwrap();
    world.leave_alone(event).await;
    assert_eq!(world.tidy().await, 1);
    assert_eq!(world.tidy().await, 0, "the journal of a closed room is kept");
    world.closed_long_ago(event).await;
    assert_eq!(world.tidy().await, 1);
    assert!(journal::verify(world.db(), event).await.unwrap().is_none());
}

pub(crate) async fn positions_survive_a_catalog_outage(stage: &Stage) {
    let Some(world) = stage.slots(0).await else { return };
    let [user, newcomer] = [(); 2].map(|()| world.somebody());
    world.check(user).await.unwrap();
    world.catalog.set_down(true);
    let second = Duration::from_secs(1);
    until(STORY_LIMIT, async || {
        world.wait(second);
        world.status(user).await.info.is_none()
    })
    .await;
    assert_eq!(world.position(user).await, Some(1));
    assert!(world.check(user).await.is_ok());
    assert_eq!(world.check(newcomer).await, Err(Error::Common(CommonError::Unavailable)));
    world.catalog.set_down(false);
    until(STORY_LIMIT, async || {
        world.wait(second);
        world.check(newcomer).await.is_ok()
    })
    .await;
    assert_eq!(world.position(newcomer).await, Some(2));
}

pub(crate) async fn requests_get_unavailable_until_rooms_are_rebuilt(stage: &Stage) {
    let Some(mut world) = stage.slots(0).await else { return };
    let [first, second, newcomer] = [(); 3].map(|()| world.somebody());
    for user in [first, second] {
        world.check(user).await.unwrap();
    }
    world.begin_restart().await;
    assert!(!world.service.is_open());
    for user in [second, newcomer] {
        assert_eq!(world.check(user).await.unwrap_err(), Error::Common(CommonError::Unavailable));
    }
    world.admit().await;
    world.open().await;
    assert!(world.service.is_open());
    assert_eq!([world.position(second).await, world.position(newcomer).await], [Some(2), None]);
}
