//! Accounts and the front door of the real binary: in one process, in several, and in several on servers, the same stories.

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

/// Providers that nobody asks: browsers are sent there and credentials brought from there, and that is all.
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
    living::an_account_is_made_used_and_left(installation).await?;
    living::an_operator_is_appointed_and_dismissed(installation).await?;
    living::who_owns_an_address_throws_out_who_only_took_it(installation).await?;
    ending::old_tokens_stop_everywhere_within_a_second(installation).await?;
    browser::a_page_of_another_site_uses_accounts(installation).await?;
    browser::a_browser_whose_session_ended_is_nobody(installation).await?;
    matrix::a_token_of_one_kind_is_none_of_another(installation).await?;
    tricks::however_a_path_is_spelled_the_verdict_stays(installation).await?;
    document::the_front_describes_everything_behind_it(installation).await
}

#[tokio::test(flavor = "multi_thread")]
async fn in_one_process() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    the_stories(&Installation::whole(dir.path(), with_providers).await?).await
}

/// With waiting rooms, whose guards are off where the other stories buy.
fn with_rooms(name: &str, launch: Launch) -> Launch {
    with_providers(name, launch).set("queue.guard", "true").set("queue.threshold", "1")
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_waiting_rooms_open_nothing_else_and_nothing_else_opens_them() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    rooms::tokens_are_crossed(&Installation::whole(dir.path(), with_rooms).await?).await
}

/// Everything is written down that can be, as it never would be.
fn with_every_line(name: &str, launch: Launch) -> Launch {
    let launch = if name == "whole" { with_rooms(name, launch) } else { with_providers(name, launch) };
    let launch = launch.set("log.filter", "trace").set("log.access_sample", "1");
    launch.set("auth.kakao.client_secret", silence::CLIENT_SECRET)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_personal_and_nothing_secret_is_ever_logged() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let installation = Installation::whole(dir.path(), with_every_line).await?;
    silence::is_kept(&installation, dir.path()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_by_several_processes_and_what_they_say_to_servers() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    match Installation::on_servers(dir.path(), with_every_line).await? {
        Some(installation) => silence::is_kept(&installation, dir.path()).await,
        None => Ok(()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_three_processes_on_files() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    the_stories(&Installation::apart(dir.path(), with_providers).await?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn in_three_processes_on_servers() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    match Installation::on_servers(dir.path(), with_providers).await? {
        Some(installation) => the_stories(&installation).await,
        None => Ok(()),
    }
}
