//! An OTLP collector that stores the batches it receives.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Accepts any batch. It stops when dropped.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    batches: Arc<Mutex<Vec<Vec<u8>>>>,
    _serving: JoinSet<()>,
}

impl Collector {
    /// Listens on a free port.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, batches) = (listener.local_addr()?, Arc::default());
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, Arc::clone(&batches)));
        Ok(Self { address, batches, _serving: serving })
    }

    /// The URL for spans.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Whether one batch contains all of `parts`: names as text, trace ids as bytes.
    pub fn has(&self, parts: &[&[u8]]) -> bool {
        let batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        batches
            .iter()
            .any(|batch| parts.iter().all(|part| batch.windows(part.len()).any(|window| window == *part)))
    }
}

async fn accept(listener: TcpListener, batches: Arc<Mutex<Vec<Vec<u8>>>>) {
    let mut open = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        open.spawn(serve(stream, Arc::clone(&batches)));
    }
}

/// Reads requests until the sender closes the connection.
async fn serve(stream: TcpStream, batches: Arc<Mutex<Vec<Vec<u8>>>>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut length, mut line) = (0, String::new());
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut batch = vec![0; length];
        stream.read_exact(&mut batch).await?;
        batches.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
    }
}
