//! The waiting room of an event, as fans use it.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use urr_kernel::{Clock, EventId, Ids, Role, UserId};

use crate::{
    http::{Answer, Connection, Lost, Request},
    program::Launch,
    tokens::Tokens,
};

/// The `security.secret` of these installations, so that tests can sign tokens without running the
/// binary ten thousand times.
pub const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Concurrent connections of a crowd.
const CONNECTIONS: usize = 16;

/// The launch with that secret.
pub fn with_crowd(launch: Launch) -> Launch {
    launch.set("security.secret", SECRET)
}

/// A fan.
#[derive(Clone, Debug)]
pub struct Fan {
    /// The user id.
    pub user: UserId,
    /// The access token.
    pub token: String,
}

/// Creates `count` fans.
pub fn crowd(count: usize) -> Vec<Fan> {
    let clock = Clock::system();
    let ids = Ids::random(clock.clone());
    let tokens = Tokens::new(SECRET, &clock, &ids).expect("the secret above is long enough");
    let fan = |user| Fan { user, token: tokens.of(user, Role::User) };
    (0..count).map(|_| fan(ids.next())).collect()
}

/// A request to the waiting room.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    /// Join.
    Check,
    /// Read the position.
    Status,
    /// Leave.
    Leave,
}

/// Sends one request.
pub async fn ask(connection: &mut Connection, fan: &Fan, event: EventId, what: Ask) -> Result<Answer, Lost> {
    let (method, verb) = match what {
        Ask::Check => ("POST", "check"),
        Ask::Status => ("GET", "status"),
        Ask::Leave => ("POST", "leave"),
    };
    let path = format!("/api/queue/{verb}/{event}");
    connection.send(&Request { method, path: &path, token: Some(&fan.token), ..Request::default() }).await
}

/// Sends a request for every fan, over a few connections. Fans without a response of 200 are left
/// out.
pub async fn ask_all(address: SocketAddr, fans: &[Fan], event: EventId, what: Ask) -> Vec<(Fan, Value)> {
    ask_all_counted(address, fans, event, what, &Arc::default()).await
}

/// The same, and counts the responses while it runs.
pub async fn ask_all_counted(
    address: SocketAddr,
    fans: &[Fan],
    event: EventId,
    what: Ask,
    answered: &Arc<AtomicUsize>,
) -> Vec<(Fan, Value)> {
    let size = fans.len().div_ceil(CONNECTIONS).max(1);
    let mut asking = JoinSet::new();
    for part in fans.chunks(size) {
        let (part, answered) = (part.to_vec(), Arc::clone(answered));
        asking.spawn(async move {
            let mut connection = Connection::to(address);
            let mut answers = Vec::with_capacity(part.len());
            for fan in part {
                match ask(&mut connection, &fan, event, what).await {
                    Ok(answer) if answer.status == 200 => answers.push((fan, answer.json())),
                    Ok(answer) => eprintln!("{what:?}: {}", answer.show()),
                    // The server has ended, so the rest gets no response either.
                    Err(_) => break,
                }
                answered.fetch_add(1, Ordering::Relaxed);
            }
            answers
        });
    }
    asking.join_all().await.into_iter().flatten().collect()
}

/// Sets the threshold.
pub async fn set_threshold(
    connection: &mut Connection,
    admin: &str,
    event: EventId,
    threshold: u32,
) -> anyhow::Result<()> {
    let (path, body) = (format!("/api/queue/admin/threshold/{event}"), json!({ "threshold": threshold }));
    let request = Request { method: "PUT", ..Request::post(&path, &body) };
    let answer = connection.send(&request.by(admin)).await?;
    ensure!(answer.status == 200, "threshold: {}", answer.show());
    Ok(())
}

/// The room as shown to operators.
pub async fn room(connection: &mut Connection, admin: &str, event: EventId) -> anyhow::Result<Value> {
    let path = format!("/api/queue/admin/{event}");
    let answer = connection.send(&Request::get(&path).by(admin)).await?;
    ensure!(answer.status == 200, "room: {}", answer.show());
    Ok(answer.json())
}

/// Verifies the journal with `urr queue verify`. Fails if it finds a violation.
pub async fn verify(launch: &Launch, event: EventId) -> anyhow::Result<String> {
    let event = event.to_string();
    launch.run(&["queue", "verify", &event]).await.context("the journal shows that the room was not fair")
}
