//! Slot migrations and failovers of a Cluster.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::task::JoinSet;
use urr_testkit::{free_port, until, within};

use super::{LIMIT, count, done, kv, patient, server::Server};
use crate::{Kv, KvConfig, slots};

/// Three primaries, and a replica of the first.
struct Cluster {
    nodes: Vec<Server>,
}

const RANGES: [(u16, u16); 3] = [(0, 5_460), (5_461, 10_922), (10_923, 16_383)];
const REPLICA: usize = 3;

impl Cluster {
    async fn start() -> Option<Self> {
        let mut nodes = Vec::new();
        let mut buses = Vec::new();
        for _ in 0..=REPLICA {
            let bus = free_port().to_string();
            let settings = [
                ["--cluster-enabled", "yes"],
                ["--cluster-port", &bus],
                ["--cluster-node-timeout", "1000"],
                // The other primaries keep serving while one is down.
                ["--cluster-require-full-coverage", "no"],
                // Replication of a restarted node starts at once.
                ["--repl-diskless-sync-delay", "0"],
            ];
            nodes.push(Server::start(settings.as_flattened()).await?);
            buses.push(bus);
        }
        for (node, epoch) in nodes.iter().zip(1_u32..) {
            // Distinct epochs, so that nodes can tell whose slot assignment is newer.
            node.ask::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch.to_string()]).await;
        }
        for (node, (first, last)) in nodes.iter().zip(RANGES) {
            node.ask::<()>(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]).await;
        }
        for (node, bus) in nodes.iter().zip(&buses) {
            nodes[0].ask::<()>(&["CLUSTER", "MEET", "127.0.0.1", &node.port.to_string(), bus]).await;
        }
        let cluster = Self { nodes };
        until(LIMIT, async || cluster.all_say("cluster_known_nodes:4").await).await;
        let primary = cluster.id(0).await;
        until(LIMIT, async || {
            let mut replica = cluster.nodes[REPLICA].connect_as(None).await;
            redis::cmd("CLUSTER").arg("REPLICATE").arg(&primary).exec_async(&mut replica).await.is_ok()
        })
        .await;
        until(LIMIT, async || cluster.all_say("cluster_state:ok").await).await;
        cluster.wait_for_replica(REPLICA).await;
        Some(cluster)
    }

    fn config(&self) -> KvConfig {
        KvConfig::cluster(self.nodes.iter().map(Server::url))
    }

    async fn id(&self, node: usize) -> String {
        self.nodes[node].ask(&["CLUSTER", "MYID"]).await
    }

    async fn all_say(&self, line: &str) -> bool {
        for node in &self.nodes {
            let info: String = node.ask(&["CLUSTER", "INFO"]).await;
            if !info.lines().any(|said| said == line) {
                return false;
            }
        }
        true
    }

    async fn wait_for_replica(&self, node: usize) {
        until(LIMIT, async || {
            let info: String = self.nodes[node].ask(&["INFO", "replication"]).await;
            info.contains("master_link_status:up")
        })
        .await;
    }

    /// Migrates a slot key by key, so that calls arrive in the middle of it.
    async fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_to_move(slot, from, to).await;
        let (slot_text, port) = (slot.to_string(), self.nodes[to].port.to_string());
        loop {
            let keys: Vec<String> =
                self.nodes[from].ask(&["CLUSTER", "GETKEYSINSLOT", &slot_text, "1"]).await;
            let [key] = &keys[..] else { break };
            self.nodes[from].ask::<String>(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]).await;
        }
        self.finish_moving(slot, from, to).await;
    }

    async fn begin_to_move(&self, slot: u16, from: usize, to: usize) {
        let (slot, giver, taker) = (slot.to_string(), self.id(from).await, self.id(to).await);
        self.nodes[to].ask::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &giver]).await;
        self.nodes[from].ask::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &taker]).await;
    }

    async fn finish_moving(&self, slot: u16, from: usize, to: usize) {
        let (slot, taker) = (slot.to_string(), self.id(to).await);
        for node in [to, from] {
            self.nodes[node].ask::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &taker]).await;
        }
        // A slot that migrates again before all nodes learned of the last migration can end up
        // unassigned.
        until(LIMIT, async || self.all_agree().await).await;
    }

    /// Whether all nodes report the same epochs and slots.
    async fn all_agree(&self) -> bool {
        let mut views = BTreeSet::new();
        for node in &self.nodes {
            let told: String = node.ask(&["CLUSTER", "NODES"]).await;
            let view: BTreeSet<String> = told
                .lines()
                .map(|line| {
                    let fields: Vec<&str> = line.split(' ').collect();
                    [&fields[..1], &fields[6..7], &fields[8..]].concat().join(" ")
                })
                .collect();
            views.insert(view);
        }
        views.len() == 1
    }
}

