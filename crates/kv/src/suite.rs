//! The stories of calling Redis: on one node, on a Cluster, and on both while they fail.

mod alike;
mod cluster;
mod outages;
mod server;
mod tls;

use std::time::Duration;

use urr_kernel::Clock;

use crate::{Error, Kv, KvConfig, Reply, Script};

/// Far more than any story takes.
const LIMIT: Duration = Duration::from_mins(1);

/// Counts its calls per key and gives back its argument, so that a call that ran twice or was mixed up shows.
static COUNT: Script = Script::new(
    "test.count",
    "for _, key in ipairs(KEYS) do redis.call('INCR', key) redis.call('PEXPIRE', key, 60000) end return ARGV[1]",
);

fn kv(config: &KvConfig) -> Kv {
    Kv::connect(config, Clock::system()).unwrap()
}

/// Patience for a loaded machine: a story that is not about deadlines does not fail by one.
fn patient(config: KvConfig) -> KvConfig {
    KvConfig { deadline: Duration::from_secs(5), ..config }
}

async fn count(kv: &Kv, keys: &[&str]) -> Result<Reply, Error> {
    kv.run(&COUNT, keys, &["done".into()]).await
}

fn done() -> Reply {
    Reply::Bytes(b"done".to_vec())
}
