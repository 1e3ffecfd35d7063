//! Writes log lines to stderr on a thread of its own, so that a stalled reader does not stall
//! requests. When the queue is full, lines are dropped and counted. Only code that is about to end
//! the process waits for them.

use std::{
    io::{self, Write},
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread,
    time::Duration,
};

use tracing_subscriber::fmt::MakeWriter;

/// Maximum queued lines: at 300 bytes each about 2.4 MB.
const MAX_WAITING: usize = 8_192;

/// How long the end of the process waits for the last lines.
pub(crate) const FLUSH_TIME: Duration = Duration::from_secs(1);

/// Creates writers that put lines into the queue.
#[derive(Clone)]
pub(crate) struct Lines {
    queue: SyncSender<Message>,
    dropped: metrics::Counter,
}

enum Message {
    Line(Vec<u8>),
    Flush(SyncSender<()>),
}

impl Lines {
    /// Starts the thread that writes to `sink`.
    #[expect(clippy::disallowed_methods, reason = "lines are also logged outside a runtime")]
    pub(crate) fn start(sink: impl Write + Send + 'static) -> io::Result<Self> {
        let (queue, waiting) = sync_channel(MAX_WAITING);
        thread::Builder::new().name("urr-log".to_owned()).spawn(move || write_all(&waiting, sink))?;
        Ok(Self { queue, dropped: metrics::counter!("urr_log_lines_dropped_total") })
    }

    /// Waits, for at most a second, until all lines so far are written.
    pub(crate) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.queue.try_send(Message::Flush(done)).is_ok() {
            let _timed_out = wait.recv_timeout(FLUSH_TIME);
        }
    }
}

/// Runs until every sender is dropped. Lines queued during one write are written with the next.
fn write_all(waiting: &Receiver<Message>, mut sink: impl Write) {
    let mut batch = Vec::new();
    while let Ok(first) = waiting.recv() {
        let mut flushes = Vec::new();
        for message in std::iter::once(first).chain(waiting.try_iter().take(MAX_WAITING)) {
            match message {
                Message::Line(line) => batch.extend_from_slice(&line),
                Message::Flush(done) => flushes.push(done),
            }
        }
        // A failure to write the log cannot be logged.
        let _lost = sink.write_all(&batch).and_then(|()| sink.flush());
        batch.clear();
        for done in flushes {
            let _gone = done.send(());
        }
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self)
    }
}

/// Queues one formatted event.
pub(crate) struct Line<'a>(&'a Lines);

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(TrySendError::Full(_)) = self.0.queue.try_send(Message::Line(line.to_vec())) {
            self.0.dropped.increment(1);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, mpsc};

    use urr_kernel::Clock;

    use super::*;

    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A sink that accepts nothing until signalled.
    struct BlockedSink(mpsc::Receiver<()>);

    impl Write for BlockedSink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _closed = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_keep_their_order_and_a_flush_waits_for_them() {
        let memory = LogBuffer::default();
        let lines = Lines::start(memory.clone()).unwrap();
        let mut expected = String::new();
        for n in 0..1_000 {
            let line = format!("{n}\n");
            lines.make_writer().write_all(line.as_bytes()).unwrap();
            expected.push_str(&line);
        }
        lines.flush();
        assert_eq!(String::from_utf8(memory.0.lock().unwrap().clone()).unwrap(), expected);
    }

    #[test]
    fn stuck_reader_loses_lines_and_never_blocks_the_writer() {
        let (release, gate) = mpsc::channel();
        let lines = Lines::start(BlockedSink(gate)).unwrap();
        // Twice the capacity: the test passes if this loop returns at all.
        for _ in 0..2 * MAX_WAITING {
            lines.make_writer().write_all(b"line\n").unwrap();
        }
        drop(release);
    }

    #[test]
    fn errors_do_not_wait_for_a_stuck_reader_either() {
        let (release, gate) = mpsc::channel();
        let lines = Lines::start(BlockedSink(gate)).unwrap();
        let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).finish();
        let clock = Clock::system();
        tracing::subscriber::with_default(subscriber, || {
            for n in 0..100 {
                tracing::error!(n, "the store is down");
            }
        });
        lines.flush();
        // One wait for the flush, not one per line.
        assert!(clock.ticks() < 10 * FLUSH_TIME, "took {:?}", clock.ticks());
        drop(release);
    }
}
