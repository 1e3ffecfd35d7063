//! Every token that must not hold: forged, expired, foreign, for another purpose or tier, or used.

use std::time::Duration;

use urr_contracts::queue::{
    ClearRoom, EntryState, EntryStatus, Error, LeaveLine, PauseRoom, SetThreshold,
    TokenRefusal::{
        self, PassExpired, PassForeign, PassInvalid, PassUsed, TicketExpired, TicketForeign, TicketInvalid,
        TicketUsed, TicketVoid,
    },
};
use urr_kernel::{OrderKey, Timestamp, UserId, VisitorId};
use urr_passes::{
    Secret, entry,
    entry::{Entries, Entry},
    queue_ticket,
    queue_ticket::{Ticket, Tickets},
    vwr_pass,
    vwr_pass::{Pass, Passes},
};
use urr_testkit::{STORY_LIMIT, until};

use crate::{
    line::{is_in, ticket_of},
    stage::Stage,
    world::World,
};

/// A token and the refusal it must get.
struct Case {
    name: &'static str,
    ticket: Option<String>,
    pass: Option<String>,
    refused: Vec<TokenRefusal>,
}

fn ticket(name: &'static str, text: impl Into<String>, refusal: TokenRefusal) -> Case {
    Case { name, ticket: Some(text.into()), pass: None, refused: vec![refusal] }
}

fn pass(name: &'static str, text: impl Into<String>, refusal: TokenRefusal) -> Case {
    Case { name, ticket: None, pass: Some(text.into()), refused: vec![refusal] }
}

fn position(place: &EntryStatus) -> u64 {
    match place.state {
        EntryState::Waiting { position, .. } => position,
        _ => panic!("{place:?}"),
    }
}

/// None of these tokens gives a position ahead of earlier users, and each is refused with its code.
pub(crate) async fn invalid_tokens_are_refused(stage: &Stage) {
    let Some(world) = &stage.slots(0).await else { return };
    let [here, cheat] = [(); 2].map(|()| world.somebody());
    use_a_place(world, cheat, None).await;
    world.check(here).await.unwrap();
    for (expected, case) in (2..).zip(cases(world, cheat, here)) {
        let (ticket, pass) = (case.ticket.as_deref(), case.pass.as_deref());
        let refused = world.come_past(cheat, ticket, pass).await;
        let turn_used = case.refused == [PassUsed];
        assert_eq!(refused, Err(Error::PlaceOver { turn_used }), "{}: while Tier 1 is open", case.name);
        let place = world.check_with(cheat, world.event, ticket, pass).await;
        let place = place.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert_eq!(place.refused, case.refused, "{}", case.name);
        assert_eq!(position(&place), expected, "{}", case.name);
        // The next case uses another user, so each one joins at the end.
        world.queue.leave(&world.ctx(cheat), LeaveLine { event: world.event }).await.unwrap();
        world.check(world.somebody()).await.unwrap();
    }
}

/// With a void or used ticket the caller is treated as without it: their pass still counts.
pub(crate) async fn a_refused_ticket_does_not_hide_the_pass(stage: &Stage) {
    let Some(world) = stage.slots(0).await else { return };
    let event = world.event;
    let [fan, direct, again, copycat] = [(); 4].map(|()| world.somebody());
    let passes = [1, 2, 3, 4].map(|nth| world.pass(event, nth));
    let come =
        async |user, ticket: &str, pass: &str| world.check_with(user, event, Some(ticket), Some(pass)).await;
    let void = ticket_of(&world.check(fan).await.unwrap());
    let clear = ClearRoom { event, confirmed: Some(event) };
    world.queue.clear(&world.admin(), clear).await.unwrap();
    world.check(direct).await.unwrap();
    let place = come(fan, &void, &passes[2]).await.unwrap();
    assert_eq!(
        (&place.refused[..], position(&place)),
        (&[TicketVoid][..], 1),
        "the pass has the earlier position"
    );

    // A valid ticket takes precedence, and the pass is still claimed for its owner. A user with
    // neither stays outside.
    let good = ticket_of(&place);
    world.fall_silent(fan).await;
    let place = come(fan, &good, &passes[3]).await.unwrap();
    assert_eq!((&place.refused[..], position(&place)), (&[][..], 1));
    let early = OrderKey::counted(world.opened, 1);
    let ticket = Ticket { event, user: copycat, order: early, epoch: 1, issued: world.clock.now() };
    for pass in &passes[2..] {
        assert_eq!(world.check_with(copycat, event, None, Some(pass)).await, Err(Error::PassTaken));
        assert_eq!(
            come(copycat, &world.ticket(&ticket), pass).await,
            Err(Error::PassTaken),
            "a void ticket does not help"
        );
    }
    assert_eq!(world.status(copycat).await.state, EntryState::Absent);

    // A user who had a slot and waited in Tier 1 again gets that position, whatever ticket they
    // still carry.
    world.queue.leave(&world.ctx(fan), LeaveLine { event }).await.unwrap();
    world.queue.leave(&world.ctx(direct), LeaveLine { event }).await.unwrap();
    use_a_place(&world, again, Some(&passes[0])).await;
    world.check(direct).await.unwrap();
    let used = world.ticket(&Ticket { user: again, epoch: 2, ..ticket });
    let place = come(again, &used, &passes[1]).await.unwrap();
    assert_eq!((&place.refused[..], position(&place)), (&[TicketUsed][..], 1));
    world.assert_fair().await;
}

