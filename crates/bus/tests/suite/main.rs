//! Tests of the bus on every backend: in process on SQLite and PostgreSQL, and a real Kafka broker
//! with either database.

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
    every_message_is_applied_once_and_in_order_per_key,
    a_duplicate_message_is_applied_once,
    a_failing_message_becomes_a_dead_letter_and_the_group_moves_on,
    a_temporary_failure_is_retried_in_order,
    groups_are_independent,
    a_restart_resumes_at_the_stored_offset,
    a_crash_neither_loses_nor_repeats_effects,
    a_crash_during_retries_loses_nothing,
    two_processes_share_a_group_without_double_effects,
    a_dead_letter_can_be_republished,
    unsubscribed_topics_are_skipped,
    an_unreachable_database_is_waited_for,
    a_dead_letter_that_cannot_be_stored_does_not_block_the_group,
    a_database_that_cannot_write_is_waited_for,
    a_message_refused_for_an_hour_becomes_a_dead_letter,
    a_commit_wakes_the_bus_before_the_next_poll,
}
