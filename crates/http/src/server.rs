//! The HTTP/1.1 listener, with limits on headers, time and connections and a graceful shutdown.

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use axum::body::Body;
use http::{Request, Version, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream, ToSocketAddrs},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Limits, Respond,
    parse_errors::ParseErrorResponse,
    per_address::{ConnectionPermit, PerAddress, Shared},
    quiet::{HeadTimer, ReadActivity},
    stream::Stream,
};

/// Pause after `accept` failed for lack of file descriptors or memory, until some are freed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections over the limit that get a 503 at the same time. Beyond these they are closed without
/// a response.
pub const MAX_REFUSALS: usize = 256;

/// Time limit for sending that 503.
const REFUSAL_TIME: Duration = Duration::from_secs(2);

/// hyper's smallest read buffer.
const MIN_BUFFER: usize = 8 * 1024;

/// Headers that hyper parses on the stack. Any other limit costs an allocation per request.
const PARSER_HEADERS: usize = 100;

/// The response to a connection over the limit, sent without reading its request.
const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/problem+json\r\n\
    content-length: 138\r\n\
    retry-after: 1\r\n\
    cache-control: no-store\r\n\
    connection: close\r\n\
    \r\n\
    {\"code\":\"http.overloaded\",\"error\":\"Too many connections are open.\",\
    \"message\":\"Too many connections are open.\",\"status\":503,\"retryAfter\":1}";

/// The remote address of the connection: the client or the last proxy. In the extensions of every
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// In the extensions of an HTTP/1.1 request without `Host`. Only set for requests from a socket: a
/// router called in process needs no host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MissingHost;

/// A bound listener that does not accept connections yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    shared: Shared,
}

impl Server {
    /// Binds the address. Fails at once if another process uses it.
    pub async fn bind(addr: impl ToSocketAddrs) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(addr).await?, shared: Shared::default() })
    }

    /// Exempts addresses that many clients share, such as proxies, from
    /// [`Limits::max_connections_per_address`].
    #[must_use]
    pub fn sharing(self, is_shared: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self { shared: Shared::new(is_shared), ..self }
    }

    /// The bound address, with the actual port if port 0 was requested.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown` is cancelled. Then new connections are refused, idle ones closed,
    /// and requests in progress get [`Limits::drain_time`] to finish.
    pub async fn serve(
        self,
        responder: impl Respond,
        limits: Limits,
        shutdown: CancellationToken,
    ) -> io::Result<()> {
        let open = Open {
            responder: Arc::new(responder),
            limits,
            shutdown,
            cut: CancellationToken::new(),
            tasks: TaskTracker::new(),
            places: Arc::new(Semaphore::new(limits.max_connections)),
            addresses: PerAddress::new(limits.per_address(), self.shared),
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
            connections: metrics::gauge!("urr_http_connections"),
            refused: refused("all"),
            refused_address: refused("address"),
        };
        open.accept(self.listener).await;
        open.drain().await;
        Ok(())
    }
}

/// Counter of refused connections, by the limit that was reached.
fn refused(limit: &'static str) -> metrics::Counter {
    metrics::counter!("urr_http_connections_refused_total", "limit" => limit)
}

struct Open<R> {
    responder: Arc<R>,
    limits: Limits,
    shutdown: CancellationToken,
    /// Cancelled when the drain time is over; aborts the remaining connections.
    cut: CancellationToken,
    tasks: TaskTracker,
    places: Arc<Semaphore>,
    addresses: Arc<PerAddress>,
    refusals: Arc<Semaphore>,
    connections: metrics::Gauge,
    refused: metrics::Counter,
    refused_address: metrics::Counter,
}

