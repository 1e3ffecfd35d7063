//! `urr doctor`: checks every configured store and remote role, and prints one line each.

use std::{fs, time::Duration};

use urr_bus::BusKind;
use urr_db::{Db, EngineKind, Tx};
use urr_http::{Call, Client, ClientLimits, StatusCode};
use urr_kernel::{Clock, Timestamp};
use urr_kv::{Kv, Script};

use crate::{
    aws,
    clocks::same_time,
    config::Config,
    failure::Failure,
    files,
    remote::RemoteRole,
    roles::Role,
    say::say,
    stores::{self, Databases},
    watch::keeps_keys,
};

/// Timeout of one check. An operator is waiting, and a store that needs longer counts as failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// A clock before this time is wrong.
const OLDEST_NOW: &str = "2025-01-01T00:00:00Z";

urr_db::statements! {
    /// Checks every page of the file for damage.
    QUICK_CHECK = sqlite "pragma quick_check(1)";

    /// The version of the engine.
    SQLITE_VERSION = sqlite "select sqlite_version()";

    /// The current user, the server's version and the server's time.
    SERVER = postgres "select current_user::text, current_setting('server_version'), clock_timestamp()";

    /// The maximum number of connections, without those reserved for superusers.
    CONNECTIONS = postgres "
        select current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint";

    /// Whether the current user can use the schema of another domain.
    CAN_REACH = postgres "select coalesce(has_schema_privilege(current_user, to_regnamespace($1)::oid, 'usage'), false)";
}

/// Runs on the node that serves its key, so a cluster with missing nodes fails.
static PROBE: Script = Script::new("app.probe", "return redis.call('EXISTS', KEYS[1])");

/// Keys that a six-node cluster stores on different nodes.
const PROBED: [&str; 6] =
    ["{doctor-1}", "{doctor-2}", "{doctor-3}", "{doctor-4}", "{doctor-5}", "{doctor-6}"];

/// Runs every check. Returns an error if one failed.
pub(crate) async fn doctor(config: &Config) -> Result<(), Failure> {
    let clock = Clock::system();
    let mut report = Report::default();
    report.add("clock", sane(clock.now()));
    report.add("open files", Ok(open_files(config)));
    if config.storage.is_sqlite() {
        report.embedded(config).await;
    } else {
        report.postgres(config, config.storage.pool, &clock).await;
    }
    if config.redis.is_on() {
        report.redis(config, &clock).await;
    }
    if config.bus.kind == BusKind::Kafka {
        let name = format!("Kafka at {}", config.bus.broker_list());
        report.add(&name, kafka(config).await);
    }
    for (name, found) in aws::examine(config, &clock).await {
        report.add(&name, found);
    }
    report.remote(config, &clock).await;
    report.upstream(config, &clock).await;
    let failed = report.failed;
    if failed == 0 { Ok(()) } else { Err(Failure::new(format!("{failed} of {} checks failed", report.made))) }
}

/// Counts the checks.
#[derive(Default)]
struct Report {
    made: u32,
    failed: u32,
}

impl Report {
    /// Prints one line: `ok` with a remark, or `FAIL` with the reason.
    fn add(&mut self, what: &str, found: Result<String, String>) {
        self.made += 1;
        match found {
            Ok(remark) => say!("ok    {what}: {remark}"),
            Err(wrong) => {
                self.failed += 1;
                say!("FAIL  {what}: {wrong}");
            }
        }
    }

    async fn embedded(&mut self, config: &Config) {
        let name = format!("data directory {}", config.data_dir.display());
        if !config.data_dir.exists() {
            return self.add(&name, Ok("not there yet; the first start creates it".to_owned()));
        }
        let databases = match Databases::open(config) {
            Ok(databases) => databases,
            // In use by another process, or not writable: its files are not checked.
            Err(Failure(lines)) => return self.add(&name, Err(lines.join("; "))),
        };
        self.add(&name, writable(config));
        for (role, db) in databases.iter() {
            self.add(&format!("{} database", role.name), sqlite(db).await);
        }
    }

