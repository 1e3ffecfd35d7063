//! Test suite of the catalog.

#[cfg(test)]
mod atomic;
#[cfg(test)]
mod bus;
#[cfg(test)]
mod calendar;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod http;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod seats;
#[cfg(test)]
mod world;

use urr_testkit::{DbKind, Transport, statements_test, stories};
use world::World;

stories! {
    World::run;
    sqlite_local: (DbKind::Sqlite, Transport::Local),
    postgres_local: (DbKind::Postgres, Transport::Local),
    postgres_remote: (DbKind::Postgres, Transport::Remote);

    calendar:
        a_seated_event_gets_its_prices_and_places_from_its_hall,
        a_standing_event_is_sold_by_ticket_type,
        invalid_events_are_rejected_and_not_stored,
        response_and_filter_agree_on_the_status_at_each_boundary,
        events_are_paged_by_sale_start,
        search_ignores_case_and_treats_wildcards_literally,
        an_unknown_event_is_not_found_by_any_method,
        cancelling_is_final_and_idempotent,
        listing_halls_and_changing_events_requires_admin;
    seats:
        a_new_installation_has_the_default_halls,
        seats_are_returned_in_plan_order,
        a_stadium_of_50_000_seats_is_created_and_read_in_pages,
        seats_are_found_with_their_events;
}

// These stories need the service in this process.
stories! {
    World::run;
    sqlite: (DbKind::Sqlite, Transport::Local),
    postgres: (DbKind::Postgres, Transport::Local);

    atomic:
        a_failed_creation_is_rolled_back,
        a_creation_abandoned_by_its_caller_is_complete_or_absent;
    bus:
        redelivered_messages_are_counted_once,
        an_invalid_message_becomes_a_dead_letter_and_the_next_one_is_applied;
    demo:
        the_first_start_adds_demo_events_and_the_second_adds_none,
        concurrent_starts_add_the_demo_events_once;
    http:
        the_list_has_all_documented_fields_and_pagination,
        an_invalid_query_is_a_400_with_an_error_code,
        one_event_has_every_documented_field,
        an_admin_creates_and_cancels_an_event,
        halls_are_listed_for_admins,
        admin_routes_reject_anonymous_callers_and_buyers,
        internal_routes_require_the_token;
}

statements_test!(urr_catalog::DOMAIN, urr_catalog::statements());
