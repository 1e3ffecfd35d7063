//! A room is fair in every sequence of requests, and can be rebuilt from its journal.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::journal::{Entry, verify::Verifier};

fn user(number: u8) -> UserId {
    UserId::from_uuid(Uuid::from_u128(u128::from(number) + 1))
}

fn start() -> Timestamp {
    Timestamp::from_micros(1_790_000_000_000_000)
}

fn later(seconds: u64) -> Timestamp {
    start().after(Duration::from_secs(seconds))
}

fn limits() -> Limits {
    Limits { threshold: 2, max_waiting: 5, ..Limits::default() }
}

fn promised(order: OrderKey) -> TokenPosition {
    TokenPosition { order, epoch: Some(1), since: start() }
}

struct Room {
    model: RoomModel,
    limits: Limits,
    steps: Vec<Step>,
}

impl Room {
    fn new(limits: Limits) -> Self {
        Self { model: RoomModel::new(limits.threshold), limits, steps: Vec::new() }
    }

    fn check(&mut self, number: u8, now: Timestamp) -> UserState {
        self.come(number, &[], now).0
    }

    fn come(&mut self, number: u8, promises: &[TokenPosition], now: Timestamp) -> (UserState, Flaws) {
        let claim = Claim { promises, may_be_new: true };
        self.model.check(user(number), &claim, Some(Uuid::nil()), now, &self.limits, &mut self.steps)
    }

    fn ahead(&self, number: u8) -> Option<usize> {
        match self.model.state(user(number), &self.limits) {
            UserState::Waiting { ahead, .. } => Some(ahead),
            _ => None,
        }
    }

    fn is_in(&self, number: u8) -> bool {
        matches!(self.model.state(user(number), &self.limits), UserState::Active { .. })
    }

    fn admit(&mut self, now: Timestamp) -> usize {
        self.model.admit(100, now, &self.limits, Uuid::nil, &mut self.steps)
    }
}

#[test]
fn slots_are_given_in_order_of_arrival() {
    let mut room = Room::new(limits());
    for number in 1..=5 {
        room.check(number, start());
    }
    assert!(room.is_in(1) && room.is_in(2));
    assert_eq!([3, 4, 5].map(|number| room.ahead(number)), [Some(0), Some(1), Some(2)]);
    assert_eq!(room.admit(start()), 0);
    assert!(room.model.leave(user(1), Why::Left, start(), &mut room.steps));
    room.check(6, later(1));
    assert_eq!(room.ahead(6), Some(3), "a newcomer does not pass those who wait");
    assert_eq!(room.admit(later(1)), 1);
    assert!(room.is_in(3));
    assert_eq!(room.ahead(4), Some(0));
}

#[test]
fn polling_changes_nothing() {
    let mut room = Room::new(limits());
    for number in [1, 2, 3, 3, 1, 2, 3] {
        room.check(number, start());
    }
    assert_eq!(room.steps.len(), 3);
    assert_eq!(room.model.totals(start()).waiting, 1);
}

#[test]
fn a_slot_ends_when_idle_or_at_its_lifetime() {
    let mut room = Room::new(limits());
    room.check(1, start());
    for minute in 1..20 {
        let now = later(minute * 60);
        assert!(matches!(
            room.model.status(user(1), now, &room.limits, &mut room.steps),
            UserState::Active { ends, .. } if ends <= later(1_200)
        ));
    }
    assert_eq!(room.admit(later(1_200)), 0);
    assert!(!room.is_in(1));

    room.check(2, later(2_000));
    assert_eq!(room.admit(later(2_599)), 0);
    assert!(room.is_in(2));
    room.admit(later(2_600));
    assert!(!room.is_in(2), "ten minutes without activity");
}

#[test]
fn an_expired_slot_ends_before_the_next_sweep() {
    let mut room = Room::new(limits());
    room.check(1, start());
    let state = room.model.status(user(1), later(601), &room.limits, &mut room.steps);
    assert_eq!(state, UserState::Absent);
    assert_eq!(room.steps.last(), Some(&Step::Gone { user: user(1), why: Why::Expired }));
}

#[test]
fn idle_users_lose_their_position_and_a_ticket_restores_it() {
    let mut room = Room::new(limits());
    for number in 1..=5 {
        room.check(number, start());
    }
    let UserState::Waiting { order, .. } = room.model.state(user(3), &room.limits) else { panic!() };
    room.check(4, later(300));
    room.model.sweep(100, later(601), &room.limits, &mut room.steps);
    assert_eq!([3, 4, 5].map(|number| room.ahead(number)), [None, Some(0), None]);
    room.check(6, later(601));
    let (state, flaws) = room.come(3, &[promised(order)], later(602));
    assert_eq!(flaws, Flaws::default());
    assert!(matches!(state, UserState::Waiting { ahead: 0, .. }), "{state:?}");
    assert_eq!(room.ahead(6), Some(2));
}

#[test]
fn a_ticket_from_before_the_line_was_cleared_is_void() {
    let mut room = Room::new(limits());
    room.model.take(Step::Cleared { epoch: 2 }, start(), &mut room.steps);
    for number in 1..=3 {
        room.check(number, later(1));
    }
    let (_, flaws) = room.come(4, &[promised(OrderKey::at(start()))], later(2));
    assert_eq!(flaws, Flaws { ticket: Some(Flaw::Void), pass: None });
    assert_eq!([3, 4].map(|number| room.ahead(number)), [Some(0), Some(1)]);
}

