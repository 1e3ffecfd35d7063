//! Who comes too often waits, and is counted once however many processes a request passes.

use urr_e2e::{
    http::{Connection, Request},
    installation::Installation,
    people::{self, PASSWORD},
    program::Launch,
};

/// Counted as by default. The front believes the test about where it comes from; those behind believe the front alone.
fn counted(name: &str, launch: Launch) -> Launch {
    let launch = launch.set("limits.enabled", "true");
    match name {
        "gateway" | "whole" => launch.set("http.trusted_proxies", "127.0.0.1"),
        _ => launch,
    }
}

/// How many of these pass before one is told to wait.
async fn passes(connection: &mut Connection, from: &str, at_most: usize) -> anyhow::Result<usize> {
    let headers = [("x-forwarded-for", from)];
    let path = "/api/auth/logout";
    for passed in 0..at_most {
        let request = Request { method: "POST", path, headers: &headers, ..Request::default() };
        let answer = connection.send(&request).await?;
        if answer.status == 429 {
            assert_eq!(answer.code(), "limit.exceeded");
            assert!(answer.header("retry-after").is_some(), "{:?}", answer.headers);
            return Ok(passed);
        }
        assert_eq!(answer.status, 200, "{}", answer.show());
    }
    Ok(at_most)
}

async fn clients_are_told_apart_and_counted_once(installation: &Installation) -> anyhow::Result<()> {
    let mut front = installation.connect();
    assert_eq!(passes(&mut front, "203.0.113.7", 100).await?, 60, "an address may sign in and out so often");
    assert_eq!(passes(&mut front, "203.0.113.8", 10).await?, 10, "another is another client");
    assert_eq!(passes(&mut front, "203.0.113.9, 203.0.113.7", 1).await?, 0, "the last hop is the client");

    let email = "limits@example.com";
    people::register(&mut front, email).await?;
    let mut statuses = Vec::new();
    for _ in 0..11 {
        statuses.push(people::login(&mut front, email, PASSWORD).await?.status);
    }
    assert_eq!(statuses, [vec![200; 10], vec![429]].concat(), "an account may be tried so often");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn in_one_process_and_in_three() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    clients_are_told_apart_and_counted_once(&Installation::whole(dir.path(), counted).await?).await?;
    clients_are_told_apart_and_counted_once(&Installation::apart(dir.path(), counted).await?).await
}

/// The sign-in history shows where people came from, although a gateway stands in between, and nobody can write it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_of_a_client_passes_the_gateway() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let installation = Installation::apart(dir.path(), counted).await?;
    let email = "history@example.com";
    people::register(&mut installation.connect(), email).await?;
    let body = serde_json::json!({ "email": email, "password": PASSWORD });
    let headers = [("x-forwarded-for", "203.0.113.7"), ("x-urr-hop", "hop;1;203.0.113.66;AAAA")];
    let request = Request { headers: &headers, ..Request::post("/api/auth/login", &body) };
    let through = installation.connect().send(&request).await?;
    assert_eq!(through.status, 200, "{}", through.show());
    let past = Connection::to(installation.auth_running.address).send(&request).await?;
    assert_eq!(past.status, 200, "{}", past.show());
    let person = people::Person::from_answer(&past)?;
    let history =
        installation.connect().send(&Request::get("/api/auth/history").by(&person.access)).await?.json();
    let addresses: Vec<_> =
        history["history"].as_array().into_iter().flatten().map(|login| login["address"].as_str()).collect();
    assert_eq!(
        addresses,
        [Some("127.0.0.1"), Some("203.0.113.7"), Some("127.0.0.1")],
        "newest first: {history}"
    );
    Ok(())
}
