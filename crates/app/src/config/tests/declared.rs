//! Rules for all declared settings.

use std::collections::BTreeSet;

use super::super::{
    docs, infos,
    load::{ENV_CONFIG, ENV_TESTS},
};

#[test]
fn every_default_is_valid() {
    for info in infos() {
        assert_eq!((info.check)(info.default), Ok(()), "{}", info.key);
    }
}

#[test]
fn every_setting_has_a_unique_variable_a_table_and_a_description() {
    let mut seen = BTreeSet::new();
    for info in infos() {
        assert!(seen.insert(info.env()), "{} twice", info.env());
        assert!(!info.secret || seen.insert(info.env() + "_FILE"), "{}_FILE twice", info.env());
        assert!(!info.env().starts_with(ENV_TESTS) && info.env() != ENV_CONFIG);
        let tables = docs::tables();
        let named = tables.iter().filter(|table| table.name == info.table()).count();
        assert_eq!(named, 1, "{} is in {named} tables", info.key);
        assert!(info.doc.trim().ends_with('.'), "{}: {}", info.key, info.doc);
    }
    assert!(seen.contains("URR_SALE_HOLD_SECS") && seen.contains("URR_DATA_DIR"));
}

#[test]
fn the_request_timeout_is_limited_to_the_budget_of_internal_calls() {
    let info = urr_http::Limits::info("http.request_secs");
    let budget = urr_rpc::REQUEST_BUDGET.as_secs();
    assert_eq!((info.check)(&budget.to_string()), Ok(()));
    assert!((info.check)(&(budget + 1).to_string()).is_err());
}
