//! Test suite of the queue.
//!
//! Every story runs on rooms in memory with their journal in SQLite, and on rooms in Redis with
//! their journal in PostgreSQL. One variant calls the service over HTTP. Redis Cluster runs the
//! stories that depend on scripts and key slots; `src/room/suite.rs` tests the rooms on all stores.

#[cfg(test)]
mod away;
#[cfg(test)]
mod http;
#[cfg(test)]
mod line;
#[cfg(test)]
mod sales;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod troubles;
#[cfg(test)]
mod world;

use stage::{RoomKind, Stage};
use urr_testkit::{DbKind, Transport, statements_test, stories};

stories! {
    Stage::run;
    sqlite_local: (DbKind::Sqlite, RoomKind::Memory, Transport::Local),
    redis_local: (DbKind::Postgres, RoomKind::Redis, Transport::Local),
    redis_remote: (DbKind::Postgres, RoomKind::Redis, Transport::Remote);

    line:
        a_user_waits_is_admitted_and_leaves,
        tickets_restore_positions,
        passes_keep_the_order_of_tier_one,
        resuming_past_tier_one_gives_no_new_position,
        full_lines_and_too_many_lines_are_refused,
        concurrent_joins_respect_the_line_limit,
        operator_commands_are_audited,
        slot_state_is_checked_by_owner_and_system,
        an_empty_room_is_closed_and_opened_again,
        positions_survive_a_catalog_outage,
        requests_get_unavailable_until_rooms_are_rebuilt;
    sales:
        users_wait_before_the_sale_without_admissions,
        a_finished_sale_stops_admissions_with_an_error,
        a_purchase_frees_the_slot,
        a_room_follows_the_setting_until_an_operator_decides;
    tokens:
        invalid_tokens_are_refused,
        a_refused_ticket_does_not_hide_the_pass,
        one_wait_gives_one_slot,
        leaving_gives_up_position_and_tickets,
        a_ticket_kept_after_leaving_does_not_exceed_the_line_limit;
}

// The keys of a user and of several events are in different slots.
stories! {
    Stage::run;
    cluster: (DbKind::Postgres, RoomKind::Cluster, Transport::Local);

    line:
        a_user_waits_is_admitted_and_leaves,
        full_lines_and_too_many_lines_are_refused,
        concurrent_joins_respect_the_line_limit,
        operator_commands_are_audited,
        an_empty_room_is_closed_and_opened_again;
    sales:
        a_purchase_frees_the_slot;
    tokens:
        one_wait_gives_one_slot,
        leaving_gives_up_position_and_tickets,
        a_ticket_kept_after_leaving_does_not_exceed_the_line_limit;
    troubles:
        a_failing_room_does_not_stop_others;
}

// These stories need the service in this process.
stories! {
    Stage::run;
    sqlite: (DbKind::Sqlite, RoomKind::Memory, Transport::Local),
    redis: (DbKind::Postgres, RoomKind::Redis, Transport::Local);

    http:
        position_json_has_the_documented_fields,
        my_lists_the_rooms_of_the_user,
        no_wait_estimate_while_admissions_are_stopped,
        a_pass_of_an_earlier_opening_is_refused,
        a_pass_of_another_account_is_refused_and_its_cookies_deleted,
        cookies_of_an_unusable_position_are_deleted,
        cookies_of_a_used_turn_are_deleted_and_others_kept,
        operator_json_has_the_documented_fields,
        the_live_view_starts_with_history,
        every_route_requires_its_role;
}

stories! {
    Stage::run;
    redis_only: (DbKind::Postgres, RoomKind::Redis, Transport::Local);

    troubles:
        a_failing_room_does_not_stop_others;
}

// Outages of Redis, with the journal in each engine.
stories! {
    Stage::run;
    sqlite_proxied: (DbKind::Sqlite, RoomKind::Proxied, Transport::Local),
    postgres_proxied: (DbKind::Postgres, RoomKind::Proxied, Transport::Local),
    postgres_proxied_remote: (DbKind::Postgres, RoomKind::Proxied, Transport::Remote);

    away:
        slots_stay_valid_and_admissions_stop_without_redis,
        slots_are_unknown_without_redis_and_journal,
        a_redis_that_answers_is_not_unreachable;
}

statements_test!(urr_queue::DOMAIN, [&urr_queue::statements()[..], world::STATEMENTS].concat());
