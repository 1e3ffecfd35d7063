//! Test suite of the service: every scenario runs on every backend, locally and over HTTP.

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
use urr_kernel::CommonError;
use urr_testkit::within;

pub(crate) use world::{RoomKind, Transport, World};

use crate::settings::Limits;

/// Upper bound for one test; all of them finish far sooner.
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
    a_user_waits_is_admitted_and_leaves: Limits { threshold: 1, ..Limits::default() };
    tickets_restore_positions: Limits { threshold: 0, ..Limits::default() };
    leaving_gives_up_position_and_tickets: Limits { threshold: 0, ..Limits::default() };
    a_ticket_kept_after_leaving_does_not_exceed_the_line_limit: Limits { threshold: 0, ..Limits::default() };
    passes_keep_the_order_of_tier_one: Limits { threshold: 0, ..Limits::default() };
    a_refused_ticket_does_not_hide_the_pass: Limits { threshold: 0, ..Limits::default() };
    one_wait_gives_one_slot: Limits { threshold: 1, ..Limits::default() };
    resuming_past_tier_one_gives_no_new_position: Limits { threshold: 1, ..Limits::default() };
    invalid_tokens_are_refused: Limits { threshold: 0, ..Limits::default() };
    full_lines_and_too_many_lines_are_refused: Limits { threshold: 0, max_waiting: 2, ..Limits::default() };
    concurrent_joins_respect_the_line_limit: Limits { threshold: 0, ..Limits::default() };
    arrivals_and_admissions_are_counted: Limits { threshold: 1, ..Limits::default() };
    operator_commands_are_audited: Limits { threshold: 0, ..Limits::default() };
    a_purchase_frees_the_slot: Limits { threshold: 1, ..Limits::default() };
    a_failing_room_does_not_stop_others: Limits { threshold: 1, ..Limits::default() };
    slot_state_is_checked_by_owner_and_system: Limits { threshold: 1, ..Limits::default() };
    an_empty_room_is_closed_and_opened_again: Limits { threshold: 5, ..Limits::default() };
    positions_survive_a_catalog_outage: Limits { threshold: 0, ..Limits::default() };
    users_wait_before_the_sale_without_admissions: Limits { threshold: 2, ..Limits::default() };
    a_room_follows_the_setting_until_an_operator_decides: Limits { threshold: 1, ..Limits::default() };
    a_finished_sale_stops_admissions_with_an_error: Limits { threshold: 1, ..Limits::default() };
}

#[tokio::test]
async fn requests_get_unavailable_until_rooms_are_rebuilt() {
    let limits = Limits { threshold: 0, ..Limits::default() };
    let mut world = World::new(RoomKind::Memory, Transport::Local, limits).await.unwrap();
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
