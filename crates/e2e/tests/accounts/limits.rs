//! Rate limits: a client over the limit is refused, and a request counts once however many
//! processes it passes.

use urr_e2e::{
    http::{Answer, Connection, Request},
    installation::Installation,
    people::{self, PASSWORD},
    program::{Launch, free_address},
};
use urr_kernel::{Clock, Ids, UserId};

/// Default limits. The gateway trusts the test's `x-forwarded-for`; the processes behind it trust
/// the gateway only. Redis gets a long deadline: without it each process would count by itself.
fn counted(name: &str, launch: Launch) -> Launch {
    let launch = launch.set("limits.enabled", "true").set("redis.deadline_ms", "5000");
    match name {
        "gateway" | "whole" => launch.set("http.trusted_proxies", "127.0.0.1"),
        _ => launch,
    }
}

/// Clients with a new network and account each, because other runs count in the same Redis.
struct Clients {
    network: [u8; 2],
    email: String,
}

impl Clients {
    fn new() -> Self {
        let ids = Ids::random(Clock::system());
        Self { network: ids.bytes(), email: format!("limits-{}@example.com", ids.next::<UserId>()) }
    }

    fn address(&self, host: u8) -> String {
        let [high, low] = self.network;
        format!("10.{high}.{low}.{host}")
    }

    /// The owner signs in from a fixed address: another address would be counted separately.
    async fn sign_in(&self, front: &mut Connection) -> anyhow::Result<Answer> {
        let address = self.address(8);
        let from = [("x-forwarded-for", address.as_str())];
        Ok(people::login_with(front, &self.email, PASSWORD, &from).await?)
    }
}

/// How many requests pass before one is refused.
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

async fn clients_are_distinguished_and_counted_once(
    installation: &Installation,
    clients: &Clients,
) -> anyhow::Result<()> {
    let mut front = installation.connect();
    let [one, other, third] = [7, 8, 9].map(|host| clients.address(host));
    assert_eq!(passes(&mut front, &one, 100).await?, 60, "limit per address");
    assert_eq!(passes(&mut front, &other, 10).await?, 10, "another address has its own count");
    let hops = format!("{third}, {one}");
    assert_eq!(passes(&mut front, &hops, 1).await?, 0, "the last hop is the client");

    people::register_with(&mut front, &clients.email, &[("x-forwarded-for", other.as_str())]).await?;
    let mut statuses = Vec::new();
    for _ in 0..11 {
        statuses.push(clients.sign_in(&mut front).await?.status);
    }
    assert_eq!(statuses, [vec![200; 10], vec![429]].concat(), "limit per account");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_in_one_process_and_in_three() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let whole = Installation::whole(dir.path(), counted).await?;
    clients_are_distinguished_and_counted_once(&whole, &Clients::new()).await?;
    drop(whole);
    let apart = Installation::apart(dir.path(), counted).await?;
    clients_are_distinguished_and_counted_once(&apart, &Clients::new()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_shared_on_redis() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let Some(mut installation) = Installation::on_servers(dir.path(), counted).await? else { return Ok(()) };
    let clients = Clients::new();
    clients_are_distinguished_and_counted_once(&installation, &clients).await?;
    counts_are_shared_and_survive_restarts(&mut installation, &clients).await
}

/// Shared counts, as opposed to counts in memory: a second gateway continues the counts of the
/// first, and a restarted `auth` those of the account. All within the minute that is counted.
async fn counts_are_shared_and_survive_restarts(
    installation: &mut Installation,
    clients: &Clients,
) -> anyhow::Result<()> {
    let both = clients.address(10);
    assert_eq!(passes(&mut installation.connect(), &both, 30).await?, 30);
    installation.auth_running.kill().await?;
    installation.auth_running = installation.auth.up().await?;
    // Started after `auth` restarted, it has no connection to the old process.
    let mut second = installation.gateway.clone();
    second.listen = free_address();
    let running = second.up().await?;
    let mut front = Connection::to(running.address);
    assert_eq!(passes(&mut front, &both, 100).await?, 30, "what the first gateway left");
    let refused = clients.sign_in(&mut front).await?;
    let expected = (429, "auth.too_many_attempts");
    assert_eq!((refused.status, refused.code().as_str()), expected, "{}", refused.show());
    Ok(())
}

/// The sign-in history has the client's address behind a gateway, and clients cannot forge it.
#[tokio::test(flavor = "multi_thread")]
async fn client_address_passes_the_gateway() -> anyhow::Result<()> {
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
