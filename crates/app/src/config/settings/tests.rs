//! The table against itself and against the parts it configures.

use std::{collections::BTreeSet, time::Duration};

use super::*;

#[test]
fn every_default_is_valid() {
    for info in SETTINGS {
        assert_eq!((info.check)(info.default), Ok(()), "{}", info.key);
    }
}

#[test]
fn every_setting_has_a_variable_of_its_own_a_section_and_a_sentence() {
    let mut seen = BTreeSet::new();
    for info in SETTINGS {
        assert!(seen.insert(info.env()), "{} twice", info.env());
        assert!(!info.secret || seen.insert(info.env() + "_FILE"), "{}_FILE twice", info.env());
        assert!(!info.env().starts_with(ENV_TESTS) && info.env() != ENV_CONFIG);
        let section = info.key.split_once('.').map_or("", |(section, _)| section);
        assert!(SECTIONS.iter().any(|(name, _)| *name == section), "{} has no section", info.key);
        assert!(info.doc.trim().ends_with('.'), "{}: {}", info.key, info.doc);
    }
    assert_eq!(SALE_HOLD_SECS.info.env(), "URR_SALE_HOLD_SECS");
    assert_eq!(DATA_DIR.info.env(), "URR_DATA_DIR");
}

#[test]
fn the_defaults_of_accounts_are_those_the_domain_was_built_with() {
    let domain = urr_auth::Settings::default();
    let days = |setting: &Info| Duration::from_hours(24) * setting.default.parse().unwrap();
    assert_eq!(days(&AUTH_ERASE_AFTER_DAYS.info), domain.erase_after);
    assert_eq!(days(&AUTH_DORMANT_AFTER_DAYS.info), domain.dormant_after);
    assert_eq!(days(&AUTH_HISTORY_DAYS.info), domain.history_kept);
    assert_eq!(AUTH_TERMS_VERSION.info.default, domain.terms_version);
}

#[test]
fn the_default_issuer_is_google() {
    assert_eq!(AUTH_GOOGLE_ISSUER.info.default, urr_auth::GoogleConfig::ISSUER);
}

#[test]
fn the_default_hold_is_the_one_the_domains_were_built_with() {
    assert_eq!(SALE_HOLD_SECS.info.default, urr_kernel::limits::HOLD.as_secs().to_string());
}

#[test]
fn the_default_limits_are_those_that_were_designed() {
    let designed = urr_gateway::limit::RateLimits::default();
    for (setting, limit) in [
        (&LIMITS_AUTH.info, designed.auth),
        (&LIMITS_LOGIN.info, designed.login),
        (&LIMITS_QUEUE.info, designed.queue),
        (&LIMITS_ARRIVALS.info, designed.arrivals),
        (&LIMITS_BOOKING.info, designed.booking),
        (&LIMITS_PAYMENTS.info, designed.payments),
        (&LIMITS_GENERAL.info, designed.general),
    ] {
        assert_eq!(setting.default, limit.to_string(), "{}", setting.key);
    }
    assert_eq!(LIMITS_ENABLED.info.default, "true");
}
