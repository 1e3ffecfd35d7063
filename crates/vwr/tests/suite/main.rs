//! Test suite of Tier 1.
//!
//! Every story runs in memory on SQLite and in Redis on PostgreSQL, and those of the contract once
//! over HTTP. Redis Cluster and DynamoDB run the stories that use every script or table operation;
//! `src/counters/suite` tests each operation on every store.

#[cfg(test)]
mod decisions;
#[cfg(test)]
#[cfg(feature = "aws")]
mod dynamo;
#[cfg(test)]
mod edge;
#[cfg(test)]
mod http;
#[cfg(test)]
mod line;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod world;

use urr_testkit::{Transport, statements_test, stories};
use world::{Store, World};

stories! {
    World::run;
    sqlite_local: (Store::Memory, Transport::Local),
    redis_local: (Store::Redis, Transport::Local),
    redis_remote: (Store::Redis, Transport::Remote);

    line:
        every_visitor_gets_one_position_in_order,
        consecutive_batches_leave_no_gap,
        a_ticket_becomes_one_pass,
        closing_the_room_admits_waiting_visitors,
        invalid_tickets_are_refused,
        only_operators_decide;
    outage: a_process_without_rooms_yet_keeps_tickets;
    decisions:
        visitors_are_admitted_by_background_work,
        every_process_applies_a_command_within_a_second;
}

stories! {
    World::run;
    cluster_local: (Store::Cluster, Transport::Local);

    line:
        consecutive_batches_leave_no_gap,
        closing_the_room_admits_waiting_visitors;
    outage: a_process_without_rooms_yet_keeps_tickets;
    decisions:
        visitors_are_admitted_by_background_work,
        every_process_applies_a_command_within_a_second;
}

#[cfg(feature = "aws")]
stories! {
    World::run;
    dynamo_db_local: (Store::DynamoDb, Transport::Local);

    line:
        consecutive_batches_leave_no_gap,
        closing_the_room_admits_waiting_visitors;
    outage: a_process_without_rooms_yet_keeps_tickets;
    decisions:
        visitors_are_admitted_by_background_work,
        every_process_applies_a_command_within_a_second;
}

stories! {
    World::run_unloaded;
    unloaded_sqlite_local: (Store::Memory, Transport::Local),
    unloaded_redis_local: (Store::Redis, Transport::Local),
    unloaded_redis_remote: (Store::Redis, Transport::Remote);

    outage: unavailable_until_the_store_has_answered;
}

// These stories send requests to the public routes of the service in this process.
stories! {
    World::run_unloaded;
    unloaded_sqlite: (Store::Memory, Transport::Local),
    unloaded_redis: (Store::Redis, Transport::Local);

    outage: routes_are_unavailable_until_the_first_refresh;
}

stories! {
    World::run;
    sqlite: (Store::Memory, Transport::Local),
    redis: (Store::Redis, Transport::Local);

    edge:
        a_refused_visitor_keeps_the_target,
        a_visitor_with_a_pass_may_request_anything,
        an_encoded_target_stays_on_the_site;
    http:
        a_browser_gets_one_position_under_both_prefixes,
        two_tabs_at_two_events_keep_both_positions,
        a_position_survives_the_rotation_of_secrets,
        the_shared_document_may_be_cached_for_a_second,
        missing_rooms_and_tickets_have_error_codes,
        operator_routes_require_the_role_and_return_the_result,
        the_live_view_covers_closed_and_open_rooms,
        the_page_works_without_javascript,
        one_browser_holds_passes_for_two_events,
        the_edge_check_admits_by_pass;
}

statements_test!(urr_vwr::DOMAIN, urr_vwr::statements());
