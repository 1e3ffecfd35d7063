//! Live statistics as server-sent events.
//!
//! Each sample is published once for all listeners. A slow listener loses its oldest unread
//! samples, never delays others, and can see the gap in the timestamps. A new or reconnecting
//! listener first gets the last ten minutes.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::Serialize;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, broadcast},
    time::timeout,
};
use urr_kernel::Timestamp;

use crate::{Problem, codes};

/// Samples kept for late listeners: ten minutes at one per second, about 200 kB.
const KEPT: usize = 600;

/// Unread samples per listener before the oldest are dropped: half a minute.
const BEHIND: usize = 32;

/// Concurrent listeners. Each costs a connection and, while it reads slowly, [`BEHIND`] shared
/// samples.
const MAX_LISTENERS: usize = 64;

/// Feeds at the same time: with [`KEPT`] samples of 350 bytes each, 13 MB.
const MAX_FEEDS: usize = 64;

/// A comment is sent after this long without a sample, so that proxies do not close the connection
/// as idle.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// `Retry-After` of a refused listener: pages get closed sooner or later.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// First bytes of a stream: browsers reconnect after two seconds.
const GREETING: &[u8] = b"retry: 2000\n\n";

/// The last sample a reconnecting listener received.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Turns off response buffering in nginx and similar proxies.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Feeds of samples by key, and their listeners.
pub struct Live<K> {
    feeds: Mutex<HashMap<K, Feed>>,
    places: Arc<Semaphore>,
}

struct Feed {
    /// The last samples, oldest first.
    kept: VecDeque<Frame>,
    listeners: broadcast::Sender<Frame>,
    /// Samples since the feed was last requested.
    idle: usize,
}

/// One encoded sample. All listeners share the bytes.
#[derive(Clone)]
struct Frame {
    /// Event id: the sample's time in milliseconds, so that ids continue across processes.
    number: i64,
    bytes: Bytes,
}

impl<K> Default for Live<K> {
    fn default() -> Self {
        Self { feeds: Mutex::default(), places: Arc::new(Semaphore::new(MAX_LISTENERS)) }
    }
}

impl<K: Copy + Eq + Hash> Live<K> {
    /// Requests a feed for the next ten minutes, or for as long as it has listeners. Ignored if
    /// there are too many feeds.
    pub fn open(&self, about: K) {
        Self::opened(&mut self.lock(), about, |_| ());
    }

    /// The feeds that need samples.
    pub fn wanted(&self) -> Vec<K> {
        self.lock().keys().copied().collect()
    }

    /// Sends a sample to all listeners and keeps it for late ones. Never blocks. A sample without a
    /// feed is dropped; a feed without requests or listeners for ten minutes is removed.
    pub fn publish(&self, about: K, at: Timestamp, sample: &impl Serialize) {
        let mut feeds = self.lock();
        let Some(feed) = feeds.get_mut(&about) else { return };
        feed.idle += 1;
        if feed.idle > KEPT && feed.listeners.receiver_count() == 0 {
            feeds.remove(&about);
            return;
        }
        let last = feed.kept.back().map_or(i64::MIN, |frame| frame.number);
        let frame = Frame::new((at.as_micros() / 1_000).max(last.saturating_add(1)), sample);
        if feed.kept.len() == KEPT {
            feed.kept.pop_front();
        }
        feed.kept.push_back(frame.clone());
        // Fails without listeners; the sample is kept anyway.
        let _nobody = feed.listeners.send(frame);
    }

