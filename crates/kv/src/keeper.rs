//! Background task: refreshes the slot map and keeps connections alive.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use redis::Cmd;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use crate::{
    Error,
    client::Inner,
    slots::{self, Map},
};

/// Interval between refreshes. Also the longest time that a silently broken idle connection goes
/// unnoticed.
const PERIOD: Duration = Duration::from_secs(5);

/// Shortest time between refreshes. A failover takes seconds, and five queries per second are no
/// load.
const MIN_GAP: Duration = Duration::from_millis(200);

/// Runs until the client is dropped.
pub(crate) async fn keep(client: Weak<Inner>, doubt: Arc<Notify>, is_cluster: bool) {
    let mut turn = 0;
    loop {
        let doubted = {
            let Some(client) = client.upgrade() else { return };
            if is_cluster {
                if let Err(error) = learn(&client, turn).await {
                    tracing::debug!(%error, "cannot load the slot map: no cluster node returned it; calls use the old one");
                }
                turn = turn.wrapping_add(1);
            }
            // Failures are recorded by the node's breaker. The first ping also opens the
            // connections.
            let _ = client.ask_all(&redis::cmd("PING")).await;
            Arc::clone(&doubt)
        };
        sleep(MIN_GAP).await;
        if is_cluster {
            let _ = timeout(PERIOD, doubted.notified()).await;
        } else {
            sleep(PERIOD).await;
        }
    }
}

/// Loads the slot map from the first node that responds. Starts with another node each time,
/// because a partitioned node returns a stale map.
async fn learn(client: &Inner, turn: usize) -> Result<(), Error> {
    for address in &client.start {
        client.node(address.clone())?;
    }
    let mut nodes = client.met();
    let first = turn % nodes.len();
    nodes.rotate_left(first);
    let mut command = Cmd::new();
    command.arg("CLUSTER").arg("SLOTS");
    let mut failure = Error::Down("no node is known".to_owned());
    for node in nodes {
        let answer =
            client.ask(&node, &command).await.and_then(|answer| slots::read(&answer, node.address()));
        match answer.and_then(|ranges| Map::from_ranges(ranges, |address| client.node(address))) {
            Ok(map) => {
                client.adopt(map);
                return Ok(());
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