impl<R: Respond> Open<R> {
    /// Accepts connections until shutdown. Dropping the listener makes the kernel refuse new ones.
    async fn accept(&self, listener: TcpListener) {
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(
                        %error,
                        "connections cannot be accepted: new clients wait, retrying every 100 ms; \
                         is the machine out of file descriptors or memory?"
                    );
                    tokio::select! {
                        () = self.shutdown.cancelled() => return,
                        () = sleep(ACCEPT_PAUSE) => {}
                    }
                }
            }
        }
    }

    fn admit(&self, stream: TcpStream, peer: SocketAddr) {
        let Some(of_address) = self.addresses.take(peer.ip()) else {
            self.refused_address.increment(1);
            return self.refuse(stream);
        };
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            let connection = Connection {
                responder: Arc::clone(&self.responder),
                limits: self.limits,
                // A child token: every connection polls it, and a shared token would be a shared
                // lock.
                shutdown: self.shutdown.child_token(),
                cut: self.cut.child_token(),
                peer,
                place,
                _of_address: of_address,
                _counted: Counted::new(self.connections.clone()),
            };
            self.tasks.spawn(connection.serve(stream));
            return;
        }
        self.refused.increment(1);
        self.refuse(stream);
    }

    fn refuse(&self, stream: TcpStream) {
        if let Ok(turn) = self.refusals.clone().try_acquire_owned() {
            self.tasks.spawn(timeout(REFUSAL_TIME, refuse(stream, self.limits.write_stall_time, turn)));
        }
    }

    async fn drain(&self) {
        self.tasks.close();
        if timeout(self.limits.drain_time, self.tasks.wait()).await.is_err() {
            tracing::warn!(
                connections = self.tasks.len(),
                "requests were cut off: they took too long to finish"
            );
            self.cut.cancel();
            self.tasks.wait().await;
        }
    }
}

/// Whether the error concerns a single connection. Then the next `accept` can follow at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset
    )
}

async fn refuse(stream: TcpStream, stall: Duration, _turn: OwnedSemaphorePermit) {
    let mut stream = Stream::new(stream, stall, ReadActivity::default());
    // The client may already be gone; there is nothing to do then.
    let _gone = stream.write_all(REFUSAL).await;
    let _gone = stream.shutdown().await;
}

struct Connection<R> {
    responder: Arc<R>,
    limits: Limits,
    shutdown: CancellationToken,
    cut: CancellationToken,
    peer: SocketAddr,
    place: OwnedSemaphorePermit,
    _of_address: ConnectionPermit,
    _counted: Counted,
}

impl<R: Respond> Connection<R> {
    async fn serve(self, stream: TcpStream) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "client closed the connection before it was served");
            return;
        }
        let heard = ReadActivity::default();
        let timer = HeadTimer {
            heard: heard.clone(),
            head_time: self.limits.header_read_time,
            keep_alive_time: self.limits.keep_alive_time,
            places: Arc::clone(self.place.semaphore()),
            max_places: self.limits.max_connections,
            is_used: AtomicBool::new(false),
        };
        let (responder, peer) = (self.responder, self.peer);
        let refuser = Arc::clone(&responder);
        let parse_error = ParseErrorResponse::new(move |problem| refuser.refuse(problem));
        let stream = Stream::new(stream, self.limits.write_stall_time, heard.clone()).saying(parse_error);
        let io = TokioIo::new(stream);
        let service = service_fn(move |mut request: Request<Incoming>| {
            heard.head();
            request.extensions_mut().insert(Peer(peer));
            if request.version() == Version::HTTP_11 && !request.headers().contains_key(header::HOST) {
                request.extensions_mut().insert(MissingHost);
            }
            let responder = Arc::clone(&responder);
            async move { Ok::<_, Infallible>(responder.respond(request.map(Body::new)).await) }
        });
        let mut connection = pin!(parser(&self.limits, timer).serve_connection(io, service));
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            () = self.shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = self.cut.cancelled() => Ok(()),
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error = urr_telemetry::chain(&error), peer = %self.peer, "connection closed with an error");
        }
    }
}

fn parser(limits: &Limits, timer: HeadTimer) -> http1::Builder {
    let mut parser = http1::Builder::new();
    parser
        .timer(timer)
        .header_read_timeout(limits.header_read_time)
        .max_header_size(limits.header_bytes)
        .max_buf_size(limits.header_bytes.max(MIN_BUFFER));
    if limits.headers != PARSER_HEADERS {
        parser.max_headers(limits.headers);
    }
    parser
}

/// Counts one open connection in the gauge until dropped.
struct Counted(metrics::Gauge);

impl Counted {
    fn new(gauge: metrics::Gauge) -> Self {
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_static_503_has_the_right_content_length() {
        let text = std::str::from_utf8(REFUSAL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-length: {}", body.len())),
            "the body has {} bytes",
            body.len()
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(body).unwrap()["code"], "http.overloaded");
    }

    #[test]
    fn out_of_descriptors_is_not_an_error_of_one_connection() {
        const EMFILE: i32 = 24;
        assert!(!is_of_one_connection(&io::Error::from_raw_os_error(EMFILE)));
        assert!(is_of_one_connection(&io::ErrorKind::ConnectionAborted.into()));
    }
}
