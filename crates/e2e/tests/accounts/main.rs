//! Accounts and the gateway of the real binary: the same tests in one process, in several, and in
//! several on PostgreSQL, Redis and Kafka.

mod away;
mod browser;
mod document;
mod ending;
mod limits;
mod living;
mod matrix;
mod phone;
mod rooms;
mod silence;
mod tricks;

use urr_e2e::{installation::Installation, program::Launch};

fn as_it_is(_: &str, launch: Launch) -> Launch {
    launch
}

/// Providers that are never reached: browsers are redirected to them, and credentials claim to be
/// from them.
fn with_providers(name: &str, launch: Launch) -> Launch {
    let nowhere = "http://127.0.0.1:1";
    ["authorize", "token", "user"]
        .into_iter()
        .fold(browser::with_a_shop(name, launch), |launch, page| {
            launch.set(&format!("auth.kakao.{page}_url"), format!("{nowhere}/{page}"))
        })
        .set("auth.kakao.client_id", "us")
        .set("auth.google.client_id", "us")
        .set("auth.google.issuer", nowhere)
}

async fn the_stories(installation: &Installation) -> anyhow::Result<()> {
    living::account_lifecycle(installation).await?;
    living::admin_role_is_granted_and_revoked(installation).await?;
    living::address_owner_takes_over_unverified_account(installation).await?;
    ending::revoked_tokens_are_refused_everywhere_within_a_second(installation).await?;
    browser::allowed_origin_can_use_accounts(installation).await?;
    browser::revoked_session_cookies_are_ignored_and_cleared(installation).await?;
    matrix::token_kinds_are_not_interchangeable(installation).await?;
    tricks::path_spelling_does_not_bypass_guards(installation).await?;
    document::gateway_document_covers_every_role(installation).await
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_in_one_process() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    the_stories(&Installation::whole(dir.path(), with_providers).await?).await
}

/// With guarded waiting rooms, which are off for the other tests.
fn with_rooms(name: &str, launch: Launch) -> Launch {
    with_providers(name, launch).set("queue.guard", "true").set("queue.threshold", "1")
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_room_tokens_are_not_interchangeable() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    rooms::tokens_are_crossed(&Installation::whole(dir.path(), with_rooms).await?).await
}

/// Logs everything, at the lowest level.
fn with_every_line(name: &str, launch: Launch) -> Launch {
    let launch = if name == "whole" { with_rooms(name, launch) } else { with_providers(name, launch) };
    let launch = launch.set("log.filter", "trace").set("log.access_sample", "1");
    launch.set("auth.kakao.client_secret", silence::CLIENT_SECRET)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_personal_data_or_secret_is_logged() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let installation = Installation::whole(dir.path(), with_every_line).await?;
    silence::is_kept(&installation, dir.path()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_personal_data_or_secret_is_logged_on_servers() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    match Installation::on_servers(dir.path(), with_every_line).await? {
        Some(installation) => silence::is_kept(&installation, dir.path()).await,
        None => Ok(()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_in_three_processes_on_sqlite() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    the_stories(&Installation::apart(dir.path(), with_providers).await?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_in_three_processes_on_servers() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    match Installation::on_servers(dir.path(), with_providers).await? {
        Some(installation) => the_stories(&installation).await,
        None => Ok(()),
    }
}
