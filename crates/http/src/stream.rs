//! A TCP stream that neither waits for ever for a reader nor hangs up on somebody who is still speaking, and says in our words what
//! the parser of requests has to say.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

use crate::{quiet::Heard, unread::Unread};

/// How long a closed connection is listened to. Closing with bytes unread resets the connection, and the client would lose
/// the answer that says why, such as 413.
const LINGER_TIME: Duration = Duration::from_secs(1);

/// How many bytes are thrown away meanwhile: twice the largest body accepted by default.
const LINGER_BYTES: usize = 2 * 1024 * 1024;

/// Read at once while lingering.
const LINGER_CHUNK: usize = 4 * 1024;

pub(crate) struct Stream {
    tcp: TcpStream,
    stall_time: Duration,
    /// Runs while the other side takes nothing.
    stall: Option<Pin<Box<Sleep>>>,
    heard: Heard,
    /// Whether there may be bytes of an answer that did not get out yet.
    is_speaking: bool,
    unread: Option<Unread>,
    linger: Linger,
}

enum Linger {
    No,
    Until { end: Pin<Box<Sleep>>, bytes_left: usize },
    Over,
}

impl Stream {
    pub(crate) fn new(tcp: TcpStream, stall_time: Duration, heard: Heard) -> Self {
        Self { tcp, stall_time, stall: None, heard, is_speaking: false, unread: None, linger: Linger::No }
    }

    /// Lets `unread` put what the parser says about a request that it cannot read.
    pub(crate) fn saying(mut self, unread: Unread) -> Self {
        self.unread = Some(unread);
        self
    }

    /// Whether these are words of the parser: it waits for a request, and the last answer is out. Bytes of an answer that the other
    /// side is slow to take are never mistaken for them.
    fn is_parser(&self) -> bool {
        self.unread.is_some() && self.heard.awaits_head() && !self.is_speaking
    }

    /// Says ours instead of what the parser says, all of which counts as said once ours is.
    fn poll_say(&mut self, cx: &mut Context<'_>, said: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let length = said.iter().map(|slice| slice.len()).sum();
        while let Some(left) =
            self.unread.as_mut().map(|unread| unread.left(said)).filter(|left| !left.is_empty())
        {
            let progress = Pin::new(&mut self.tcp).poll_write(cx, left);
            let written = ready!(self.watch(cx, progress))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            if let Some(unread) = &mut self.unread {
                unread.advance(written);
            }
        }
        Poll::Ready(Ok(length))
    }

    /// Passes progress on; without any for too long the write fails.
    fn watch<T>(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stall = None;
            return progress;
        }
        let stall_time = self.stall_time;
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(stall_time)));
        ready!(stall.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer")))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.tcp).poll_read(cx, buffer);
        if read.is_ready() {
            self.heard.add();
        }
        read
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_parser() {
            return self.poll_say(cx, &[IoSlice::new(bytes)]);
        }
        self.is_speaking = true;
        let progress = Pin::new(&mut self.tcp).poll_write(cx, bytes);
        self.watch(cx, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_parser() {
            return self.poll_say(cx, slices);
        }
        self.is_speaking = true;
        let progress = Pin::new(&mut self.tcp).poll_write_vectored(cx, slices);
        self.watch(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    /// Asked once hyper has handed over everything it had.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_speaking = false;
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    /// Says that nothing more comes, then reads on until the other side closes, for a bounded while.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if matches!(this.linger, Linger::No) {
            ready!(Pin::new(&mut this.tcp).poll_shutdown(cx))?;
            this.linger = Linger::Until { end: Box::pin(sleep(LINGER_TIME)), bytes_left: LINGER_BYTES };
        }
        let Linger::Until { end, bytes_left } = &mut this.linger else { return Poll::Ready(Ok(())) };
        let mut chunk = [0; LINGER_CHUNK];
        while *bytes_left > 0 && end.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut chunk);
            match ready!(Pin::new(&mut this.tcp).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    *bytes_left = bytes_left.saturating_sub(buffer.filled().len());
                }
                Ok(()) | Err(_) => break,
            }
        }
        this.linger = Linger::Over;
        Poll::Ready(Ok(()))
    }
}
