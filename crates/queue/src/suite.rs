//! The stories of the line, told in every kind of room, by the service itself and across HTTP.

mod away;
mod catalog;
mod http;
mod sales;
mod stories;
mod tokens;
mod troubles;
mod world;

use std::time::Duration;

use urr_contracts::queue::Error;
use urr_testkit::within;

pub(crate) use world::{RoomKind, Transport, World};

use crate::settings::Limits;

/// Far more than any story takes.
const LIMIT: Duration = Duration::from_mins(1);

macro_rules! matrix {
    ($($story:ident: $limits:expr;)*) => {$(
        mod $story {
            use super::{LIMIT, Limits, RoomKind, Transport, World, stories, within};

            async fn tell(room: RoomKind, transport: Transport) {
                if let Some(world) = World::new(room, transport, $limits).await {
                    within(LIMIT, stories::$story(world)).await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn memory_local() {
                tell(RoomKind::Memory, Transport::Local).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn memory_remote() {
                tell(RoomKind::Memory, Transport::Remote).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn memory_on_postgres_local() {
                tell(RoomKind::MemoryOnPostgres, Transport::Local).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn redis_local() {
                tell(RoomKind::Redis, Transport::Local).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn redis_remote() {
                tell(RoomKind::Redis, Transport::Remote).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn cluster_local() {
                tell(RoomKind::Cluster, Transport::Local).await;
            }
        }
    )*};
}

matrix! {
    somebody_waits_is_let_in_and_goes: Limits { threshold: 1, ..Limits::default() };
    tickets_bring_places_back: Limits { threshold: 0, ..Limits::default() };
    leaving_gives_the_place_up: Limits { threshold: 0, ..Limits::default() };
    a_ticket_kept_after_leaving_opens_no_further_line: Limits { threshold: 0, ..Limits::default() };
    passes_carry_the_order_of_tier_one_over: Limits { threshold: 0, ..Limits::default() };
    a_ticket_that_promises_nothing_hides_no_pass: Limits { threshold: 0, ..Limits::default() };
    one_wait_is_one_turn: Limits { threshold: 1, ..Limits::default() };
    whoever_comes_past_tier_one_for_a_place_gets_that_or_none: Limits { threshold: 1, ..Limits::default() };
    tokens_of_others_are_worth_nothing: Limits { threshold: 0, ..Limits::default() };
    a_full_line_and_too_many_lines_say_so: Limits { threshold: 0, max_waiting: 2, ..Limits::default() };
    one_user_arriving_everywhere_at_once_stands_in_three_lines: Limits { threshold: 0, ..Limits::default() };
    who_comes_and_who_is_let_in_is_counted: Limits { threshold: 1, ..Limits::default() };
    operators_decide_and_are_remembered: Limits { threshold: 0, ..Limits::default() };
    a_purchase_frees_the_slot: Limits { threshold: 1, ..Limits::default() };
    one_room_that_fails_stops_no_other: Limits { threshold: 1, ..Limits::default() };
    guards_ask_for_slots: Limits { threshold: 1, ..Limits::default() };
    an_empty_room_is_closed_and_opened_again: Limits { threshold: 5, ..Limits::default() };
    without_the_catalog_nobody_loses_a_place: Limits { threshold: 0, ..Limits::default() };
    before_a_sale_people_take_places_and_nobody_comes_in: Limits { threshold: 2, ..Limits::default() };
    a_room_follows_the_setting_until_an_operator_decides: Limits { threshold: 1, ..Limits::default() };
    a_sale_that_is_over_lets_nobody_in_and_says_so: Limits { threshold: 1, ..Limits::default() };
}

#[tokio::test]
async fn while_places_are_read_back_nobody_is_told_that_they_have_none() {
    let limits = Limits { threshold: 0, ..Limits::default() };
    let mut world = World::new(RoomKind::Memory, Transport::Local, limits).await.unwrap();
    let [first, second, newcomer] = [(); 3].map(|()| world.somebody());
    for user in [first, second] {
        world.check(user).await.unwrap();
    }
    world.begin_restart().await;
    assert!(!world.service.is_open());
    for user in [second, newcomer] {
        assert_eq!(world.check(user).await.unwrap_err(), Error::Unavailable);
    }
    world.admit().await;
    world.open().await;
    assert!(world.service.is_open());
    assert_eq!([world.position(second).await, world.position(newcomer).await], [Some(2), None]);
}
