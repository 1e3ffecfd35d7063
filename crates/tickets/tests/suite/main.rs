//! Test suite of tickets.
//!
//! Every story runs on SQLite with the gate in memory, and on PostgreSQL with the gate in Redis. One
//! variant calls the service over HTTP. Redis Cluster runs the stories whose claims of several seats
//! use the scripts of the gate; `src/gate/suite.rs` tests the gate itself on all stores.

#[cfg(test)]
mod holds;
#[cfg(test)]
mod http;
#[cfg(test)]
mod race;
#[cfg(test)]
mod sweep;
#[cfg(test)]
mod world;

use urr_testkit::{DbKind, Transport, statements_test, stories};
use world::{GateKind, World};

stories! {
    World::run;
    sqlite_local: (DbKind::Sqlite, GateKind::Memory, Transport::Local),
    postgres_local: (DbKind::Postgres, GateKind::Redis, Transport::Local),
    postgres_remote: (DbKind::Postgres, GateKind::Memory, Transport::Remote);

    holds:
        a_hold_keeps_its_seats_prices_and_time,
        all_seats_or_none,
        a_buyer_holds_at_most_four_seats_on_all_devices,
        invalid_requests_have_their_own_errors_and_change_nothing,
        holds_outside_the_sale_window_are_rejected,
        the_same_key_gets_the_same_answer,
        a_retry_after_the_sale_gets_the_original_answer,
        a_retry_is_answered_while_the_catalog_is_down,
        concurrent_retries_make_one_reservation,
        a_retry_among_rejected_holds_gets_its_reservation,
        released_seats_are_free_and_their_fence_grows,
        an_expired_hold_frees_its_seats,
        the_sweep_does_not_free_a_seat_claimed_after_expiry,
        a_buyers_expired_holds_do_not_count_towards_the_limit,
        a_reservation_is_private_to_its_buyer,
        reservations_are_listed_newest_first_by_page,
        every_change_is_published_once_in_order,
        concurrent_claims_are_batched;
    race: exactly_one_buyer_wins_each_seat;
}

// Several seats of one event must be in one slot of the Cluster, and without Redis the database
// decides alone.
stories! {
    World::run;
    postgres_cluster: (DbKind::Postgres, GateKind::Cluster, Transport::Local),
    sqlite_without_redis: (DbKind::Sqlite, GateKind::RedisDown, Transport::Local),
    postgres_without_redis: (DbKind::Postgres, GateKind::RedisDown, Transport::Local);

    holds:
        all_seats_or_none,
        a_buyer_holds_at_most_four_seats_on_all_devices,
        the_same_key_gets_the_same_answer,
        concurrent_retries_make_one_reservation,
        released_seats_are_free_and_their_fence_grows,
        an_expired_hold_frees_its_seats,
        concurrent_claims_are_batched;
    race: exactly_one_buyer_wins_each_seat;
}

// These stories need the service in this process.
stories! {
    World::run;
    sqlite: (DbKind::Sqlite, GateKind::Memory, Transport::Local),
    postgres: (DbKind::Postgres, GateKind::Redis, Transport::Local);

    http:
        a_reservation_has_the_documented_field_names,
        a_key_in_the_header_equals_one_in_the_body,
        two_different_keys_are_rejected_without_a_change,
        an_invalid_key_in_the_header_is_rejected_without_a_change,
        routes_that_need_a_user_reject_anonymous_requests,
        malformed_requests_are_a_400_with_an_error_code,
        an_unchanged_map_is_a_304;
}

// SQLite has a single writer: no row locks, no deadlocks, and no races between processes.
stories! {
    World::run;
    without_the_gate: (DbKind::Postgres, GateKind::AlwaysOpen, Transport::Local);

    race:
        exactly_one_buyer_wins_each_seat,
        the_seat_limit_holds_across_processes,
        concurrent_release_expiry_and_hold_keep_all_counts_correct;
    sweep: a_locked_row_does_not_stop_the_sweep;
}

stories! {
    World::run_damaged;
    deadlocks: (DbKind::Postgres, GateKind::AlwaysOpen, Transport::Local);

    race: locking_in_different_orders_deadlocks_and_is_counted;
}

stories! {
    World::run_damaged;
    sqlite_damaged: (DbKind::Sqlite, GateKind::Memory, Transport::Local),
    postgres_damaged: (DbKind::Postgres, GateKind::Redis, Transport::Local);

    sweep:
        bad_rows_do_not_stop_the_sweep,
        unreadable_rows_do_not_stop_the_sweep,
        a_buyer_with_an_unreadable_hold_can_still_buy;
}

statements_test!(
    urr_tickets::DOMAIN,
    [&urr_tickets::statements()[..], race::STATEMENTS, sweep::STATEMENTS, world::STATEMENTS].concat()
);
