//! Initialises logging and tracing at start.

use std::{io, panic, sync::OnceLock, time::Duration};

use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::ParseError,
    fmt::{self, MakeWriter},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use crate::{
    LogFormat, Otlp,
    lines::{FLUSH_TIME, Lines},
    trace,
};

/// Configuration of logs and traces.
#[derive(Clone, Debug)]
pub struct Logging {
    /// Format of log lines.
    pub format: LogFormat,
    /// Which events are logged, such as `info` or `info,urr_db=debug`.
    pub filter: String,
    /// The trace collector, if any.
    pub otlp: Option<Otlp>,
}

/// Why logging could not start.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The filter is invalid.
    #[error("the log filter is invalid")]
    Filter(#[from] ParseError),
    /// The writer thread could not be started.
    #[error("the log writer thread could not be started")]
    Thread(#[from] io::Error),
    /// Logging was already initialised.
    #[error("logging is already started in this process")]
    Started(#[from] tracing_subscriber::util::TryInitError),
    /// The collector's address or the exporter is invalid.
    #[error("traces cannot be sent to {endpoint}")]
    Otlp {
        /// The collector's address.
        endpoint: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The log writer of this process, once logging has started.
static LINES: OnceLock<Lines> = OnceLock::new();

/// Waits up to a second until all log lines so far are written. Only for code that is about to end
/// the process: elsewhere a stalled reader of stderr would stall the work.
pub fn flush() {
    if let Some(lines) = LINES.get() {
        lines.flush();
    }
}

/// The longest time that dropping the [`Guard`] takes: the last spans, then the last lines.
pub const LAST_WORDS: Duration = trace::STOP_TIME.saturating_add(FLUSH_TIME);

/// Flushes queued logs and spans when dropped.
#[must_use = "dropping the guard ends logging"]
pub struct Guard {
    tracer: Option<trace::Tracer>,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("traces", &self.tracer.is_some()).finish_non_exhaustive()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(tracer) = self.tracer.take() {
            tracer.stop();
        }
        flush();
    }
}

/// Initialises logging for the whole process, including panics. A panic may end the process, so its
/// line is flushed.
pub fn init(logging: &Logging) -> Result<Guard, InitError> {
    let lines = Lines::start(io::stderr())?;
    let tracer = logging.otlp.as_ref().map(trace::Tracer::start).transpose()?;
    subscriber(logging, lines.clone(), tracer.as_ref())?.try_init()?;
    LINES.get_or_init(|| lines);
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current().name().unwrap_or("?").to_owned();
        let backtrace = std::backtrace::Backtrace::capture();
        let reason = panic.payload_as_str().unwrap_or("(no message)");
        tracing::error!(%place, %thread, %backtrace, "panic: {reason}");
        flush();
    }));
    Ok(Guard { tracer })
}

fn subscriber<W>(
    logging: &Logging,
    writer: W,
    tracer: Option<&trace::Tracer>,
) -> Result<impl Subscriber + Send + Sync, InitError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = EnvFilter::try_new(&logging.filter)?;
    let lines = fmt::layer().with_writer(writer);
    let lines = match logging.format {
        LogFormat::Pretty => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
    };
    Ok(Registry::default().with(lines.with_filter(filter)).with(tracer.map(trace::Tracer::layer)))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, filter: &str, say: impl FnOnce()) -> String {
        let memory = LogBuffer::default();
        let writer = memory.clone();
        let logging = Logging { format, filter: filter.to_owned(), otlp: None };
        let subscriber = subscriber(&logging, move || writer.clone(), None).unwrap();
        tracing::subscriber::with_default(subscriber, say);
        let bytes = memory.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn json_lines_have_event_fields_and_respect_the_filter() {
        let text = logged(LogFormat::Json, "info", || {
            tracing::debug!("quiet");
            tracing::info!(seats = 2, "held\nforged line");
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(r#""seats":2"#) && text.contains(r#""level":"INFO""#), "{text}");
    }

    #[test]
    fn pretty_lines_have_level_message_and_fields() {
        let text = logged(LogFormat::Pretty, "warn", || tracing::warn!(seats = 2, "held"));
        assert!(text.contains("WARN") && text.contains("held") && text.contains("seats=2"), "{text}");
    }

    #[test]
    fn invalid_filter_is_rejected() {
        let logging = Logging { format: LogFormat::Json, filter: "urr=loud".to_owned(), otlp: None };
        assert!(matches!(subscriber(&logging, io::sink, None), Err(InitError::Filter(_))));
    }
}