pub(crate) async fn one_wait_gives_one_slot(stage: &Stage) {
    let Some(world) = stage.slots(1).await else { return };
    let [first, cheat, next] = [(); 3].map(|()| world.somebody());
    let pass = world.pass(world.event, 1);
    assert!(is_in(&world.check(first).await.unwrap()));
    // A user who joins and times out repeatedly collects tickets, but has one turn.
    let spare = ticket_of(&world.check(cheat).await.unwrap());
    world.fall_silent(cheat).await;
    let ticket = ticket_of(&world.check_with(cheat, world.event, None, Some(&pass)).await.unwrap());
    world.queue.leave(&world.ctx(first), LeaveLine { event: world.event }).await.unwrap();
    until(STORY_LIMIT, async || {
        world.admit().await;
        is_in(&world.status(cheat).await)
    })
    .await;
    world.check(next).await.unwrap();
    world.queue.pause(&world.admin(), PauseRoom { event: world.event, paused: true }).await.unwrap();
    world.queue.leave(&world.ctx(cheat), LeaveLine { event: world.event }).await.unwrap();
    let [used_ticket, used_pass] = [TokenRefusal::TicketUsed, TokenRefusal::PassUsed];
    for (ticket, pass, refused) in [
        (Some(&*ticket), None, vec![used_ticket]),
        (Some(&*spare), None, vec![used_ticket]),
        (None, Some(&*pass), vec![used_pass]),
        (Some(&*ticket), Some(&*pass), vec![used_ticket, used_pass]),
    ] {
        if pass.is_some() {
            let once_more = world.come_past(cheat, ticket, pass).await;
            assert_eq!(once_more, Err(Error::PlaceOver { turn_used: true }), "Tier 1 is open");
            assert_eq!(world.status(cheat).await.state, EntryState::Absent);
        }
        let place = world.check_with(cheat, world.event, ticket, pass).await.unwrap();
        assert_eq!(place.refused, refused);
        let again = world.check_with(cheat, world.event, ticket, pass).await.unwrap();
        assert_eq!(again.refused, refused, "also for a user who waits meanwhile");
        assert_eq!(world.position(cheat).await, Some(2), "behind users who joined meanwhile");
        world.fall_silent(cheat).await;
    }
    let waited = world.pass(world.event, 2);
    let place = world.come_past(cheat, Some(&ticket), Some(&waited)).await.unwrap();
    assert_eq!(place.refused, [used_ticket]);
    assert_eq!(world.position(cheat).await, Some(1), "another wait in Tier 1 is another position");
    world.assert_fair().await;
}

/// Else users could keep positions in more lines than `max_events_per_user` allows.
pub(crate) async fn leaving_gives_up_position_and_tickets(stage: &Stage) {
    let Some(world) = stage.slots(0).await else { return };
    let event = world.event;
    let [fan, next] = [(); 2].map(|()| world.somebody());
    let order = OrderKey::counted(world.opened, 1);
    let pass = Pass { event, visitor: world.ids.next(), order, position: 1 };
    let (passes, now) = (Passes::new([vwr_pass::key(&world.secret)]), world.clock.now());
    let pass = passes.sign_since(now.before(MINUTE), &pass, world.ids.next(), now);
    let ticket = ticket_of(&world.check_with(fan, event, None, Some(&pass)).await.unwrap());
    world.check(next).await.unwrap();
    assert_eq!(world.position(fan).await, Some(1));
    for _ in 0..2 {
        world.queue.leave(&world.ctx(fan), LeaveLine { event }).await.unwrap();
        let refused = world.come_back(fan, Some(&ticket)).await;
        assert_eq!(refused, Err(Error::PlaceOver { turn_used: false }));
        let place = world.check_with(fan, event, Some(&ticket), Some(&pass)).await.unwrap();
        assert_eq!(place.refused, [TokenRefusal::TicketUsed, TokenRefusal::PassUsed]);
        assert_eq!(world.position(fan).await, Some(2), "behind all users who stayed");
    }
    // The ticket of the new position holds until its owner leaves.
    let ticket = ticket_of(&world.check(fan).await.unwrap());
    world.fall_silent(fan).await;
    let place = world.check_with(fan, event, Some(&ticket), None).await.unwrap();
    assert_eq!(place.refused, []);
    world.assert_fair().await;
}

