//! How long a connection may be quiet, and how long it may take to say what it wants.
//!
//! hyper has one limit for both: from the moment it waits for a request until the request's head is complete. It asks a timer of ours
//! for it, and the timer tells the two apart by what the stream has heard meanwhile.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hyper::rt::{Sleep, Timer};
use tokio::{sync::Semaphore, time};

/// What a connection has heard; its stream, its timer and its service share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard(Arc<Told>);

#[derive(Debug, Default)]
struct Told {
    reads: AtomicU64,
    awaits_head: AtomicBool,
}

impl Heard {
    pub(crate) fn add(&self) {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }

    /// A whole head was heard, and somebody answers it.
    pub(crate) fn head(&self) {
        self.0.awaits_head.store(false, Ordering::Relaxed);
    }

    /// Whether nobody has been asked since hyper began to wait for a head. What is said meanwhile, hyper says by itself.
    pub(crate) fn awaits_head(&self) -> bool {
        self.0.awaits_head.load(Ordering::Relaxed)
    }
}

/// The timer of one connection.
pub(crate) struct HeadTimer {
    pub(crate) heard: Heard,
    /// How long a head may take once it has begun. hyper is told the same.
    pub(crate) head_time: Duration,
    pub(crate) keep_alive_time: Duration,
    /// Places for connections: while few are free, nobody keeps one for long.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) max_places: usize,
    /// Whether the connection has asked for a request before.
    pub(crate) is_used: AtomicBool,
}

impl HeadTimer {
    fn quiet_time(&self) -> Duration {
        let is_crowded = self.places.available_permits() * 2 < self.max_places;
        if !self.is_used.swap(true, Ordering::Relaxed) || is_crowded {
            self.head_time
        } else {
            self.keep_alive_time.max(self.head_time)
        }
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, _: Duration) -> Pin<Box<dyn Sleep>> {
        self.heard.0.awaits_head.store(true, Ordering::Relaxed);
        Box::pin(Patience {
            sleep: time::sleep(self.quiet_time()),
            heard: self.heard.clone(),
            before: self.heard.count(),
            head_time: self.head_time,
            has_begun: false,
        })
    }

    /// Asked when hyper begins to wait for a head, with the time that a head may take from now.
    fn sleep_until(&self, _: Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(self.head_time)
    }
}

pin_project_lite::pin_project! {
    /// Waits for a head to begin, then for its end. hyper polls it after every read that did not complete one, so a byte that arrives
    /// needs to wake nobody.
    struct Patience {
        #[pin]
        sleep: time::Sleep,
        heard: Heard,
        before: u64,
        head_time: Duration,
        has_begun: bool,
    }
}

impl Future for Patience {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        if !*this.has_begun && this.heard.count() != *this.before {
            *this.has_begun = true;
            let head = time::sleep(*this.head_time);
            // Never later than before: a first byte does not add to the time of somebody who has sent nothing yet.
            if head.deadline() < this.sleep.deadline() {
                this.sleep.set(head);
            }
        }
        this.sleep.poll(cx)
    }
}

impl Sleep for Patience {}
