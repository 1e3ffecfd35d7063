//! Tests that run on a single node and on a Cluster.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use urr_kernel::{Clock, Ids, RequestId};
use urr_telemetry::Metrics;
use urr_testkit::{services, within};

use super::{COUNT, LIMIT, count, done, kv, patient};
use crate::{Arg, Error, Kv, KvConfig, Reply, Script, slots};

/// A Redis under test: its client and the URLs of its nodes.
struct TestRedis {
    kv: Kv,
    nodes: Vec<String>,
}

fn single() -> Option<TestRedis> {
    let url = services::redis()?;
    Some(TestRedis { kv: kv(&patient(KvConfig::single(url.clone()))), nodes: vec![url] })
}

fn cluster() -> Option<TestRedis> {
    let nodes: Vec<String> = services::redis_cluster()?.split(',').map(str::to_owned).collect();
    Some(TestRedis { kv: kv(&patient(KvConfig::cluster(nodes.clone()))), nodes })
}

macro_rules! on_both {
    ($($story:ident)*) => {$(
        mod $story {
            #[tokio::test]
            async fn on_one_node() {
                if let Some(redis) = super::single() {
                    super::within(super::LIMIT, super::$story(redis)).await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_a_cluster() {
                if let Some(redis) = super::cluster() {
                    super::within(super::LIMIT, super::$story(redis)).await;
                }
            }
        }
    )*};
}

on_both! {
    keys_and_arguments_reach_a_script_and_its_reply_returns
    a_script_missing_from_the_cache_is_sent_again
    keys_of_different_slots_are_refused
    a_script_error_is_returned_and_does_not_open_the_breaker
    concurrent_calls_get_their_own_replies
    ping_time_and_memory_policy_are_reported
    calls_are_counted_by_script_and_outcome
}

/// A unique hash tag.
fn tag() -> String {
    Ids::random(Clock::system()).next::<RequestId>().to_string()
}

fn fresh_script(body: &str) -> Script {
    let source = format!("-- {}\n{body}", tag());
    Script::new("test.fresh", Box::leak(source.into_boxed_str()))
}

async fn keys_and_arguments_reach_a_script_and_its_reply_returns(TestRedis { kv, .. }: TestRedis) {
    let script = fresh_script("return {KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]) + 1, false, {7}}");
    let tag = tag();
    let keys = [format!("a:{{{tag}}}"), format!("b:{{{tag}}}")];
    let answer = kv.run(&script, &keys, &[Arg::from(&[0_u8, 255][..]), Arg::Int(-42)]).await.unwrap();
    let bytes = |key: &str| Reply::Bytes(key.as_bytes().to_vec());
    let expected = Reply::List(vec![
        bytes(&keys[0]),
        bytes(&keys[1]),
        Reply::Bytes(vec![0, 255]),
        Reply::Int(-41),
        Reply::Nil,
        Reply::List(vec![Reply::Int(7)]),
    ]);
    assert_eq!(answer, expected);
}

async fn a_script_missing_from_the_cache_is_sent_again(TestRedis { kv, nodes }: TestRedis) {
    let script =
        fresh_script("return redis.call('INCR', KEYS[1]) + redis.call('PEXPIRE', KEYS[1], 60000) * 0");
    let keys = [tag()];
    for before in 0..2 {
        assert_eq!(kv.run(&script, &keys, &[]).await.unwrap(), Reply::Int(before + 1));
    }
    for url in &nodes {
        let mut node =
            redis::Client::open(url.as_str()).unwrap().get_multiplexed_async_connection().await.unwrap();
        redis::cmd("SCRIPT").arg("FLUSH").exec_async(&mut node).await.unwrap();
    }
    assert_eq!(kv.run(&script, &keys, &[]).await.unwrap(), Reply::Int(3), "the script ran exactly once");
}

async fn keys_of_different_slots_are_refused(TestRedis { kv, .. }: TestRedis) {
    assert_eq!(count(&kv, &["{a}", "{b}"]).await, Err(Error::Keys));
    assert_eq!(count(&kv, &[]).await, Err(Error::Keys));
    let tag = tag();
    assert_eq!(count(&kv, &[&format!("x{{{tag}}}"), &format!("y{{{tag}}}")]).await, Ok(done()));
}

async fn a_script_error_is_returned_and_does_not_open_the_breaker(TestRedis { kv, .. }: TestRedis) {
    let script = fresh_script("return redis.error_reply('NOPE not like this')");
    let key = tag();
    for _ in 0..40 {
        let error = kv.run(&script, &[&key], &[]).await.unwrap_err();
        assert!(matches!(&error, Error::Reply(text) if text.contains("not like this")), "{error:?}");
        assert!(!error.is_unavailable());
    }
    assert_eq!(count(&kv, &[&key]).await, Ok(done()));
}

async fn concurrent_calls_get_their_own_replies(TestRedis { kv, .. }: TestRedis) {
    const CALLS: i64 = 2_000;
    const TAGS: i64 = 16;
    let tags: Vec<String> = (0..TAGS).map(|_| tag()).collect();
    let calls = (0..CALLS).map(|call| {
        let (kv, tag) = (kv.clone(), &tags[usize::try_from(call % TAGS).unwrap()]);
        async move { kv.run(&COUNT, &[tag], &[Arg::Int(call)]).await }
    });
    for (call, answer) in (0..CALLS).zip(join_all(calls).await) {
        assert_eq!(answer, Ok(Reply::Bytes(call.to_string().into_bytes())));
    }
    let read = fresh_script("return tonumber(redis.call('GET', KEYS[1]))");
    for tag in &tags {
        assert_eq!(kv.run(&read, &[tag], &[]).await, Ok(Reply::Int(CALLS / TAGS)), "each call ran once");
    }
}

async fn ping_time_and_memory_policy_are_reported(TestRedis { kv, .. }: TestRedis) {
    kv.ping().await.unwrap();
    let here = Clock::system().now();
    let there = kv.server_time().await.unwrap();
    let apart = here.since(there).max(there.since(here));
    assert!(apart < Duration::from_mins(1), "{here} {there}");
    assert_eq!(kv.maxmemory_policy().await.unwrap(), "noeviction");
    let check: Arc<dyn urr_telemetry::Check> = Arc::new(kv);
    assert_eq!(check.check().await, Ok(()));
}

async fn calls_are_counted_by_script_and_outcome(TestRedis { kv, .. }: TestRedis) {
    static COUNTED: Script = Script::new("test.counted", "return 1");
    let metrics = Metrics::install();
    kv.run(&COUNTED, &["k"], &[]).await.unwrap();
    kv.run(&COUNTED, &[""; 0], &[]).await.unwrap_err();
    let text = metrics.render();
    for expected in [
        "urr_kv_calls_total{script=\"test.counted\",outcome=\"ok\"}",
        "urr_kv_calls_total{script=\"test.counted\",outcome=\"keys\"}",
        "urr_kv_call_seconds_count{script=\"test.counted\"}",
    ] {
        assert!(text.contains(expected), "{expected} is missing:\n{text}");
    }
}

#[tokio::test]
async fn slots_match_cluster_keyslot() {
    let Some(nodes) = services::redis_cluster() else { return };
    let first = nodes.split(',').next().unwrap();
    within(LIMIT, async {
        let mut node = redis::Client::open(first).unwrap().get_multiplexed_async_connection().await.unwrap();
        for key in
            ["", "a", "{", "}", "{}", "{}x", "a{b}c", "{a}{b}", "a}{b", "{{a}}", "gate:{e}:s", "한글{좌석}"]
        {
            let theirs: u16 =
                redis::cmd("CLUSTER").arg("KEYSLOT").arg(key).query_async(&mut node).await.unwrap();
            assert_eq!(slots::slot(key), theirs, "{key:?}");
        }
    })
    .await;
}