#[test]
fn a_position_is_good_for_one_slot() {
    let mut room = Room::new(Limits { threshold: 1, ..limits() });
    let place = OrderKey::at(start());
    let pass = TokenPosition { order: place, epoch: None, since: start() };
    room.come(1, &[pass], start());
    assert!(room.is_in(1));
    room.model.leave(user(1), Why::Bought, later(1), &mut room.steps);
    room.check(2, later(1));
    room.check(3, later(2));
    for promise in [pass, promised(place), promised(OrderKey::new(1).unwrap())] {
        let (_, flaws) = room.come(1, &[promise], later(3));
        assert_eq!(flaws.ticket.or(flaws.pass), Some(Flaw::Used), "{promise:?}");
        assert_eq!(room.ahead(1), Some(1), "behind users who joined meanwhile: {promise:?}");
        room.model.leave(user(1), Why::Idle, later(3), &mut room.steps);
    }
    // Without the right to a new position, the user gets the promised one or none.
    let steps = room.steps.len();
    let alone = Claim { promises: &[promised(place)], may_be_new: false };
    let (state, _) =
        room.model.check(user(1), &alone, Some(Uuid::nil()), later(3), &room.limits, &mut room.steps);
    assert_eq!(state, UserState::Absent);
    assert_eq!(room.steps.len(), steps, "no step is recorded");
    // Another wait in Tier 1 is another position.
    let second = TokenPosition { order: place.next(), epoch: None, since: start() };
    room.come(1, &[second], later(4));
    assert_eq!(room.ahead(1), Some(0));
}

#[test]
fn the_first_promise_that_holds_counts() {
    let mut room = Room::new(Limits { threshold: 0, ..limits() });
    room.check(1, later(10));
    let [early, late] = [1, 2].map(|second| OrderKey::at(later(second)));
    let pass = |order| TokenPosition { order, epoch: None, since: start() };
    let void = TokenPosition { order: early, epoch: Some(9), since: start() };
    for (number, promises, order, ticket) in
        [(2, [void, pass(late)], late, Some(Flaw::Void)), (3, [promised(late), pass(early)], late, None)]
    {
        let (state, flaws) = room.come(number, &promises, later(11));
        assert!(matches!(state, UserState::Waiting { order: found, .. } if found == order), "{state:?}");
        assert_eq!(flaws, Flaws { ticket, pass: None });
    }
    let claim = Claim { promises: &[void], may_be_new: false };
    let came = room.model.check(user(4), &claim, Some(Uuid::nil()), later(11), &room.limits, &mut room.steps);
    assert_eq!(came, (UserState::Absent, Flaws { ticket: Some(Flaw::Void), pass: None }));
    assert_eq!(room.ahead(4), None);
}

#[test]
fn a_clock_set_back_keeps_the_order_of_arrival() {
    let mut room = Room::new(Limits { threshold: 0, ..limits() });
    room.check(1, later(3_600));
    for number in [3, 2] {
        room.check(number, start());
    }
    assert_eq!([1, 3, 2].map(|number| room.ahead(number)), [Some(0), Some(1), Some(2)]);
}

#[test]
fn a_full_line_refuses_newcomers() {
    let mut room = Room::new(limits());
    for number in 1..=7 {
        room.check(number, start());
    }
    assert_eq!(room.check(8, start()), UserState::Full);
    assert_eq!(room.check(7, start()), room.model.state(user(7), &room.limits), "a waiting user stays");
}

#[test]
fn a_paused_room_admits_no_users() {
    let mut room = Room::new(limits());
    room.model.take(Step::Paused, start(), &mut room.steps);
    room.check(1, start());
    assert_eq!((room.ahead(1), room.admit(start())), (Some(0), 0));
    room.model.take(Step::Resumed, start(), &mut room.steps);
    assert_eq!(room.admit(start()), 1);
}

proptest! {
    #[test]
    fn every_history_is_fair_and_can_be_rebuilt(
        script in prop::collection::vec((0_u8..9, 0_u8..24, 0_u64..120), 1..300),
    ) {
        let mut room = Room::new(Limits { threshold: 3, max_waiting: 12, ..Limits::default() });
        let mut verifier = Verifier::new(3);
        let (mut now, mut journal) = (start(), Vec::new());
        for (what, number, pause) in script {
            now = now.after(Duration::from_secs(pause));
            let who = user(number);
            match what {
                0..=3 => {
                    room.check(number, now);
                }
                4 => {
                    let place = TokenPosition { order: OrderKey::counted(start(), number.into()), epoch: None, since: start() };
                    room.come(number, &[place], now);
                }
                5 => {
                    room.model.leave(who, Why::Left, now, &mut room.steps);
                }
                6 => {
                    room.admit(now);
                }
                7 => room.model.sweep(5, now, &room.limits, &mut room.steps),
                _ => {
                    let threshold = u32::from(number % 5);
                    room.model.take(Step::Threshold { threshold }, now, &mut room.steps);
                }
            }
            journal.extend(room.steps.drain(..).map(|step| (now, step)));
        }
        let mut rebuilt = RoomModel::new(3);
        for (seq, (at, step)) in (1..).zip(journal) {
            verifier.read(&Entry { generation: 1, seq, at, step });
            rebuilt.apply(step, at);
        }
        let report = verifier.finish();
        prop_assert!(report.is_fair(), "{:?}", report.findings);
        prop_assert_eq!(rebuilt.totals(now), room.model.totals(now));
        for number in 0..24 {
            let id = |state| match state {
                UserState::Active { slot, .. } => (1, slot.order.as_u64()),
                UserState::Waiting { ahead, .. } => (2, u64::try_from(ahead).unwrap()),
                UserState::Absent | UserState::Full | UserState::Elsewhere => (0, 0),
            };
            let (before, after) = (room.model.state(user(number), &room.limits), rebuilt.state(user(number), &room.limits));
            prop_assert_eq!(id(before), id(after));
        }
    }
}