    async fn postgres(&mut self, config: &Config, pool: usize, clock: &Clock) {
        let databases = match Databases::open(config) {
            Ok(databases) => databases,
            Err(Failure(lines)) => return self.add("PostgreSQL database", Err(lines.join("; "))),
        };
        for (role, db) in databases.iter() {
            self.add(&format!("{} database", role.name), postgres(role, db, clock).await);
        }
        if let Some((_, db)) = databases.iter().next() {
            let most = databases.iter().count() * pool;
            self.add("PostgreSQL connections", connections(db, most).await);
        }
    }

    async fn redis(&mut self, config: &Config, clock: &Clock) {
        let name = "Redis";
        let patient = Config {
            redis: urr_kv::Settings { deadline: Duration::from_secs(2), ..config.redis.clone() },
            ..config.clone()
        };
        match stores::redis(&patient, clock) {
            Ok(Some(kv)) => {
                let found = tokio::time::timeout(PATIENCE, redis(&kv, clock)).await;
                self.add(name, found.unwrap_or_else(|_| Err(late())));
            }
            Ok(None) => {}
            Err(Failure(lines)) => self.add(name, Err(lines.join("; "))),
        }
    }

    async fn remote(&mut self, config: &Config, clock: &Clock) {
        match RemoteRole::all(config, clock) {
            Ok(roles) => {
                for role in roles {
                    let found =
                        tokio::time::timeout(PATIENCE, role.probe()).await.unwrap_or_else(|_| Err(late()));
                    self.add(&role.to_string(), found.map(|()| "answers and accepts our token".to_owned()));
                }
            }
            Err(Failure(lines)) => self.add("remote roles", Err(lines.join("; "))),
        }
    }

    async fn upstream(&mut self, config: &Config, clock: &Clock) {
        let client = Client::new(ClientLimits::default(), clock.clone());
        for role in config.passes_on() {
            for url in config.upstream.of(role) {
                let found = tokio::time::timeout(PATIENCE, listener(&client, url.expose())).await;
                let name = format!("{} behind the gateway at {}", role.name, url.expose());
                self.add(&name, found.unwrap_or_else(|_| Err(late())));
            }
        }
    }
}

/// Checks that the public listener of another process answers and is ready.
async fn listener(client: &Client, url: &str) -> Result<String, String> {
    let target = client.target(url).map_err(why)?;
    // No retry: an operator is waiting and can run the command again.
    let answer = target.send(Call::get("/health/ready").idempotent(false)).await.map_err(why)?;
    match answer.status {
        StatusCode::OK => Ok("ready".to_owned()),
        StatusCode::SERVICE_UNAVAILABLE => {
            Err(format!("not ready: {}", String::from_utf8_lossy(&answer.body)))
        }
        status => Err(format!("it answered {status}: this is not a public listener of urr")),
    }
}

fn late() -> String {
    format!("no answer within {} s", PATIENCE.as_secs())
}

fn sane(now: Timestamp) -> Result<String, String> {
    let oldest: Timestamp = OLDEST_NOW.parse().expect("a fixed time is well-formed");
    if now < oldest {
        return Err(format!("it says {now}; set it, because sale windows depend on it"));
    }
    Ok(format!("it says {now}"))
}

/// Whether they suffice for `http.max_connections`. Not a failure: with fewer, the server accepts
/// fewer connections.
fn open_files(config: &Config) -> String {
    let files = files::raise();
    let enough = || format!("{files}, enough for {} connections", config.http.max_connections);
    files::shortage(config, files).unwrap_or_else(enough)
}

fn writable(config: &Config) -> Result<String, String> {
    let probe = config.data_dir.join(".doctor");
    fs::write(&probe, b"x")
        .and_then(|()| fs::remove_file(&probe))
        .map_err(|error| format!("not writable: {error}"))?;
    Ok("writable and not in use".to_owned())
}

/// The chain of causes.
fn why(error: impl std::error::Error) -> String {
    urr_telemetry::chain(&error)
}

async fn sqlite(db: &Db) -> Result<String, String> {
    let look = db.read("app.doctor", async |tx: &mut Tx<'_>| {
        let damage: String = tx.one(&QUICK_CHECK, &[], |row| row.get(0)).await?;
        let version: String = tx.one(&SQLITE_VERSION, &[], |row| row.get(0)).await?;
        Ok::<_, urr_db::Error>((damage, version))
    });
    let (damage, version) = look.await.map_err(why)?;
    if damage != "ok" {
        return Err(format!("damaged: {damage}; restore it from a backup"));
    }
    db.check_migrated().await.map_err(why)?;
    Ok(format!("SQLite {version}, undamaged, migrated"))
}

