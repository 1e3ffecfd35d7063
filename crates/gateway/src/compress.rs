//! Compresses responses of 1 kB and more for clients that accept gzip.
//!
//! Only responses that are complete in memory are compressed. Streams pass unchanged, and responses
//! of other roles are compressed there. Responses that set cookies are not compressed: their length
//! could leak a secret.

use std::{
    io::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    body::{Body, HttpBody as _},
    response::Response,
};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body_util::BodyExt as _;
use tokio::sync::{OnceCell, Semaphore};

/// Smaller responses fit into one packet anyway.
const MIN_BYTES: u64 = 1_024;

/// Largest response buffered for compression: a seat map of 100,000 seats is about 6 MB.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Up to this size a response is compressed inline, in well under a millisecond; larger ones use a
/// blocking thread.
const INLINE_BYTES: usize = 32 * 1024;

/// Large responses compressed concurrently. Further ones are sent uncompressed, because then the
/// CPU is the bottleneck.
const MAX_AT_ONCE: usize = 4;

/// Cached compressed responses. About a dozen sales may be open at once.
const MAX_KEPT: usize = 16;

/// Memory of the cache, originals included: 16 seat maps of 50,000 seats take 3.3 MB each.
const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;

/// Saves 90% of what the best level saves, at a third of its cost.
const LEVEL: u32 = 5;

const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// Marks a response from another process, which has already decided on compression.
#[derive(Clone, Copy)]
pub(crate) struct Passed;

/// Compresses responses, and caches those that are sent repeatedly.
pub(crate) struct Compressor {
    kept: Mutex<Vec<CompressedBuffer>>,
    turns: Semaphore,
}

/// The compressed form of one buffer. Holding the original keeps its address from being reused, so
/// an equal address means equal bytes.
struct CompressedBuffer {
    original: Bytes,
    compressed: Arc<OnceCell<Bytes>>,
}

impl Compressor {
    pub(crate) fn new() -> Self {
        Self { kept: Mutex::default(), turns: Semaphore::new(MAX_AT_ONCE) }
    }

    /// Compresses the response if the client accepts gzip (`takes`) and it is worth it.
    pub(crate) async fn compress(&self, takes: bool, mut response: Response) -> Response {
        if !is_worth_it(&response) {
            return response;
        }
        // Caches must not serve a compressed response to a client that does not accept it.
        vary(response.headers_mut(), header::ACCEPT_ENCODING);
        if !takes {
            return response;
        }
        // Boxed to keep the future of small responses small.
        Box::pin(self.smaller(response)).await
    }

    async fn smaller(&self, response: Response) -> Response {
        let (mut parts, body) = response.into_parts();
        let Ok(original) = body.collect().await.map(http_body_util::Collected::to_bytes) else {
            // The body failed after its length was announced: abort the response.
            return Response::from_parts(parts, broken());
        };
        let repeats = parts.headers.contains_key(header::ETAG);
        let compressed = if repeats { self.kept(&original).await } else { self.fresh(&original).await };
        match compressed {
            Some(compressed) => {
                mark(&mut parts.headers, compressed.len());
                Response::from_parts(parts, Body::from(compressed))
            }
            None => Response::from_parts(parts, Body::from(original)),
        }
    }

    async fn fresh(&self, original: &Bytes) -> Option<Bytes> {
        if original.len() <= INLINE_BYTES {
            return Some(gzip(original));
        }
        let _turn = self.turns.try_acquire().ok()?;
        elsewhere(original.clone()).await
    }

    /// Responses with an `ETag` are sent often, so their compressed form is cached and made only
    /// once, even under concurrent requests.
    async fn kept(&self, original: &Bytes) -> Option<Bytes> {
        let cell = self.cell(original);
        let compressed = cell.get_or_try_init(async || elsewhere(original.clone()).await.ok_or(())).await;
        compressed.ok().cloned()
    }

    fn cell(&self, original: &Bytes) -> Arc<OnceCell<Bytes>> {
        let mut kept = self.lock();
        let is_same = |kept: &CompressedBuffer| {
            std::ptr::eq(kept.original.as_ptr(), original.as_ptr()) && kept.original.len() == original.len()
        };
        // Ordered by last use: evict the first.
        if let Some(place) = kept.iter().position(is_same) {
            let found = kept.remove(place);
            let cell = Arc::clone(&found.compressed);
            kept.push(found);
            return cell;
        }
        let cell = Arc::<OnceCell<Bytes>>::default();
        kept.push(CompressedBuffer { original: original.clone(), compressed: Arc::clone(&cell) });
        while kept.len() > MAX_KEPT
            || kept.iter().map(CompressedBuffer::bytes).sum::<usize>() > MAX_KEPT_BYTES
        {
            kept.remove(0);
        }
        cell
    }

