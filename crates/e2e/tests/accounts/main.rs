//! Accounts and the front door of the real binary: in one process, in several, and in several on servers, the same stories.

mod away;
mod ending;
mod limits;
mod living;
mod matrix;
mod tricks;

use urr_e2e::{installation::Installation, program::Launch};

fn as_it_is(_: &str, launch: Launch) -> Launch {
    launch
}

async fn the_stories(installation: &Installation) -> anyhow::Result<()> {
    living::an_account_is_made_used_and_left(installation).await?;
    living::an_operator_is_appointed_and_dismissed(installation).await?;
    ending::old_tokens_stop_everywhere_within_a_second(installation).await?;
    matrix::a_token_of_one_kind_is_none_of_another(installation).await?;
    tricks::however_a_path_is_spelled_the_verdict_stays(installation).await
}

#[tokio::test(flavor = "multi_thread")]
async fn in_one_process() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    the_stories(&Installation::whole(dir.path(), as_it_is).await?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn in_three_processes_on_files() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    the_stories(&Installation::apart(dir.path(), as_it_is).await?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn in_three_processes_on_servers() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    match Installation::on_servers(dir.path(), as_it_is).await? {
        Some(installation) => the_stories(&installation).await,
        None => Ok(()),
    }
}