async fn postgres(role: Role, db: &Db, clock: &Clock) -> Result<String, String> {
    debug_assert_eq!(db.engine(), EngineKind::Postgres);
    let others: Vec<&str> = Role::domains().filter(|other| *other != role).map(|role| role.name).collect();
    let look = db.read("app.doctor", async |tx: &mut Tx<'_>| {
        let server: (String, String, Timestamp) =
            tx.one(&SERVER, &[], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).await?;
        let mut reachable = Vec::new();
        for other in &others {
            if tx.one(&CAN_REACH, &[other], |row| row.get::<bool>(0)).await? {
                reachable.push(*other);
            }
        }
        Ok::<_, urr_db::Error>((server, reachable))
    });
    let before = clock.now();
    let ((user, version, now), reachable) = look.await.map_err(why)?;
    same_time(before, now, clock.now())?;
    db.check_migrated().await.map_err(why)?;
    if !reachable.is_empty() {
        return Err(format!("{user} can reach the tables of {}; run `urr migrate`", reachable.join(", ")));
    }
    Ok(format!("PostgreSQL {version}, migrated, {user} reaches its own tables only"))
}

async fn connections(db: &Db, most: usize) -> Result<String, String> {
    let look = db
        .read("app.doctor", async |tx: &mut Tx<'_>| tx.one(&CONNECTIONS, &[], |row| row.get::<u32>(0)).await);
    let allowed: Result<u32, urr_db::Error> = look.await;
    room(most, allowed.map_err(why)? as usize)
}

/// Fails if this process may open more connections than the server allows.
fn room(most: usize, allowed: usize) -> Result<String, String> {
    if most > allowed {
        return Err(format!(
            "this process opens up to {most} and the server allows {allowed}; lower storage.pool or raise max_connections"
        ));
    }
    Ok(format!("this process opens up to {most} of the {allowed} that the server allows"))
}

async fn redis(kv: &Kv, clock: &Clock) -> Result<String, String> {
    kv.ping().await.map_err(why)?;
    for key in PROBED {
        kv.run(&PROBE, &[key], &[]).await.map_err(why)?;
    }
    keeps_keys(&kv.maxmemory_policy().await.map_err(why)?)?;
    let before = clock.now();
    let now = kv.server_time().await.map_err(why)?;
    same_time(before, now, clock.now())?;
    Ok("answers, does not evict keys".to_owned())
}

async fn kafka(config: &Config) -> Result<String, String> {
    let bus = stores::bus(config).map_err(|Failure(lines)| lines.join("; "))?;
    if let Some(broker) = bus.health() {
        broker.check().await?;
    }
    Ok("answers".to_owned())
}

#[cfg(test)]
mod tests {
    use urr_testkit::{fresh_postgres, fresh_sqlite};

    use super::*;

    #[tokio::test]
    async fn every_statement_prepares_on_its_engines() {
        let (_dir, sqlite) = fresh_sqlite(&urr_auth::DOMAIN).await;
        let postgres = fresh_postgres(&urr_auth::DOMAIN).await;
        let databases: Vec<&Db> = std::iter::once(&sqlite).chain(&postgres).collect();
        let statements = [STATEMENTS, crate::clocks::STATEMENTS, crate::migrate::STATEMENTS].concat();
        urr_db::check_statements(&databases, &statements).await.unwrap();
    }

    #[test]
    fn a_pool_larger_than_the_server_allows_fails() {
        assert!(room(80, 97).unwrap().contains("80 of the 97"));
        assert!(room(97, 97).is_ok());
        assert!(room(98, 97).unwrap_err().contains("storage.pool"));
    }

    #[test]
    fn a_clock_in_the_past_fails() {
        let now: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        assert!(sane(now).is_ok());
        assert!(sane("1970-01-01T00:00:05Z".parse().unwrap()).unwrap_err().contains("set it"));
    }
}
