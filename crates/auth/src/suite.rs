//! The test suite of auth, run on every database, both transports, with and without encryption.

mod accounts;
mod elsewhere;
mod guards;
mod http;
mod identity;
mod import;
mod keys;
mod linking;
mod lockout;
mod mailbox;
mod mails;
mod outage;
mod passwords;
mod race;
mod roles;
mod second_factor;
mod sessions;
mod social;
mod social_http;
mod social_tokens;
mod tokens;
mod walk;
mod world;

use world::{DbKind, Sealing, Transport, World};

/// Each test runs in its own world.
macro_rules! stories {
    ($($module:ident: $($story:ident),* $(,)?;)*) => {
        stories! { @on sqlite_local, Sqlite, Local, Sealed; $($module: $($story),*;)* }
        stories! { @on sqlite_plain, Sqlite, Local, Plain; $($module: $($story),*;)* }
        stories! { @on sqlite_remote, Sqlite, Remote, Sealed; $($module: $($story),*;)* }
        stories! { @on postgres_local, Postgres, Local, Sealed; $($module: $($story),*;)* }
        stories! { @on postgres_remote, Postgres, Remote, Plain; $($module: $($story),*;)* }
    };
    (@on $variant:ident, $db:ident, $transport:ident, $sealing:ident; $($module:ident: $($story:ident),*;)*) => {
        mod $variant {
            use super::{DbKind, Sealing, Transport, World};
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    let parts = (DbKind::$db, Transport::$transport, Sealing::$sealing);
                    World::run(parts, async |world| super::$module::$story(world).await).await;
                }
            )*)*
        }
    };
}

stories! {
    accounts:
        registering_makes_an_account_and_signs_its_owner_in,
        an_address_has_one_account_however_it_is_spelled,
        a_taken_address_is_refused_and_its_owner_gets_a_mail,
        a_network_that_asks_about_many_addresses_has_to_wait,
        what_makes_no_sense_is_refused_and_changes_nothing,
        decisions_about_the_terms_are_kept_with_version_and_time,
        an_owner_changes_their_profile,
        an_address_is_proved_with_a_link_that_works_once,
        a_link_from_a_mail_takes_a_session_or_the_password_too,
        a_closed_account_is_gone_at_once_and_erased_later,
        an_account_that_cannot_be_erased_keeps_nobody_else_waiting,
        a_closed_account_does_not_keep_its_owner_from_coming_back,
        an_unused_account_falls_dormant_and_the_right_password_wakes_it;
    identity:
        a_verified_owner_is_shown_and_known_to_other_roles,
        a_verification_is_its_accounts_alone_and_good_once,
        a_person_has_one_account_until_the_closed_one_is_erased,
        an_account_stays_with_the_person_it_was_verified_for;
    import:
        imported_accounts_are_signed_in_to_with_the_password_they_had,
        one_bad_line_and_nothing_is_imported;
    roles:
        only_an_admin_gives_roles_and_the_sessions_of_the_user_end,
        an_admin_who_lost_the_role_gives_none_even_with_an_old_token,
        somebody_is_left_to_run_the_platform,
        the_first_admin_is_made_once_and_told_the_password_once,
        an_admin_is_made_with_the_password_that_is_given,
        users_are_named_for_admins_and_other_roles_alone;
    second_factor:
        a_second_factor_is_turned_on_with_a_code_and_ends_other_sessions,
        signing_in_needs_the_code_and_each_code_is_good_once,
        a_challenge_is_good_for_minutes_and_nothing_else,
        wrong_codes_cost_longer_and_longer_waits_whatever_the_password,
        setting_new_passwords_elsewhere_buys_no_more_guesses,
        a_second_factor_is_turned_off_with_password_and_code,
        recovery_codes_are_replaced_and_kept_as_hashes,
        roles_and_passwords_keep_the_second_factor_and_an_operator_takes_it_off;
    sessions:
        signing_in_opens_a_session_that_its_owner_sees,
        unknown_accounts_and_wrong_passwords_get_the_same_answer,
        a_session_that_was_signed_out_is_over_at_once,
        signing_out_everywhere_ends_every_session,
        a_refresh_token_alone_signs_out_everywhere,
        a_user_ends_only_their_own_sessions,
        one_session_too_many_ends_the_oldest,
        revocations_come_in_pages_and_none_is_missed,
        sign_ins_are_listed_for_the_owner,
        an_imported_password_is_accepted_and_hashed_anew,
        a_wrong_password_costs_the_same_whoever_it_is_for,
        what_is_over_is_forgotten;
    tokens:
        a_refresh_token_is_good_once_and_the_session_goes_on,
        a_token_that_is_used_twice_ends_the_session_for_good,
        the_same_client_may_ask_twice_within_ten_seconds,
        a_late_repeat_gets_the_end_of_the_chain_and_nobody_else_does,
        a_repeat_gets_the_same_token_from_a_process_with_a_newer_key,
        tokens_and_sessions_end_with_their_time,
        rubbish_is_no_refresh_token;
    passwords:
        a_new_password_ends_every_session_and_opens_one,
        a_change_needs_the_current_password,
        a_forgotten_password_is_replaced_with_a_link_that_works_once,
        an_unknown_address_gets_the_same_answer_and_no_mail,
        links_end_with_their_time_and_serve_one_purpose;
    lockout:
        wrong_passwords_cost_longer_and_longer_waits,
        an_address_without_an_account_is_locked_alike,
        nobody_can_lock_the_owner_out_of_a_place_they_know,
        a_network_that_guesses_waits_in_every_process;
    mails:
        a_mail_is_tried_again_and_given_up_in_the_end,
        a_mail_nobody_needs_is_not_sent,
        a_flood_of_registrations_does_not_delay_a_new_password,
        nothing_in_the_database_opens_a_link;
    linking:
        linking_takes_proof_of_both_accounts,
        a_browser_is_sent_away_to_link_what_has_no_credential,
        the_last_way_in_stays,
        an_account_elsewhere_does_not_replace_the_second_factor,
        without_a_password_a_second_factor_takes_a_session_that_just_began,
        a_second_factor_does_not_keep_the_owner_of_an_address_out,
        whoever_owns_the_mailbox_throws_out_whoever_took_the_address,
        proving_an_address_keeps_what_its_owner_set_up;
    social:
        somebody_new_agrees_to_the_terms_first_and_then_has_an_account,
        an_account_that_exists_is_not_opened_by_somebody_elses_word,
        an_unverified_address_makes_no_account,
        a_trip_offers_an_account_and_later_signs_in,
        an_address_that_nobody_vouches_for_is_proved_like_any_other,
        whoever_proves_an_address_shuts_out_whoever_only_claimed_it,
        a_browser_returns_once_in_time_and_with_its_own_slip,
        a_closed_account_lets_go_of_accounts_elsewhere,
        an_unused_account_wakes_when_its_owner_comes_back_from_elsewhere,
        every_provider_that_is_on_is_offered,
        a_credential_is_good_once;
}

#[tokio::test]
async fn every_statement_prepares_alike_on_both_engines() {
    let (_dir, sqlite) = urr_testkit::fresh_sqlite(&crate::DOMAIN).await;
    let postgres = urr_testkit::fresh_postgres(&crate::DOMAIN).await;
    let databases: Vec<_> = [Some(&sqlite), postgres.as_ref()].into_iter().flatten().collect();
    let statements = [crate::statements(), world::STATEMENTS.to_vec()].concat();
    urr_db::check_statements(&databases, &statements).await.unwrap();
}