    fn lock(&self) -> MutexGuard<'_, Vec<CompressedBuffer>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CompressedBuffer {
    /// Upper bound of the memory: compressed text is smaller than the original.
    fn bytes(&self) -> usize {
        2 * self.original.len()
    }
}

/// Compresses on a blocking thread.
#[expect(clippy::disallowed_methods, reason = "awaited immediately and takes milliseconds")]
async fn elsewhere(original: Bytes) -> Option<Bytes> {
    tokio::task::spawn_blocking(move || gzip(&original)).await.ok()
}

fn gzip(original: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(original.len() / 4), Compression::new(LEVEL));
    encoder.write_all(original).expect("writing to a Vec does not fail");
    encoder.finish().expect("writing to a Vec does not fail").into()
}

fn broken() -> Body {
    Body::from_stream(futures_util::stream::once(async {
        Err::<Bytes, _>(std::io::Error::other("the answer broke off"))
    }))
}

/// Updates the length, and weakens the `ETag`: the bytes have changed.
fn mark(headers: &mut HeaderMap, length: usize) {
    headers.insert(header::CONTENT_ENCODING, GZIP);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    headers.remove(header::ACCEPT_RANGES);
    if let Some(tag) = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok())
        && !tag.starts_with("W/")
        && let Ok(weak) = HeaderValue::from_str(&format!("W/{tag}"))
    {
        headers.insert(header::ETAG, weak);
    }
}

/// Adds a name to `Vary`, if it is missing.
pub(crate) fn vary(headers: &mut HeaderMap, name: HeaderName) {
    let is_there = headers.get_all(header::VARY).iter().filter_map(|line| line.to_str().ok()).any(|line| {
        line.split(',').any(|known| known.trim() == "*" || known.trim().eq_ignore_ascii_case(name.as_str()))
    });
    if !is_there {
        headers.append(header::VARY, HeaderValue::from(name));
    }
}

fn is_worth_it(response: &Response) -> bool {
    let headers = response.headers();
    let size = response.body().size_hint().exact();
    size.is_some_and(|size| (MIN_BYTES..=MAX_BYTES).contains(&size))
        && response.status() != StatusCode::PARTIAL_CONTENT
        && response.extensions().get::<Passed>().is_none()
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !headers.contains_key(header::SET_COOKIE)
        && headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(is_text)
        && !headers
            .get(header::CACHE_CONTROL)
            .and_then(|rules| rules.to_str().ok())
            .is_some_and(|rules| rules.contains("no-transform"))
}

/// Compressible types. Images and fonts are already compressed; event streams must not be buffered.
fn is_text(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.split_once('/') {
        Some(("text", kind)) => kind != "event-stream",
        Some(("application", kind)) => {
            matches!(kind, "json" | "javascript" | "xml" | "wasm")
                || kind.ends_with("+json")
                || kind.ends_with("+xml")
        }
        Some(("image", kind)) => kind == "svg+xml",
        _ => false,
    }
}

/// Whether the client accepts gzip, by name or with `*`.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let mut any = false;
    for line in headers.get_all(header::ACCEPT_ENCODING) {
        for entry in line.to_str().unwrap_or_default().split(',') {
            let mut parts = entry.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let refused =
                parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.trim().parse() == Ok(0.0_f32)));
            if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") {
                return !refused;
            }
            any |= name == "*" && !refused;
        }
    }
    any
}

/// Removes the weak prefix from tags in `If-None-Match`. The comparison is weak by definition, and
/// handlers compare with their own strong tag.
pub(crate) fn strengthen(headers: &mut HeaderMap) {
    let Some(tags) = headers.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok()) else { return };
    if !tags.contains("W/") {
        return;
    }
    let strong: Vec<_> = tags.split(',').map(|tag| tag.trim().trim_start_matches("W/")).collect();
    if let Ok(strong) = HeaderValue::from_str(&strong.join(", ")) {
        headers.insert(header::IF_NONE_MATCH, strong);
    }
}

#[cfg(test)]
mod tests;