pub(crate) async fn a_ticket_kept_after_leaving_does_not_exceed_the_line_limit(stage: &Stage) {
    let Some(world) = stage.slots(0).await else { return };
    let (fan, ahead_of) = (world.somebody(), world.somebody());
    let mut kept = Vec::new();
    for _ in 0..6 {
        let event = world.another_event();
        let place = world.check_with(fan, event, None, None).await.unwrap();
        kept.push((event, ticket_of(&place)));
        world.check_with(ahead_of, event, None, None).await.unwrap();
        for user in [fan, ahead_of] {
            world.queue.leave(&world.ctx(user), LeaveLine { event }).await.unwrap();
        }
    }
    for (event, ticket) in kept {
        world.check_with(world.somebody(), event, None, None).await.unwrap();
        let place = world.check_with(fan, event, Some(&ticket), None).await.unwrap();
        assert_eq!(place.refused, [TokenRefusal::TicketUsed]);
        let EntryState::Waiting { position, .. } = place.state else { panic!("{place:?}") };
        assert_eq!(position, 2, "the old position is gone");
        world.queue.leave(&world.ctx(fan), LeaveLine { event }).await.unwrap();
    }
}

/// Admits a user and removes them again, which uses up their position.
async fn use_a_place(world: &World, user: UserId, pass: Option<&str>) {
    let (event, admin) = (world.event, world.admin());
    world.queue.set_threshold(&admin, SetThreshold { event, threshold: 1 }).await.unwrap();
    let place = world.check_with(user, event, None, pass).await.unwrap();
    assert!(matches!(place.state, EntryState::Active { .. }), "{place:?}");
    world.queue.leave(&world.ctx(user), LeaveLine { event }).await.unwrap();
    world.queue.set_threshold(&admin, SetThreshold { event, threshold: 0 }).await.unwrap();
}

fn cases(world: &World, cheat: UserId, here: UserId) -> Vec<Case> {
    let now = world.clock.now();
    let early = OrderKey::at(Timestamp::from_micros(1));
    let before = OrderKey::counted(world.opened.before(MINUTE), 1);
    let other_event = world.another_event();
    let strange = Secret::new("somebody else's secret of enough bytes").unwrap();
    let good = Ticket { event: world.event, user: cheat, order: early, epoch: 1, issued: now };
    let signed = world.ticket(&good);
    let (body, mark) = signed.split_at(signed.len() - 3);
    let visitor: VisitorId = world.ids.next();
    let within = OrderKey::counted(world.opened, 1);
    let good_pass = Pass { event: world.event, visitor, order: early, position: 1 };
    let sign_pass = |secret: &Secret, pass: &Pass, at| {
        Passes::new([vwr_pass::key(secret)]).sign(pass, world.ids.next(), at)
    };
    let passes = Passes::new([vwr_pass::key(&world.secret)]);
    let used_pass = Pass { order: within, ..good_pass };
    let used_pass = passes.sign_since(now.before(MINUTE), &used_pass, world.ids.next(), now);
    let slot = Entry { event: world.event, user: cheat, slot: world.ids.next(), expires: now.after(MINUTE) };
    let entry = Entries::new([entry::key(&world.secret)]).sign(&slot, world.ids.next(), now);
    let unkeyed = Tickets::new([vwr_pass::key(&world.secret)]).sign(&good);
    vec![
        ticket("no ticket at all", "hello", TicketInvalid),
        ticket("a position that the client made up", "1", TicketInvalid),
        ticket("forged", Tickets::new([queue_ticket::key(&strange)]).sign(&good), TicketInvalid),
        ticket("signed with the key of another purpose", unkeyed, TicketInvalid),
        ticket("changed", format!("{body}{}", flipped(mark)), TicketInvalid),
        ticket("cut off", body, TicketInvalid),
        ticket("of another user", world.ticket(&Ticket { user: here, ..good }), TicketForeign),
        ticket("for another event", world.ticket(&Ticket { event: other_event, ..good }), TicketForeign),
        ticket("of last week", world.ticket(&Ticket { issued: now.before(8 * DAY), ..good }), TicketExpired),
        ticket("of a line that was cleared", world.ticket(&Ticket { epoch: 0, ..good }), TicketVoid),
        ticket("used", world.ticket(&Ticket { issued: now.before(MINUTE), ..good }), TicketUsed),
        ticket("an entry token", entry.clone(), TicketInvalid),
        ticket("a pass in its place", sign_pass(&world.secret, &good_pass, now), TicketInvalid),
        pass("no pass at all", "hello", PassInvalid),
        pass("a forged pass", sign_pass(&strange, &good_pass, now), PassInvalid),
        pass(
            "a pass of an hour ago",
            sign_pass(&world.secret, &good_pass, now.before(60 * MINUTE)),
            PassExpired,
        ),
        pass(
            "a pass for another event",
            sign_pass(&world.secret, &Pass { event: other_event, ..good_pass }, now),
            PassForeign,
        ),
        pass(
            "a pass of an earlier opening",
            sign_pass(&world.secret, &Pass { order: before, ..good_pass }, now),
            PassExpired,
        ),
        pass("a used pass", used_pass, PassUsed),
        pass("an entry token instead of a pass", entry, PassInvalid),
        pass("a ticket instead of a pass", signed, PassInvalid),
    ]
}

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

fn flipped(text: &str) -> String {
    text.chars().map(|letter| if letter == 'A' { 'B' } else { 'A' }).collect()
}
