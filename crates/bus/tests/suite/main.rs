//! The bus on every backend: in process over SQLite and PostgreSQL, and real Kafka with either as the store.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod in_process;
#[cfg(test)]
mod kafka;
#[cfg(test)]
mod letters;
#[cfg(test)]
mod rig;

use rig::{Backend, LIMIT, Rig};
use urr_testkit::within;

macro_rules! suite {
    ($($backend:ident $variant:ident;)* => $($case:ident,)*) => {
        suite! { @each [$($backend $variant;)*] [$($case,)*] }
    };
    (@each [] $cases:tt) => {};
    (@each [$backend:ident $variant:ident; $($rest:tt)*] [$($case:ident,)*]) => {
        mod $backend {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let Some(rig) = Rig::new(Backend::$variant).await else { return };
                    within(LIMIT, cases::$case(&rig)).await;
                }
            )*
        }
        suite! { @each [$($rest)*] [$($case,)*] }
    };
}

suite! {
    in_process_sqlite InProcessSqlite;
    in_process_postgres InProcessPostgres;
    kafka_sqlite KafkaSqlite;
    kafka_postgres KafkaPostgres;
    =>
    every_message_has_one_effect_in_the_order_of_its_key,
    a_message_published_twice_has_one_effect,
    a_message_that_keeps_failing_is_set_aside_and_the_group_moves_on,
    a_failure_that_passes_is_retried_and_applied_in_order,
    groups_do_not_disturb_each_other,
    a_restart_goes_on_where_the_last_process_stopped,
    a_crash_at_any_point_loses_nothing_and_doubles_nothing,
    a_crash_while_a_message_is_being_tried_loses_nothing,
    two_processes_share_a_group_without_double_effects,
    a_dead_letter_can_be_delivered_after_all,
    topics_that_a_group_did_not_ask_for_are_passed_over,
    a_database_that_is_away_is_waited_for,
    a_letter_that_cannot_be_kept_does_not_stop_its_group,
    a_database_that_answers_and_cannot_write_is_waited_for,
    a_message_that_a_willing_database_refuses_for_an_hour_is_set_aside,
    a_commit_is_heard_of_long_before_the_next_poll,
}
