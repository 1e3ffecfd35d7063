//! A TCP proxy on loopback with injectable failures: the target becomes unreachable, hangs, and
//! recovers.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// Bytes per read; the mode is checked after each.
const CHUNK_BYTES: usize = 16 * 1024;
/// Listen backlog: more connections than any test opens at once.
const BACKLOG: u32 = 1024;

/// What the proxy does with connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Forwards bytes.
    Forward,
    /// Accepts connections but holds all bytes back.
    Stall,
    /// Resets open connections and refuses new ones.
    Cut,
}

/// A proxy in front of one target. It stops when dropped.
pub struct Proxy {
    address: SocketAddr,
    mode: watch::Sender<Mode>,
    /// The mode that the serving task has applied.
    reached: watch::Receiver<Mode>,
    tasks: JoinSet<()>,
    /// A bound socket that does not listen: it reserves the port, so that while the proxy is cut,
    /// connections are refused and no other process can take the port.
    _place: TcpSocket,
}

impl Proxy {
    /// Listens on a free port and forwards to `target`, as `host:port`.
    ///
    /// # Panics
    ///
    /// If loopback has no free port.
    pub async fn start(target: &str) -> Self {
        let place = reserve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("loopback has a free port");
        let address = place.local_addr().expect("a bound socket has an address");
        let (mode, wanted) = watch::channel(Mode::Forward);
        let (now, mut reached) = watch::channel(Mode::Cut);
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(address, target.to_owned(), wanted, now));
        reached.wait_for(|mode| *mode == Mode::Forward).await.expect("the serving task is running");
        Self { address, mode, reached, tasks, _place: place }
    }

    /// The address to use instead of the target's.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Resets every connection and refuses new ones, like a killed server.
    pub async fn cut(&mut self) {
        self.set(Mode::Cut).await;
    }

    /// Accepts connections but forwards nothing, like a frozen server or a broken network.
    pub async fn stall(&mut self) {
        self.set(Mode::Stall).await;
    }

    /// Forwards again, including bytes held back during a stall.
    pub async fn restore(&mut self) {
        self.set(Mode::Forward).await;
    }

    /// Returns once the mode is applied.
    async fn set(&mut self, mode: Mode) {
        assert!(!self.tasks.is_empty(), "the serving task runs as long as the proxy");
        self.mode.send_replace(mode);
        self.reached.wait_for(|reached| *reached == mode).await.expect("the serving task is running");
    }
}

async fn serve(
    address: SocketAddr,
    target: String,
    mut wanted: watch::Receiver<Mode>,
    now: watch::Sender<Mode>,
) {
    loop {
        let mut connections = JoinSet::new();
        let listener = listen(address).expect("the port is reserved for the proxy");
        loop {
            let mode = *wanted.borrow_and_update();
            if mode == Mode::Cut {
                break;
            }
            now.send_replace(mode);
            tokio::select! {
                accepted = listener.accept() => {
                    if let Ok((client, _)) = accepted {
                        connections.spawn(carry(client, target.clone(), wanted.clone()));
                    }
                }
                changed = wanted.changed() => if changed.is_err() { return },
                // Reap finished connections.
                Some(_) = connections.join_next() => {}
            }
        }
        drop(listener);
        connections.shutdown().await;
        now.send_replace(Mode::Cut);
        if wanted.wait_for(|mode| *mode != Mode::Cut).await.is_err() {
            return;
        }
    }
}

/// One connection, until either side closes it or the task is aborted.
async fn carry(client: TcpStream, target: String, mode: watch::Receiver<Mode>) {
    // An unreachable target looks to the client like one that closed the connection.
    let Ok(server) = TcpStream::connect(target).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // The end of one direction closes the other half. Errors are those of the two ends and are
    // ignored here.
    let _ = tokio::join!(copy(from_client, to_server, mode.clone()), copy(from_server, to_client, mode));
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut mode: watch::Receiver<Mode>,
) -> io::Result<()> {
    let mut chunk = vec![0_u8; CHUNK_BYTES];
    loop {
        let read = from.read(&mut chunk).await?;
        if mode.wait_for(|mode| *mode == Mode::Forward).await.is_err() {
            return Ok(());
        }
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&chunk[..read]).await?;
    }
}

fn reserve(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    // Needed on both, so that the reserved socket and the listener can share the port.
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    reserve(address)?.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use std::{io::ErrorKind, time::Duration};

    use super::*;
    use crate::within;

    const LIMIT: Duration = Duration::from_mins(1);

    /// An echo server that runs until the set is dropped.
    async fn echo() -> (SocketAddr, JoinSet<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(async move {
                    let (mut from, mut to) = stream.into_split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        (address, tasks)
    }

    async fn exchange(stream: &mut TcpStream, word: [u8; 4]) -> io::Result<[u8; 4]> {
        stream.write_all(&word).await?;
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await?;
        Ok(answer)
    }

    #[tokio::test]
    async fn cut_resets_and_refuses_connections_until_restored() {
        within(LIMIT, async {
            let (target, _echo) = echo().await;
            let mut proxy = Proxy::start(&target.to_string()).await;
            let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
            assert_eq!(exchange(&mut stream, *b"ping").await.unwrap(), *b"ping");

            proxy.cut().await;
            exchange(&mut stream, *b"lost").await.expect_err("the connection was cut");
            let refused = TcpStream::connect(proxy.address()).await.expect_err("nothing listens");
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

            proxy.restore().await;
            let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
            assert_eq!(exchange(&mut stream, *b"back").await.unwrap(), *b"back");
        })
        .await;
    }

    #[tokio::test]
    async fn stall_holds_bytes_back_until_restored() {
        within(LIMIT, async {
            let (target, _echo) = echo().await;
            let mut proxy = Proxy::start(&target.to_string()).await;
            let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
            assert_eq!(exchange(&mut stream, *b"ping").await.unwrap(), *b"ping");

            proxy.stall().await;
            let mut answer = Box::pin(exchange(&mut stream, *b"wait"));
            let early = tokio::time::timeout(Duration::from_millis(50), &mut answer).await;
            early.expect_err("a stalled proxy forwards nothing");
            TcpStream::connect(proxy.address()).await.expect("a stalled proxy still accepts connections");

            proxy.restore().await;
            assert_eq!(answer.await.unwrap(), *b"wait");
        })
        .await;
    }

    #[tokio::test]
    async fn close_on_one_side_reaches_the_other() {
        within(LIMIT, async {
            let (target, _echo) = echo().await;
            let proxy = Proxy::start(&target.to_string()).await;
            let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
            assert_eq!(exchange(&mut stream, *b"ping").await.unwrap(), *b"ping");
            stream.shutdown().await.unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap();
            assert!(rest.is_empty());
        })
        .await;
    }
}