    /// Returns the event stream: kept samples after `Last-Event-ID` first, then new ones.
    pub fn listen(&self, about: K, headers: &HeaderMap) -> Result<Response, Problem> {
        let heard = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()?.trim().parse().ok());
        let no_place = || {
            Problem::of(
                codes::TOO_MANY_LISTENERS,
                "As many people watch this as can. Please try again later.",
            )
            .retry_after(TRY_AGAIN)
        };
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| no_place())?;
        // Under one lock, so that no sample is missed or sent twice.
        let begin = |feed: &mut Feed| (feed.after(heard), feed.listeners.subscribe());
        let mut feeds = self.lock();
        Self::make_room(&mut feeds, about);
        let (first, frames) = Self::opened(&mut feeds, about, begin).ok_or_else(no_place)?;
        drop(feeds);
        let listener = Listener { first: Some(first), frames, _place: place };
        let pieces = stream::unfold(listener, async |mut listener| {
            listener.next().await.map(|piece| (Ok::<_, Infallible>(piece), listener))
        });
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (BUFFERING, HeaderValue::from_static("no")),
        ];
        Ok((headers, Body::from_stream(pieces)).into_response())
    }

    /// If there are too many feeds, removes the feed without listeners that has been idle longest.
    fn make_room(feeds: &mut HashMap<K, Feed>, about: K) {
        if feeds.len() < MAX_FEEDS || feeds.contains_key(&about) {
            return;
        }
        let unheard = feeds.iter().filter(|(_, feed)| feed.listeners.receiver_count() == 0);
        if let Some(about) = unheard.max_by_key(|(_, feed)| feed.idle).map(|(about, _)| *about) {
            feeds.remove(&about);
        }
    }

    fn opened<T>(feeds: &mut HashMap<K, Feed>, about: K, then: impl FnOnce(&mut Feed) -> T) -> Option<T> {
        if feeds.len() >= MAX_FEEDS && !feeds.contains_key(&about) {
            return None;
        }
        let feed = feeds.entry(about).or_insert_with(Feed::new);
        feed.idle = 0;
        Some(then(feed))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Feed>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed {
    fn new() -> Self {
        Self { kept: VecDeque::new(), listeners: broadcast::Sender::new(BEHIND), idle: 0 }
    }

    /// The first bytes of a stream: the greeting and all kept samples after `heard`.
    fn after(&self, heard: Option<i64>) -> Bytes {
        let news = self.kept.iter().filter(|frame| heard.is_none_or(|heard| frame.number > heard));
        let mut bytes = BytesMut::from(GREETING);
        for frame in news {
            bytes.put_slice(&frame.bytes);
        }
        bytes.freeze()
    }
}

impl Frame {
    fn new(number: i64, sample: &impl Serialize) -> Self {
        let sample = serde_json::to_string(sample).expect("samples serialize without error");
        Self { number, bytes: format!("id: {number}\ndata: {sample}\n\n").into() }
    }
}

/// One listener. Dropping it frees its permit.
struct Listener {
    first: Option<Bytes>,
    frames: broadcast::Receiver<Frame>,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            match timeout(HEARTBEAT, self.frames.recv()).await {
                Ok(Ok(frame)) => return Some(frame.bytes),
                // The listener lagged: continue with the oldest sample still buffered.
                Ok(Err(broadcast::error::RecvError::Lagged(_))) => {}
                Ok(Err(broadcast::error::RecvError::Closed)) => return None,
                Err(_elapsed) => return Some(Bytes::from_static(b": still here\n\n")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use http_body_util::BodyExt as _;

    use super::*;

    const ROOM: u8 = 1;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_micros(second * 1_000_000)
    }

    fn live(samples: std::ops::Range<i64>) -> Live<u8> {
        let live = Live::default();
        live.open(ROOM);
        samples.for_each(|second| live.publish(ROOM, at(second), &second));
        live
    }

    fn body(live: &Live<u8>, headers: &HeaderMap) -> Body {
        live.listen(ROOM, headers).unwrap().into_body()
    }

    /// The values of the samples in the next chunk.
    async fn heard(body: &mut Body) -> Vec<i64> {
        let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let text = String::from_utf8(piece.to_vec()).unwrap();
        assert!(text.ends_with("\n\n"), "{text}");
        text.lines().filter_map(|line| line.strip_prefix("data: ")?.parse().ok()).collect()
    }

    #[tokio::test]
    async fn late_listeners_get_history_and_reconnecting_ones_the_rest() {
        let live = live(0..10);
        let mut late = body(&live, &HeaderMap::new());
        assert_eq!(heard(&mut late).await, (0..10).collect::<Vec<i64>>());
        live.publish(ROOM, at(10), &10);
        assert_eq!(heard(&mut late).await, [10], "no sample is repeated or lost");
        let back = HeaderMap::from_iter([(LAST_EVENT_ID, HeaderValue::from_static("7000"))]);
        assert_eq!(heard(&mut body(&live, &back)).await, [8, 9, 10]);
        let strange = HeaderMap::from_iter([(LAST_EVENT_ID, HeaderValue::from_static("yesterday"))]);
        assert_eq!(heard(&mut body(&live, &strange)).await.len(), 11);
    }

    #[tokio::test]
    async fn a_slow_listener_loses_the_oldest_samples_and_blocks_nothing() {
        let live = live(0..0);
        let mut slow = body(&live, &HeaderMap::new());
        assert!(heard(&mut slow).await.is_empty());
        (0..1_000).for_each(|second| live.publish(ROOM, at(second), &second));
        let behind = i64::try_from(BEHIND).unwrap();
        assert_eq!(heard(&mut slow).await, [1_000 - behind], "it continues with the oldest buffered sample");
        assert_eq!(heard(&mut slow).await, [1_001 - behind]);
        let kept = heard(&mut body(&live, &HeaderMap::new())).await;
        assert_eq!((kept.len(), kept[0]), (KEPT, 400), "history is bounded");
    }

    #[tokio::test]
    async fn listeners_over_the_limit_get_503_until_one_leaves() {
        let live = live(0..1);
        let mut all: Vec<_> = (0..MAX_LISTENERS).map(|_| body(&live, &HeaderMap::new())).collect();
        let refused = live.listen(ROOM, &HeaderMap::new()).unwrap_err();
        assert_eq!(
            (refused.status, &*refused.code),
            (StatusCode::SERVICE_UNAVAILABLE, "http.too_many_listeners")
        );
        all.pop();
        assert!(live.listen(ROOM, &HeaderMap::new()).is_ok());
    }

    #[tokio::test]
    async fn feeds_without_requests_or_listeners_are_removed() {
        let live = live(0..1);
        live.publish(9, at(0), &0);
        assert_eq!(live.wanted(), [ROOM]);
        let listener = body(&live, &HeaderMap::new());
        let kept = i64::try_from(KEPT).unwrap();
        (1..kept + 100).for_each(|second| live.publish(ROOM, at(second), &second));
        assert_eq!(live.wanted(), [ROOM], "the feed has a listener");
        drop(listener);
        live.publish(ROOM, at(kept + 100), &0);
        assert!(live.wanted().is_empty());
        (0..=u8::MAX).for_each(|about| live.open(about));
        assert_eq!(live.wanted().len(), MAX_FEEDS);
    }

    #[tokio::test]
    async fn a_listener_replaces_an_idle_feed() {
        let live = Live::default();
        (0..=u8::MAX).for_each(|about| live.open(about));
        let mut all = Vec::new();
        for about in 0..MAX_LISTENERS {
            let about = u8::MAX - u8::try_from(about).unwrap();
            all.push(live.listen(about, &HeaderMap::new()).unwrap());
            assert!(live.wanted().contains(&about));
        }
        assert_eq!(live.wanted().len(), MAX_FEEDS);
        (0..=u8::MAX).for_each(|about| live.open(about));
        assert!(!live.wanted().contains(&0), "feeds with listeners are not replaced");
    }

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_comment_is_sent_without_samples() {
        let live = live(0..0);
        let mut listener = body(&live, &HeaderMap::new());
        heard(&mut listener).await;
        let piece = listener.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(piece.starts_with(b":"), "a heartbeat is an SSE comment");
    }

    #[tokio::test]
    async fn event_ids_grow_even_if_the_clock_steps_back() {
        let live = live(5..6);
        live.publish(ROOM, at(3), &3);
        let back = HeaderMap::from_iter([(LAST_EVENT_ID, HeaderValue::from_static("5000"))]);
        assert_eq!(heard(&mut body(&live, &back)).await, [3]);
    }
}
