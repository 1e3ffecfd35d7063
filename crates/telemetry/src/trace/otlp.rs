//! Sends spans to the collector as protobuf over HTTP, batched on a thread of the SDK. When the
//! collector is slow or down the queue fills and spans are dropped; requests never wait for it.

use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry::{propagation::TextMapPropagator as _, trace::TracerProvider as _};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider},
};
use rustls::{ClientConfig, RootCertStore};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};
use tracing::{Span, Subscriber, level_filters::LevelFilter};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use super::STOP_TIME;
use crate::{InitError, Otlp};

/// Maximum queued spans: at about 500 bytes each, 2 MB.
const MAX_WAITING: usize = 4_096;

/// Spans per request to the collector.
const BATCH: usize = 512;

/// How long a span waits for its batch to fill.
const DELAY: Duration = Duration::from_secs(2);

/// Time limit of one request to the collector, from connect to the last byte of the response.
const SEND_TIME: Duration = Duration::from_secs(5);

/// Maximum size of the collector's response, which normally is a few bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// Sends spans until stopped.
pub(crate) struct Tracer(SdkTracerProvider);

impl Tracer {
    pub(crate) fn start(otlp: &Otlp) -> Result<Self, InitError> {
        let wrong = |source| InitError::Otlp { endpoint: otlp.endpoint.clone(), source };
        let endpoint = format!("{}/v1/traces", otlp.endpoint.trim_end_matches('/'));
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Sender::new().map_err(wrong)?)
            .with_endpoint(endpoint)
            .with_timeout(SEND_TIME)
            .build()
            .map_err(|error| wrong(error.into()))?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(MAX_WAITING)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(DELAY)
            .build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batches).build())
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(otlp.sample))))
            .with_resource(Resource::builder_empty().with_service_name(otlp.service.clone()).build())
            .build();
        Ok(Self(provider))
    }

    /// Only our own spans: a span of the HTTP client itself would create new spans forever.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'s> LookupSpan<'s>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("urr"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(
                filter_fn(|meta| meta.is_span() && meta.target().starts_with("urr"))
                    .with_max_level_hint(LevelFilter::DEBUG),
            )
    }

    /// Sends the queued spans, for at most two seconds.
    pub(crate) fn stop(self) {
        if let Err(error) = self.0.shutdown_with_timeout(STOP_TIME) {
            tracing::warn!(%error, "the last traces were not sent: some spans of the shutdown are missing");
        }
    }
}

/// The current trace as the value of a `traceparent` header, if this request is traced.
pub fn traceparent() -> Option<String> {
    let span = Span::current();
    if span.is_disabled() {
        return None;
    }
    let mut headers = HashMap::new();
    TraceContextPropagator::new().inject_context(&span.context(), &mut headers);
    headers.remove("traceparent")
}

/// Makes `span` a child of the trace in the caller's `traceparent` header. Ignores a malformed
/// header.
pub fn follow(span: &Span, traceparent: &str) {
    if span.is_disabled() {
        return;
    }
    let headers = HashMap::from([("traceparent".to_owned(), traceparent.to_owned())]);
    // Fails only for a span that is not traced.
    let _untraced = span.set_parent(TraceContextPropagator::new().extract(&headers));
}

/// The HTTP client of the exporter. The SDK calls it on its own thread, outside any runtime, so it
/// has its own.
struct Sender {
    runtime: Mutex<Runtime>,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// Whether the last batch failed, so that only changes are logged.
    failing: AtomicBool,
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl Sender {
    fn new() -> Result<Self, HttpError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Self {
            runtime: Mutex::new(Builder::new_current_thread().enable_all().build()?),
            client: Client::builder(TokioExecutor::new()).build(connector),
            failing: AtomicBool::new(false),
        })
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = self.client.request(request.map(Full::new)).await?.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
        Ok(Response::from_parts(parts, body))
    }
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let result = runtime.block_on(async {
            timeout(SEND_TIME, self.exchange(request)).await.unwrap_or_else(|late| Err(late.into()))
        });
        let failed = !result.as_ref().is_ok_and(|answer| answer.status().is_success());
        metrics::counter!("urr_trace_batches_total", "sent" => if failed { "no" } else { "yes" })
            .increment(1);
        if self.failing.swap(failed, Ordering::Relaxed) != failed {
            match &result {
                Err(error) => {
                    tracing::warn!(
                        error = crate::chain(&**error),
                        "collector unreachable: traces are lost until it answers"
                    );
                }
                Ok(answer) if failed => {
                    tracing::warn!(status = %answer.status(), "collector rejects traces: they are lost; check its configuration");
                }
                Ok(_) => tracing::info!("traces reach the collector again"),
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader, Read as _, Write as _},
        net::TcpListener,
        sync::mpsc,
    };

    use tracing_subscriber::{Registry, layer::SubscriberExt as _};

    use super::*;

    /// Deadline for a batch to be sent.
    const DEADLINE: Duration = Duration::from_secs(30);

    /// A collector that reports each request line and body it receives.
    #[expect(clippy::disallowed_methods, reason = "a test collector needs no shutdown")]
    fn collector() -> (String, mpsc::Receiver<(String, Vec<u8>)>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (tell, told) = mpsc::channel();
        std::thread::Builder::new()
            .spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut first, mut length) = (String::new(), 0);
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    if line == "\r\n" {
                        break;
                    }
                    if first.is_empty() {
                        first = line;
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                tell.send((first, body)).unwrap();
            })
            .unwrap();
        (endpoint, told)
    }

    fn tracer(endpoint: String) -> Tracer {
        Tracer::start(&Otlp { endpoint, service: "urr-test".to_owned(), sample: 1.0 }).unwrap()
    }

    fn contains(body: &[u8], text: &str) -> bool {
        body.windows(text.len()).any(|window| window == text.as_bytes())
    }

    #[test]
    fn span_is_exported_in_the_trace_of_its_caller() {
        let (endpoint, told) = collector();
        let tracer = tracer(endpoint);
        let caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        tracing::subscriber::with_default(Registry::default().with(tracer.layer()), || {
            let span = tracing::debug_span!(target: "urr_test", "hold seats", seats = 2);
            follow(&span, caller);
            let _entered = span.enter();
            let passed_on = traceparent().unwrap();
            assert!(passed_on.starts_with("00-0af7651916cd43dd8448eb211c80319c-"), "{passed_on}");
            assert_ne!(passed_on, caller, "the callee's parent must be this span");
            let _foreign = tracing::debug_span!(target: "hyper::client", "not ours").entered();
        });
        tracer.stop();
        let (line, body) = told.recv_timeout(DEADLINE).unwrap();
        assert!(line.starts_with("POST /v1/traces "), "{line}");
        assert!(contains(&body, "hold seats") && contains(&body, "urr-test"));
        assert!(!contains(&body, "not ours"));
    }

    #[test]
    fn unreachable_collector_only_loses_spans() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let tracer = tracer(endpoint);
        tracing::subscriber::with_default(Registry::default().with(tracer.layer()), || {
            for _ in 0..3 * MAX_WAITING {
                let _span = tracing::debug_span!(target: "urr_test", "lost").entered();
            }
        });
        tracer.stop();
    }

    #[test]
    fn malformed_traceparent_is_ignored() {
        let (endpoint, _told) = collector();
        let tracer = tracer(endpoint);
        tracing::subscriber::with_default(Registry::default().with(tracer.layer()), || {
            let span = tracing::debug_span!(target: "urr_test", "span");
            follow(&span, "00-zz-\u{1F4A5}-01");
            let _entered = span.enter();
            assert!(traceparent().is_some());
        });
        tracer.stop();
    }
}
