//! Answers of a kilobyte and more go out compressed to clients that take gzip.
//!
//! Only answers that are complete in memory are touched. Streams go as they come, and what another role answers has been
//! compressed there. Answers that set cookies are left alone: their length must not tell anything about a secret in them.

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

/// Below this a packet is a packet, compressed or not.
const MIN_BYTES: u64 = 1_024;

/// The largest answer that is held in memory to be compressed: a seat map of 100,000 seats has about 6 MB.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Up to this size an answer is compressed where it is, in well under a millisecond; above it, on a thread for blocking work.
const INLINE_BYTES: usize = 32 * 1024;

/// Large answers compressed at the same time; the next one goes out as it is, because by then the processors are the bottleneck.
const MAX_AT_ONCE: usize = 4;

/// Answers kept in compressed form. A dozen sales may be open at once.
const MAX_KEPT: usize = 16;

/// What they may take, original and compressed: 16 seat maps of 50,000 seats have 3.3 MB each.
const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;

/// Nine tenths of what the best level saves at a third of its cost.
const LEVEL: u32 = 5;

const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// An answer that came from elsewhere, which has compressed it if it should be.
#[derive(Clone, Copy)]
pub(crate) struct Passed;

/// Compresses answers, and remembers those that are sent again and again.
pub(crate) struct Compressor {
    kept: Mutex<Vec<Kept>>,
    turns: Semaphore,
}

/// The compressed form of one piece of memory. Holding on to the original makes sure that nothing else can be at its address, so
/// finding the address again means finding the same bytes.
struct Kept {
    original: Bytes,
    compressed: Arc<OnceCell<Bytes>>,
}

impl Compressor {
    pub(crate) fn new() -> Self {
        Self { kept: Mutex::default(), turns: Semaphore::new(MAX_AT_ONCE) }
    }

    /// The answer, compressed if that is worth it and the client `takes` it.
    pub(crate) async fn compress(&self, takes: bool, mut response: Response) -> Response {
        if !is_worth_it(&response) {
            return response;
        }
        // Whoever keeps the answer must not give it to a client that takes something else.
        vary(response.headers_mut(), header::ACCEPT_ENCODING);
        if !takes {
            return response;
        }
        // In a box, so that the many small answers are not moved with room for this.
        Box::pin(self.smaller(response)).await
    }

    async fn smaller(&self, response: Response) -> Response {
        let (mut parts, body) = response.into_parts();
        let Ok(original) = body.collect().await.map(http_body_util::Collected::to_bytes) else {
            // It said how long it is and then broke: there is nothing to send that would be right.
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

    /// Answers with an `ETag` are made once and sent often: so are their compressed forms, however many ask at the same time.
    async fn kept(&self, original: &Bytes) -> Option<Bytes> {
        let cell = self.cell(original);
        let compressed = cell.get_or_try_init(async || elsewhere(original.clone()).await.ok_or(())).await;
        compressed.ok().cloned()
    }

    fn cell(&self, original: &Bytes) -> Arc<OnceCell<Bytes>> {
        let mut kept = self.lock();
        let is_same = |kept: &Kept| {
            std::ptr::eq(kept.original.as_ptr(), original.as_ptr()) && kept.original.len() == original.len()
        };
        // The last used is the last, so the first is the one to go.
        if let Some(place) = kept.iter().position(is_same) {
            let found = kept.remove(place);
            let cell = Arc::clone(&found.compressed);
            kept.push(found);
            return cell;
        }
        let cell = Arc::<OnceCell<Bytes>>::default();
        kept.push(Kept { original: original.clone(), compressed: Arc::clone(&cell) });
        while kept.len() > MAX_KEPT || kept.iter().map(Kept::bytes).sum::<usize>() > MAX_KEPT_BYTES {
            kept.remove(0);
        }
        cell
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Text becomes smaller, so twice the original is more than it can ever take.
    fn bytes(&self) -> usize {
        2 * self.original.len()
    }
}

/// On a thread where nobody else waits meanwhile.
#[expect(clippy::disallowed_methods, reason = "it is waited for right here, and takes milliseconds")]
async fn elsewhere(original: Bytes) -> Option<Bytes> {
    tokio::task::spawn_blocking(move || gzip(&original)).await.ok()
}

fn gzip(original: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(original.len() / 4), Compression::new(LEVEL));
    encoder.write_all(original).expect("writing to memory does not fail");
    encoder.finish().expect("writing to memory does not fail").into()
}

fn broken() -> Body {
    Body::from_stream(futures_util::stream::once(async {
        Err::<Bytes, _>(std::io::Error::other("the answer broke off"))
    }))
}

/// The bytes are others now: their length, and the tag that stood for exactly the old ones.
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

/// Adds a name to `Vary`, once.
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

/// Kinds that become smaller. Pictures and fonts have been compressed by those who made them; a stream of events must not wait.
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

/// Whether a client takes gzip: it says so, or says that it takes anything.
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

/// Clients send back the weakened tag they were given. For `If-None-Match` weak and strong are the same, so handlers that compare
/// texts are shown the text they know.
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
