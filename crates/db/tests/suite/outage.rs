//! PostgreSQL goes away or stands still: an answer in time, and recovery without help.

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
use urr_testkit::{Proxy, until};

use crate::fresh::{DOMAIN, LIMIT, Server, count, sit, who, with_postgres};

/// The promise: within two seconds. The rest is for a test machine that is busy with other tests.
const PROMISED: Duration = Duration::from_secs(2);
const SLACK: Duration = Duration::from_millis(500);

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

#[expect(clippy::disallowed_methods, reason = "the time limit is what is tested")]
async fn refused_in_time(db: &Db, seat: i64) -> Kind {
    let asked = Instant::now();
    let error = write(db, seat).await.expect_err("the server is away");
    assert!(asked.elapsed() < PROMISED + SLACK, "{:?}: {error}", asked.elapsed());
    error.kind()
}

#[tokio::test]
async fn a_server_that_is_gone_is_unavailable_and_comes_back_by_itself() {
    with_postgres(async |server: Server| {
        let (db, mut proxy) = behind_proxy(&server).await;
        // Several connections, so that several would be stale afterwards.
        let (a, b, c) = tokio::join!(write(&db, 1), write(&db, 2), write(&db, 3));
        a.and(b).and(c).unwrap();
        proxy.cut().await;
        for seat in 10..13 {
            assert_eq!(refused_in_time(&db, seat).await, Kind::Unavailable);
        }
        proxy.restore().await;
        // The very first request is served: no stale connection costs a second round of errors.
        let (a, b, c) = tokio::join!(write(&db, 4), write(&db, 5), write(&db, 6));
        a.and(b).and(c).unwrap();
        assert_eq!(count(&db).await, 6);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_stands_still_is_unavailable_in_time_and_comes_back_by_itself() {
    with_postgres(async |server: Server| {
        let (db, mut proxy) = behind_proxy(&server).await;
        let (a, b, c) = tokio::join!(write(&db, 1), write(&db, 2), write(&db, 3));
        a.and(b).and(c).unwrap();
        proxy.stall().await;
        let (a, b) = tokio::join!(refused_in_time(&db, 10), refused_in_time(&db, 11));
        assert_eq!((a, b), (Kind::Unavailable, Kind::Unavailable));
        // Now there is no connection left, and a new one hangs as well.
        assert_eq!(refused_in_time(&db, 12).await, Kind::Unavailable);
        proxy.restore().await;
        let (a, b, c) = tokio::join!(write(&db, 4), write(&db, 5), write(&db, 6));
        a.and(b).and(c).unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_server_that_was_never_there_does_not_keep_us_from_starting() {
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
async fn a_connection_lost_inside_a_body_is_unavailable_and_nothing_happened() {
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

/// The commit's answer never arrives: it may have happened, and here it has.
#[tokio::test]
async fn a_connection_lost_at_commit_is_neither_yes_nor_no() {
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
        assert!(!error.is_unavailable(), "nobody may simply try again");
        // The proxy kept the COMMIT and passes it on now, as a network would.
        proxy.restore().await;
        let direct = Db::postgres(&server.config(), &DOMAIN).unwrap();
        until(LIMIT, async || who(&direct, 2).await.is_some()).await;
        write(&db, 3).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn connections_that_an_operator_ended_are_replaced_without_an_error() {
    with_postgres(async |server: Server| {
        let db = server.migrated(&DOMAIN).await;
        let (a, b) = tokio::join!(write(&db, 1), write(&db, 2));
        a.and(b).unwrap();
        let ended =
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'urr tickets'
                      and datname = current_database()";
        server.command(ended).await;
        // The end of a connection arrives a moment later; until then a request may still be given one.
        until(LIMIT, async || write(&db, 3).await.is_ok()).await;
        let (a, b) = tokio::join!(write(&db, 4), write(&db, 5));
        a.and(b).unwrap();
    })
    .await;
}

/// Between us and the server stands something that forgets connections: they stay open and nothing passes, while new ones
/// are fine. A firewall that was restarted does that.
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

/// Four connections at least, of which something then forgets all.
async fn with_forgotten_connections(server: &Server) -> (Db, Forgetful) {
    server.migrated(&DOMAIN).await;
    let between = Forgetful::start(server.address()).await;
    let db = at(server, between.address);
    // Four at the same moment, so that there are four connections.
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
async fn busy_connections_that_were_forgotten_cost_one_error_and_not_one_each() {
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
async fn idle_connections_that_were_forgotten_cost_no_error() {
    with_postgres(async |server: Server| {
        let (db, _between) = with_forgotten_connections(&server).await;
        // Idle means that time passes; there is nothing else to wait for.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        for seat in 5..8 {
            write(&db, seat).await.unwrap();
        }
        assert_eq!(count(&db).await, 7);
    })
    .await;
}
