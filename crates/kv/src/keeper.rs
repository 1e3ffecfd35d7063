//! What goes on in the background: learning who serves what, and keeping connections awake.

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

/// Between two looks when nobody is in doubt. Also how long an idle connection that was cut in silence stays unnoticed.
const PERIOD: Duration = Duration::from_secs(5);

/// Between two looks however great the doubt: a fail-over takes seconds, and five questions a second are no load.
const MIN_GAP: Duration = Duration::from_millis(200);

/// Runs until the client is gone.
pub(crate) async fn keep(client: Weak<Inner>, doubt: Arc<Notify>, is_cluster: bool) {
    let mut turn = 0;
    loop {
        let doubted = {
            let Some(client) = client.upgrade() else { return };
            if is_cluster {
                if let Err(error) = learn(&client, turn).await {
                    tracing::debug!(%error, "no node of the cluster says who serves what");
                }
                turn = turn.wrapping_add(1);
            }
            // Whoever fails is counted by its own breaker; the first of these also opens the connections.
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

/// Asks one node after the other who serves what and believes the first that answers. Each time another begins, because
/// a node that was cut off from the others believes in the past.
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
