//! The TCP stream of a connection. It times out clients that stop reading, lingers on close so that
//! the client can read an error response, and replaces hyper's bare error responses.

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

use crate::{parse_errors::ParseErrorResponse, quiet::ReadActivity};

/// How long to keep reading after the write side is closed. Closing with unread bytes resets the
/// connection, and the client would lose a response such as 413.
const LINGER_TIME: Duration = Duration::from_secs(1);

/// Bytes discarded while lingering: twice the default body limit.
const LINGER_BYTES: usize = 2 * 1024 * 1024;

/// Read size while lingering.
const LINGER_CHUNK: usize = 4 * 1024;

pub(crate) struct Stream {
    tcp: TcpStream,
    stall_time: Duration,
    /// Runs while the client reads nothing.
    stall: Option<Pin<Box<Sleep>>>,
    heard: ReadActivity,
    /// Whether part of a response may still be unwritten.
    is_speaking: bool,
    parse_error: Option<ParseErrorResponse>,
    linger: Linger,
}

enum Linger {
    No,
    Until { end: Pin<Box<Sleep>>, bytes_left: usize },
    Over,
}

impl Stream {
    pub(crate) fn new(tcp: TcpStream, stall_time: Duration, heard: ReadActivity) -> Self {
        Self {
            tcp,
            stall_time,
            stall: None,
            heard,
            is_speaking: false,
            parse_error: None,
            linger: Linger::No,
        }
    }

    /// Replaces hyper's own error responses by those of `parse_error`.
    pub(crate) fn saying(mut self, parse_error: ParseErrorResponse) -> Self {
        self.parse_error = Some(parse_error);
        self
    }

    /// Whether a write comes from hyper itself: it waits for a request and the last response is
    /// flushed. Bytes of a response to a slow client are never mistaken for it.
    fn is_parser(&self) -> bool {
        self.parse_error.is_some() && self.heard.awaits_head() && !self.is_speaking
    }

    /// Writes our response instead of hyper's and then reports all of hyper's bytes as written.
    fn poll_say(&mut self, cx: &mut Context<'_>, said: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let length = said.iter().map(|slice| slice.len()).sum();
        while let Some(left) = self
            .parse_error
            .as_mut()
            .map(|parse_error| parse_error.left(said))
            .filter(|left| !left.is_empty())
        {
            let progress = Pin::new(&mut self.tcp).poll_write(cx, left);
            let written = ready!(self.watch(cx, progress))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            if let Some(parse_error) = &mut self.parse_error {
                parse_error.advance(written);
            }
        }
        Poll::Ready(Ok(length))
    }

    /// Passes the result on, but fails the write after too long without progress.
    fn watch<T>(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stall = None;
            return progress;
        }
        let stall_time = self.stall_time;
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(stall_time)));
        ready!(stall.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client stopped reading its response")))
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

    /// hyper flushes once it has written a whole response.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_speaking = false;
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    /// Closes the write side, then reads and discards until the client closes, within limits.
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
