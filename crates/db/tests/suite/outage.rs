//! PostgreSQL outages: errors arrive in time and recovery is automatic.

use std::{
    future::pending,
    net::SocketAddr,
    sync::Mutex,
    time::{Duration, Instant},
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::{Barrier, watch},
    task::JoinSet,
};
use urr_db::{Db, Error, Kind, Tx, transaction};
use urr_kernel::{CommonError, Failure, Refusal};
use urr_testkit::{Proxy, until};

use crate::fresh::{DOMAIN, LIMIT, Server, count, sit, who, with_postgres};

/// The guarantee is two seconds; the slack is for a busy test machine.
const PROMISED: Duration = Duration::from_secs(2);
const SLACK: Duration = Duration::from_millis(500);

/// The errors of a service that has no others.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Refused(#[from] CommonError);

impl Refusal for Refused {}

/// The domain's database behind a proxy that can fail.
async fn behind_proxy(server: &Server) -> (Db, Proxy) {
    server.migrated(&DOMAIN).await;
    let proxy = Proxy::start(server.address()).await;
    (at(server, proxy.address()), proxy)
}

fn at(server: &Server, address: SocketAddr) -> Db {
    let mut config = server.config();
    config.url = config.url.replace(server.address(), &address.to_string());
    Db::postgres(&config, &DOMAIN).unwrap()
}

async fn write(db: &Db, seat: i64) -> Result<(), Error> {
    transaction!(db, "test.sit", async |tx: &mut Tx<'_>| sit(tx, seat, "ann").await)
}

#[expect(clippy::disallowed_methods, reason = "the test measures real time")]
async fn refused_in_time(db: &Db, seat: i64) -> Kind {
    let asked = Instant::now();
    let error = write(db, seat).await.expect_err("the server is unreachable");
    assert!(asked.elapsed() < PROMISED + SLACK, "{:?}: {error}", asked.elapsed());
    error.kind()
}

#[tokio::test]
async fn unreachable_server_is_unavailable_and_recovers() {
    with_postgres(async |server: Server| {
        let (db, mut proxy) = behind_proxy(&server).await;
        // Several connections, so that several are stale afterwards.
        let (a, b, c) = tokio::join!(write(&db, 1), write(&db, 2), write(&db, 3));
        a.and(b).and(c).unwrap();
        proxy.cut().await;
        for seat in 10..13 {
            assert_eq!(refused_in_time(&db, seat).await, Kind::Unavailable);
        }
        proxy.restore().await;
        // Even the first request succeeds: stale connections cause no second round of errors.
        let (a, b, c) = tokio::join!(write(&db, 4), write(&db, 5), write(&db, 6));
        a.and(b).and(c).unwrap();
        assert_eq!(count(&db).await, 6);
    })
    .await;
}

#[tokio::test]
async fn stalled_server_is_unavailable_in_time_and_recovers() {
    with_postgres(async |server: Server| {
        let (db, mut proxy) = behind_proxy(&server).await;
        let (a, b, c) = tokio::join!(write(&db, 1), write(&db, 2), write(&db, 3));
        a.and(b).and(c).unwrap();
        proxy.stall().await;
        let (a, b) = tokio::join!(refused_in_time(&db, 10), refused_in_time(&db, 11));
        assert_eq!((a, b), (Kind::Unavailable, Kind::Unavailable));
        // No connection is left in the pool, and a new one hangs too.
        assert_eq!(refused_in_time(&db, 12).await, Kind::Unavailable);
        proxy.restore().await;
        let (a, b, c) = tokio::join!(write(&db, 4), write(&db, 5), write(&db, 6));
        a.and(b).and(c).unwrap();
    })
    .await;
}

#[tokio::test]
async fn opens_while_the_server_is_down() {
    with_postgres(async |server: Server| {
        let (db, mut proxy) = behind_proxy(&server).await;
        proxy.cut().await;
        assert_eq!(db.ping().await.unwrap_err().kind(), Kind::Unavailable);
        proxy.restore().await;
        db.ping().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn connection_lost_in_the_body_is_unavailable_and_rolls_back() {
    with_postgres(async |server: Server| {
        let (db, proxy) = behind_proxy(&server).await;
        let proxy = Mutex::new(Some(proxy));
        let cut = db.write("test.cut", async |tx: &mut Tx<'_>| {
            sit(tx, 1, "ann").await?;
            drop(proxy.lock().unwrap().take());
            sit(tx, 2, "ann").await
        });
        assert_eq!(cut.await.unwrap_err().kind(), Kind::Unavailable);
        let direct = Db::postgres(&server.config(), &DOMAIN).unwrap();
        assert_eq!(count(&direct).await, 0);
    })
    .await;
}

/// The reply to COMMIT never arrives; in this case it was committed.
#[tokio::test]
async fn connection_lost_during_commit_is_unknown_commit() {
    with_postgres(async |server: Server| {
        let (db, mut proxy) = behind_proxy(&server).await;
        write(&db, 1).await.unwrap();
        let stalled = db.write("test.commit", async |tx: &mut Tx<'_>| {
            sit(tx, 2, "ann").await?;
            proxy.stall().await;
            Ok::<_, Error>(())
        });
        let error = stalled.await.unwrap_err();
        assert_eq!(error.kind(), Kind::UnknownCommit);
        assert!(!error.is_unavailable(), "a retry could apply the change twice");
        let answer = Failure::<Refused>::from(error);
        assert!(
            matches!(answer, Failure::Failed { answer: Refused(CommonError::Unavailable), .. }),
            "a service answers 503"
        );
        // The proxy buffered the COMMIT and forwards it now, as a network would.
        proxy.restore().await;
        let direct = Db::postgres(&server.config(), &DOMAIN).unwrap();
        until(LIMIT, async || who(&direct, 2).await.is_some()).await;
        write(&db, 3).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn terminated_connections_are_replaced_without_an_error() {
    with_postgres(async |server: Server| {
        let db = server.migrated(&DOMAIN).await;
        let (a, b) = tokio::join!(write(&db, 1), write(&db, 2));
        a.and(b).unwrap();
        let ended =
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'urr tickets'
                      and datname = current_database()";
        server.command(ended).await;
        // The close arrives a moment later; until then a request may still get a closed connection.
        until(LIMIT, async || write(&db, 3).await.is_ok()).await;
        let (a, b) = tokio::join!(write(&db, 4), write(&db, 5));
        a.and(b).unwrap();
    })
    .await;
}

/// A proxy that drops the state of its connections, like a restarted firewall: they stay open but
/// pass nothing, while new ones work.
struct Forgetful {
    address: SocketAddr,
    forgotten: watch::Sender<()>,
    _tasks: JoinSet<()>,
}

impl Forgetful {
    async fn start(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, target) = (listener.local_addr().unwrap(), target.to_owned());
        let (forgotten, forget) = watch::channel(());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let mut server = TcpStream::connect(&target).await.unwrap();
                let mut forget = forget.clone();
                forget.mark_unchanged();
                connections.spawn(async move {
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = forget.changed() => pending().await,
                    }
                });
            }
        });
        Self { address, forgotten, _tasks: tasks }
    }
}

