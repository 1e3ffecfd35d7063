//! The behaviour of the catalog, told once and run on every database and both transports.

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

use world::{DbKind, Transport, World};

/// Each story runs in a world of its own on every database, in process and over HTTP.
macro_rules! stories {
    ($($module:ident: $($story:ident),* $(,)?;)*) => {
        stories! { @on sqlite_local, Sqlite, Local; $($module: $($story),*;)* }
        stories! { @on sqlite_remote, Sqlite, Remote; $($module: $($story),*;)* }
        stories! { @on postgres_local, Postgres, Local; $($module: $($story),*;)* }
        stories! { @on postgres_remote, Postgres, Remote; $($module: $($story),*;)* }
    };
    (@on $variant:ident, $db:ident, $transport:ident; $($module:ident: $($story:ident),*;)*) => {
        mod $variant {
            use super::{DbKind, Transport, World};
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    World::run(DbKind::$db, Transport::$transport, async |world| super::$module::$story(world).await).await;
                }
            )*)*
        }
    };
}

stories! {
    calendar:
        a_seated_event_takes_its_prices_and_places_from_its_hall,
        a_standing_event_is_sold_by_ticket_type,
        what_makes_no_sense_is_refused_and_changes_nothing,
        status_changes_at_the_very_instant_in_the_answer_and_in_the_filter,
        events_come_next_sale_first_and_a_page_at_a_time,
        a_search_finds_words_in_any_case_and_takes_signs_literally,
        an_unknown_event_is_not_found_by_anybody,
        calling_off_is_final_and_can_be_asked_twice,
        only_an_admin_sees_halls_and_changes_the_calendar;
    seats:
        every_installation_starts_with_its_halls,
        seats_come_in_the_order_of_the_hall,
        a_stadium_of_50_000_is_made_whole_and_read_in_pages,
        seats_are_found_with_their_events;
}

/// What needs this process's own service runs on both databases.
macro_rules! local_stories {
    ($($module:ident: $($story:ident),* $(,)?;)*) => {
        mod local {
            mod sqlite {
                use super::super::{DbKind, Transport, World};
                $($(
                    #[tokio::test(flavor = "multi_thread")]
                    async fn $story() {
                        World::run(DbKind::Sqlite, Transport::Local, async |world| crate::$module::$story(world).await)
                            .await;
                    }
                )*)*
            }
            mod postgres {
                use super::super::{DbKind, Transport, World};
                $($(
                    #[tokio::test(flavor = "multi_thread")]
                    async fn $story() {
                        World::run(DbKind::Postgres, Transport::Local, async |world| crate::$module::$story(world).await)
                            .await;
                    }
                )*)*
            }
        }
    };
}

local_stories! {
    atomic:
        a_creation_that_fails_half_way_leaves_nothing,
        a_creation_whose_caller_goes_away_is_whole_or_absent;
    bus:
        reserved_places_are_counted_once_however_often_a_message_comes,
        a_message_that_cannot_be_read_is_set_aside_and_the_next_one_counts;
    demo:
        the_first_start_has_something_of_every_sort_and_the_second_adds_nothing,
        two_processes_that_start_together_fill_the_catalog_once;
    http:
        the_list_has_the_fields_and_pages_that_clients_read,
        a_bad_question_is_a_400_with_a_code,
        one_event_is_shown_with_every_field_present,
        an_admin_makes_and_calls_off_an_event,
        halls_are_listed_for_admins,
        strangers_and_buyers_are_kept_from_every_admin_route,
        the_internal_routes_want_their_token;
}

#[tokio::test]
async fn every_statement_prepares_alike_on_both_engines() {
    let (_dir, sqlite) = urr_testkit::fresh_sqlite(&urr_catalog::DOMAIN).await;
    let postgres = urr_testkit::fresh_postgres(&urr_catalog::DOMAIN).await;
    let databases: Vec<_> = [Some(&sqlite), postgres.as_ref()].into_iter().flatten().collect();
    urr_db::check_statements(&databases, &urr_catalog::statements()).await.unwrap();
}
