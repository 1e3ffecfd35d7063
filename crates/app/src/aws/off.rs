//! Without the feature `aws` nothing uses AWS.

#![expect(
    clippy::unnecessary_wraps,
    reason = "with the feature `aws` the same functions call AWS and can fail"
)]

use std::sync::Arc;

use urr_db::Db;
use urr_jobs::Tasks;
use urr_kernel::{Clock, Ids};
use urr_queue::Notices;
use urr_vwr::Counters;

use crate::{config::Config, failure::Failure};

pub(crate) fn check(_: &Config) -> Result<(), Failure> {
    Ok(())
}

pub(crate) fn counters(_: &Config, _: &Db, _: &Clock, _: &Ids) -> Result<Option<Counters>, Failure> {
    Ok(None)
}

pub(crate) fn notices(_: &Config, _: &Clock, _: &Tasks) -> Result<Option<Arc<dyn Notices>>, Failure> {
    Ok(None)
}

pub(crate) fn read_notices(_: &Config, _: &Clock, _: &Tasks) -> Result<(), Failure> {
    Ok(())
}

pub(crate) async fn migrate(_: &Config) -> Result<(), Failure> {
    Ok(())
}

pub(crate) async fn examine(_: &Config, _: &Clock) -> Vec<(String, Result<String, String>)> {
    Vec::new()
}