/// Opens at least four connections and then makes the proxy drop the state of all of them.
async fn with_forgotten_connections(server: &Server) -> (Db, Forgetful) {
    server.migrated(&DOMAIN).await;
    let between = Forgetful::start(server.address()).await;
    let db = at(server, between.address);
    // Four at the same time, so that there are four connections.
    let all_inside = Barrier::new(4);
    let inside = async |seat: i64| {
        db.write("test.inside", async |tx: &mut Tx<'_>| {
            all_inside.wait().await;
            sit(tx, seat, "ann").await
        })
        .await
    };
    let (a, b, c, d) = tokio::join!(inside(1), inside(2), inside(3), inside(4));
    a.and(b).and(c).and(d).unwrap();
    between.forgotten.send(()).unwrap();
    (db, between)
}

#[tokio::test]
async fn silently_dead_busy_connections_cause_one_error_in_all() {
    with_postgres(async |server: Server| {
        let (db, _between) = with_forgotten_connections(&server).await;
        assert_eq!(refused_in_time(&db, 10).await, Kind::Unavailable);
        for seat in 5..8 {
            write(&db, seat).await.unwrap();
        }
        assert_eq!(count(&db).await, 7);
    })
    .await;
}

#[tokio::test]
async fn silently_dead_idle_connections_cause_no_error() {
    with_postgres(async |server: Server| {
        let (db, _between) = with_forgotten_connections(&server).await;
        // A connection becomes idle only by the passing of time.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        for seat in 5..8 {
            write(&db, seat).await.unwrap();
        }
        assert_eq!(count(&db).await, 7);
    })
    .await;
}