/// A hash tag in the given range.
fn tag_in((first, last): (u16, u16)) -> String {
    (0..1_000)
        .map(|number| format!("t{number}"))
        .find(|tag| (first..=last).contains(&slots::slot(tag)))
        .unwrap()
}

/// Calls in a loop until stopped and returns the number of calls. None may fail.
fn call_on(kv: &Kv, tag: &str, callers: usize, stop: &Arc<AtomicBool>) -> JoinSet<u64> {
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (kv, tag, stop) = (kv.clone(), tag.to_owned(), Arc::clone(stop));
        tasks.spawn(async move {
            let mut calls = 0;
            while !stop.load(Ordering::SeqCst) {
                assert_eq!(count(&kv, &[&format!("a:{{{tag}}}"), &format!("b:{{{tag}}}")]).await, Ok(done()));
                calls += 1;
            }
            calls
        });
    }
    tasks
}

async fn stopped(tasks: JoinSet<u64>, stop: &AtomicBool) -> u64 {
    stop.store(true, Ordering::SeqCst);
    tasks.join_all().await.into_iter().sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_or_runs_twice_during_slot_migrations() {
    within(LIMIT, async {
        let Some(cluster) = Cluster::start().await else { return };
        let kv = kv(&patient(cluster.config()));
        let tag = tag_in(RANGES[1]);
        let slot = slots::slot(&tag);

        // In the middle of a migration, new keys are created on the target node.
        cluster.begin_to_move(slot, 1, 2).await;
        for _ in 0..3 {
            assert_eq!(count(&kv, &[&format!("new:{{{tag}}}")]).await, Ok(done()));
        }
        cluster.finish_moving(slot, 1, 2).await;
        let counted: u64 = cluster.nodes[2].ask(&["GET", &format!("new:{{{tag}}}")]).await;
        assert_eq!(counted, 3);

        let stop = Arc::new(AtomicBool::new(false));
        let callers = call_on(&kv, &tag, 8, &stop);
        for (from, to) in [(2, 1), (1, 2), (2, 1)] {
            cluster.move_slot(slot, from, to).await;
        }
        let calls = stopped(callers, &stop).await;
        for key in ["a", "b"] {
            let counted: u64 = cluster.nodes[1].ask(&["GET", &format!("{key}:{{{tag}}}")]).await;
            assert_eq!(counted, calls);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failover_to_a_replica_does_not_disturb_other_primaries() {
    within(LIMIT, async {
        let Some(mut cluster) = Cluster::start().await else { return };
        let kv = kv(&KvConfig { deadline: Duration::from_secs(1), ..cluster.config() });
        let (doomed, safe) = (tag_in(RANGES[0]), tag_in(RANGES[2]));
        assert_eq!(count(&kv, &[&doomed]).await, Ok(done()));
        let stop = Arc::new(AtomicBool::new(false));
        let others = call_on(&kv, &safe, 2, &stop);

        cluster.nodes[0].kill();
        assert!(count(&kv, &[&doomed]).await.unwrap_err().is_unavailable());
        until(LIMIT, async || count(&kv, &[&doomed]).await.is_ok()).await;

        cluster.nodes[0].restart().await;
        cluster.wait_for_replica(0).await;
        cluster.nodes[REPLICA].signal("STOP");
        assert!(count(&kv, &[&doomed]).await.unwrap_err().is_unavailable());
        until(LIMIT, async || count(&kv, &[&doomed]).await.is_ok()).await;
        cluster.nodes[REPLICA].signal("CONT");

        assert!(stopped(others, &stop).await > 0);
    })
    .await;
}
