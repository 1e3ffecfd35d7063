//! Test suite of auth.
//!
//! Every story runs on SQLite and PostgreSQL with encrypted personal data, and those of the
//! contract once over HTTP, unencrypted. The transport and the encryption do not depend on the
//! engine, so other combinations would repeat these.

#[cfg(test)]
mod accounts;
#[cfg(test)]
mod guards;
#[cfg(test)]
mod http;
#[cfg(test)]
mod identity;
#[cfg(test)]
mod import;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod linking;
#[cfg(test)]
mod lockout;
#[cfg(test)]
mod mailbox;
#[cfg(test)]
mod mails;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod passwords;
#[cfg(test)]
mod providers;
#[cfg(test)]
mod race;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod second_factor;
#[cfg(test)]
mod second_factor_http;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod social;
#[cfg(test)]
mod social_http;
#[cfg(test)]
mod social_tokens;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod walk;
#[cfg(test)]
mod world;

use urr_testkit::{DbKind, Transport, statements_test, stories};
use world::{Sealing, World};

stories! {
    World::run;
    sqlite_local: (DbKind::Sqlite, Transport::Local, Sealing::Sealed),
    postgres_local: (DbKind::Postgres, Transport::Local, Sealing::Sealed),
    postgres_remote: (DbKind::Postgres, Transport::Remote, Sealing::Plain);

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

// These stories need the service in this process, or their own service.
stories! {
    World::run;
    sqlite: (DbKind::Sqlite, Transport::Local, Sealing::Sealed),
    postgres: (DbKind::Postgres, Transport::Local, Sealing::Sealed);

    guards:
        non_public_routes_refuse_anonymous_callers,
        internal_routes_require_the_internal_token;
    http:
        registration_returns_the_documented_fields_and_cookies,
        localhost_cookies_are_not_secure,
        a_day_with_an_account,
        signing_out_clears_the_cookies_and_ends_the_session,
        a_refresh_token_comes_in_the_cookie_or_in_the_body,
        a_refresh_after_session_end_clears_the_cookies,
        passwords_and_links_over_http,
        an_admin_gives_a_role,
        throttling_sets_the_retry_after_header,
        malformed_requests_get_400_with_a_code;
    identity:
        a_failed_verification_changes_nothing_and_can_be_retried,
        identity_verification_is_off_without_a_provider,
        an_identity_is_encrypted_on_disk_and_reencrypted_after_key_rotation,
        one_of_concurrent_verifications_of_one_person_wins,
        control_without_the_unique_index_a_person_gets_several_accounts,
        an_identity_is_verified_over_http;
    keys:
        a_profile_change_during_key_rotation_is_not_lost;
    lockout:
        attempts_per_account_are_limited_whether_right_or_wrong,
        sign_in_is_refused_while_the_login_limit_is_unavailable;
    race:
        two_clients_with_one_refresh_token_end_the_session,
        concurrent_refreshes_of_one_browser_keep_it_signed_in,
        concurrent_guesses_are_limited_to_the_free_attempts,
        one_of_concurrent_registrations_succeeds,
        a_sign_in_with_the_old_password_does_not_outlive_the_change,
        a_refresh_does_not_outlive_the_sign_out,
        two_admins_who_demote_each_other_leave_one,
        two_processes_starting_together_create_one_admin,
        a_mail_is_sent_once_by_however_many_processes,
        concurrent_first_sign_ins_create_one_account_and_all_succeed,
        concurrent_uses_of_one_credential_sign_in_once,
        one_of_two_concurrent_links_wins;
    second_factor:
        one_of_two_concurrent_uses_of_a_code_wins,
        the_second_factor_secret_is_always_encrypted_and_reencrypted_after_key_rotation;
    second_factor_http:
        an_admin_without_a_required_second_factor_has_user_rights,
        a_second_factor_over_http;
    social_http:
        google_sign_in_returns_the_documented_fields_and_cookies,
        a_credential_with_a_nonce_is_bound_to_one_browser,
        other_token_kinds_are_not_accepted_as_nonce_slips,
        the_redirect_flow_ends_on_a_page_of_this_site,
        browsers_get_an_error_page_and_programs_get_json,
        open_redirects_are_refused,
        disabled_providers_get_404_with_a_code,
        a_user_links_and_unlinks_over_http;
    social_tokens:
        invalid_id_tokens_are_refused,
        networks_that_send_invalid_credentials_are_throttled,
        an_id_token_of_another_redirect_is_refused,
        an_intercepted_authorization_code_is_useless,
        unknown_key_ids_trigger_rate_limited_key_fetches,
        concurrent_requests_fetch_the_keys_once,
        cached_issuer_keys_are_used_for_a_day_during_an_outage,
        a_failing_issuer_times_out_and_changes_nothing,
        a_provider_that_misbehaves_on_the_way_back_changes_nothing,
        an_unreachable_provider_is_unavailable,
        disabled_providers_are_refused;
    walk:
        refresh_tokens_do_what_the_simple_model_says;
}

// These stories start without encryption, or must hold with and without it.
stories! {
    World::run;
    sqlite_plain: (DbKind::Sqlite, Transport::Local, Sealing::Plain),
    postgres_plain: (DbKind::Postgres, Transport::Local, Sealing::Plain);

    keys: key_rotation_is_transparent_and_wrong_keys_are_detected;
    second_factor:
        the_second_factor_secret_is_always_encrypted_and_reencrypted_after_key_rotation;
}

statements_test!(urr_auth::DOMAIN, [urr_auth::statements(), world::STATEMENTS.to_vec()].concat());
