//! Tests against Redis: a single node, a Cluster, and failures of both.

mod alike;
mod cluster;
mod outages;
mod server;
mod tls;

use std::time::Duration;

use urr_kernel::Clock;

use crate::{Error, Kv, KvConfig, Reply, Script};

/// Time limit of a test; far more than any needs.
const LIMIT: Duration = Duration::from_mins(1);

/// Increments each key and returns its argument, which reveals repeated and mixed-up calls.
static COUNT: Script = Script::new(
    "test.count",
    "for _, key in ipairs(KEYS) do redis.call('INCR', key) redis.call('PEXPIRE', key, 60000) end return ARGV[1]",
);

fn kv(config: &KvConfig) -> Kv {
    Kv::connect(config, Clock::system()).unwrap()
}

/// A long deadline, for tests that are not about deadlines and may run on a loaded machine.
fn patient(config: KvConfig) -> KvConfig {
    KvConfig { deadline: Duration::from_secs(5), ..config }
}

async fn count(kv: &Kv, keys: &[&str]) -> Result<Reply, Error> {
    kv.run(&COUNT, keys, &["done".into()]).await
}

fn done() -> Reply {
    Reply::Bytes(b"done".to_vec())
}
