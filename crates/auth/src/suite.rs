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
        registration_creates_an_account_and_signs_in,
        an_address_has_one_account_in_any_spelling,
        a_registered_address_is_refused_and_its_owner_gets_a_mail,
        a_network_that_probes_many_addresses_is_throttled,
        invalid_requests_are_refused_and_change_nothing,
        decisions_about_the_terms_are_kept_with_version_and_time,
        an_owner_changes_their_profile,
        an_address_is_verified_with_a_single_use_link,
        verifying_an_address_needs_the_link_and_a_session_or_password,
        a_closed_account_is_inaccessible_at_once_and_erased_later,
        an_unerasable_account_does_not_block_others,
        the_address_of_a_closed_account_can_be_registered_again,
        an_unused_account_becomes_dormant_until_sign_in;
    identity:
        a_verified_identity_is_visible_to_the_owner_and_other_roles,
        a_verification_belongs_to_one_account_and_is_valid_once,
        a_person_has_one_account_until_the_closed_one_is_erased,
        an_account_stays_with_the_person_it_was_verified_for;
    import:
        imported_accounts_sign_in_with_their_old_password,
        one_invalid_line_aborts_the_import;
    roles:
        only_admins_assign_roles_which_ends_the_users_sessions,
        a_former_admin_cannot_assign_roles_with_an_old_token,
        the_last_admin_cannot_be_removed,
        the_first_admin_is_created_once_and_its_password_returned_once,
        an_admin_is_created_with_the_given_password,
        only_admins_and_other_roles_can_read_user_names;
    second_factor:
        a_second_factor_is_turned_on_with_a_code_and_ends_other_sessions,
        sign_in_needs_a_code_and_each_code_is_valid_once,
        a_challenge_expires_and_is_valid_for_the_second_factor_only,
        wrong_codes_cause_growing_waits_whatever_the_password,
        password_resets_from_other_networks_do_not_reset_code_guessing,
        a_second_factor_is_turned_off_with_password_and_code,
        recovery_codes_are_replaced_and_kept_as_hashes,
        only_an_operator_reset_removes_a_second_factor;
    sessions:
        sign_in_opens_a_session_visible_to_its_owner,
        unknown_accounts_and_wrong_passwords_get_the_same_answer,
        signing_out_ends_the_session_at_once,
        signing_out_everywhere_ends_every_session,
        a_refresh_token_alone_signs_out_everywhere,
        a_user_ends_only_their_own_sessions,
        exceeding_the_session_limit_ends_the_oldest,
        revocations_come_in_pages_and_none_is_missed,
        sign_ins_are_listed_for_the_owner,
        an_imported_password_is_accepted_and_hashed_anew,
        a_wrong_password_costs_the_same_for_every_address,
        expired_data_is_deleted;
    tokens:
        a_refresh_token_is_valid_once_and_the_session_continues,
        refresh_token_reuse_ends_the_session_permanently,
        the_same_client_may_repeat_a_refresh_within_ten_seconds,
        a_late_repeat_gets_the_newest_token_only_for_the_same_client,
        a_repeat_gets_the_same_token_from_a_process_with_a_newer_key,
        tokens_and_sessions_expire,
        malformed_refresh_tokens_are_refused;
    passwords:
        a_new_password_ends_every_session_and_opens_one,
        a_change_needs_the_current_password,
        a_forgotten_password_is_replaced_with_a_link_that_works_once,
        an_unknown_address_gets_the_same_answer_and_no_mail,
        links_expire_and_serve_one_purpose;
    lockout:
        wrong_passwords_cause_growing_waits,
        unknown_addresses_are_throttled_like_known_ones,
        attackers_cannot_lock_the_owner_out_of_a_known_network,
        network_throttling_is_shared_by_all_processes;
    mails:
        a_mail_is_retried_and_finally_given_up,
        an_obsolete_mail_is_not_sent,
        a_flood_of_registrations_does_not_delay_a_new_password,
        the_database_contains_no_usable_link_token;
    linking:
        linking_requires_proof_of_both_accounts,
        linking_without_a_credential_uses_the_redirect_flow,
        the_last_way_to_sign_in_cannot_be_removed,
        provider_sign_in_still_needs_the_second_factor,
        without_a_password_enabling_a_second_factor_needs_a_recent_session,
        an_attackers_second_factor_does_not_lock_out_the_mailbox_owner,
        a_password_reset_by_the_mailbox_owner_ends_the_attackers_access,
        verifying_an_address_keeps_the_owners_settings;
    social:
        a_new_google_user_must_agree_to_the_terms,
        a_provider_address_does_not_grant_access_to_an_existing_account,
        an_unverified_google_address_creates_no_account,
        the_redirect_flow_offers_an_account_and_later_signs_in,
        an_unverified_provider_address_is_verified_by_mail,
        a_password_reset_removes_links_of_an_unverified_claimant,
        callback_is_valid_once_in_time_and_in_the_same_browser,
        closing_an_account_removes_its_linked_accounts,
        provider_sign_in_reactivates_a_dormant_account,
        enabled_providers_are_listed,
        a_credential_is_valid_once;
}

#[tokio::test]
async fn every_statement_prepares_alike_on_both_engines() {
    let (_dir, sqlite) = urr_testkit::fresh_sqlite(&crate::DOMAIN).await;
    let postgres = urr_testkit::fresh_postgres(&crate::DOMAIN).await;
    let databases: Vec<_> = [Some(&sqlite), postgres.as_ref()].into_iter().flatten().collect();
    let statements = [crate::statements(), world::STATEMENTS.to_vec()].concat();
    urr_db::check_statements(&databases, &statements).await.unwrap();
}
