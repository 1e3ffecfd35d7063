//! The queue and the sender on SQLite and PostgreSQL: sent once after the commit, retried, failed,
//! sent again.

#[cfg(test)]
mod queue;
#[cfg(test)]
mod sending;
#[cfg(test)]
mod world;

use world::{Engine, World};

/// Runs each test in a new world.
macro_rules! stories {
    ($($module:ident: $($story:ident),* $(,)?;)*) => {
        mod sqlite {
            use super::{Engine, World};
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    World::run(Engine::Sqlite, async |world| super::$module::$story(world).await).await;
                }
            )*)*
        }
        mod postgres {
            use super::{Engine, World};
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    World::run(Engine::Postgres, async |world| super::$module::$story(world).await).await;
                }
            )*)*
        }
    };
}

stories! {
    queue:
        a_mail_of_a_rolled_back_transaction_is_never_sent,
        a_committed_mail_is_sent_once,
        a_key_is_queued_once,
        a_mail_without_recipient_is_not_queued,
        too_much_data_refuses_the_change,
        mails_that_ended_long_ago_are_deleted,
        a_recipient_is_erased_with_copies;
    sending:
        a_transport_that_is_down_is_retried_with_backoff,
        a_refused_mail_fails_is_listed_and_sent_again_by_an_operator,
        attempts_are_bounded,
        a_mail_that_cannot_be_composed_is_retried,
        a_dropped_mail_is_neither_sent_nor_failed,
        urgent_mails_go_first_and_leave_room,
        several_senders_send_each_mail_once,
        a_sender_that_died_leaves_its_mail_to_the_next;
}

#[tokio::test]
async fn every_statement_prepares_alike_on_both_engines() {
    let (_dir, sqlite) = urr_testkit::fresh_sqlite(&world::SHOP).await;
    let postgres = urr_testkit::fresh_postgres(&world::SHOP).await;
    let databases: Vec<_> = [Some(&sqlite), postgres.as_ref()].into_iter().flatten().collect();
    let statements = [urr_mail::statements(), world::STATEMENTS].concat();
    urr_db::check_statements(&databases, &statements).await.unwrap();
}
