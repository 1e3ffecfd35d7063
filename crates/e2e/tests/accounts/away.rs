//! The process with the role `auth` stops and starts again.

use std::time::Duration;

use urr_e2e::{
    http::{Answer, Connection, Request},
    installation::Installation,
    people::{self, ADMIN, PASSWORD, Person},
    program::free_address,
};
use urr_testkit::until;

use crate::as_it_is;

/// Revocations are stale after five seconds; the rest is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

async fn ask(connection: &mut Connection, path: &str, person: &Person) -> anyhow::Result<Answer> {
    Ok(connection.send(&Request::get(path).by(&person.access)).await?)
}

/// Sessions continue, revoked ones stay revoked, and requests that need fresh revocations are
/// refused.
#[tokio::test(flavor = "multi_thread")]
async fn auth_outage_keeps_sales_and_refuses_admin_requests() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut installation = Installation::apart(dir.path(), as_it_is).await?;
    let mut front = installation.connect();
    let boss = people::sign_in(&mut front, ADMIN).await?;
    let ann = people::register(&mut front, "ann@example.com").await?;
    let bob = people::register(&mut front, "bob@example.com").await?;
    people::logout(&mut front, &bob).await?;
    // Each process polls on its own, so each is waited for.
    for listener in [installation.front, installation.other] {
        let mut listener = Connection::to(listener);
        until(PATIENCE, async || {
            let mine = ask(&mut listener, "/api/reservations/my", &bob).await;
            mine.is_ok_and(|answer| answer.status == 401)
        })
        .await;
    }

    installation.auth_running.kill().await?;
    let refused = people::login(&mut front, "ann@example.com", PASSWORD).await?;
    assert_eq!((refused.status, refused.code().as_str()), (503, "http.unavailable"), "{}", refused.show());
    assert!(refused.header("retry-after").is_some());
    until(PATIENCE, async || {
        let halls = ask(&mut front, "/api/admin/seat-layouts", &boss).await;
        halls.is_ok_and(|answer| (answer.status, answer.code().as_str()) == (503, "http.unavailable"))
    })
    .await;
    for listener in [installation.front, installation.other] {
        let mut listener = Connection::to(listener);
        let mine = ask(&mut listener, "/api/reservations/my", &ann).await?;
        assert_eq!(mine.status, 200, "{}", mine.show());
        let gone = ask(&mut listener, "/api/reservations/my", &bob).await?;
        assert_eq!(gone.code(), "auth.token_revoked", "{}", gone.show());
        let ready = listener.send(&Request::get("/health/ready")).await?;
        assert_eq!(ready.status, 200, "{}", ready.show());
    }
    new_gateway_is_ready_once_it_has_revocations(&mut installation).await?;

    let mut front = installation.connect();
    until(PATIENCE, async || {
        let halls = ask(&mut front, "/api/admin/seat-layouts", &boss).await;
        halls.is_ok_and(|answer| answer.status == 200)
    })
    .await;
    let again = people::login(&mut front, "ann@example.com", PASSWORD).await?;
    assert_eq!(again.status, 200, "{}", again.show());
    Ok(())
}

/// A gateway started while `auth` is down is not ready until `auth` is up.
async fn new_gateway_is_ready_once_it_has_revocations(installation: &mut Installation) -> anyhow::Result<()> {
    let mut second = installation.gateway.clone();
    second.listen = free_address();
    let mut running = second.start()?;
    let mut door = Connection::to(second.listen);
    let mut last = None;
    until(PATIENCE, async || {
        last = door.send(&Request::get("/health/ready")).await.ok();
        last.is_some()
    })
    .await;
    let ready = last.map(|answer| answer.show()).unwrap_or_default();
    assert!(ready.starts_with("503") && ready.contains("ended sessions"), "{ready}");
    installation.auth_running = installation.auth.up().await?;
    running.ready().await?;
    Ok(())
}
