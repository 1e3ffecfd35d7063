//! Separate timeouts for idle connections and for slow request heads.
//!
//! hyper has one timeout for both: from waiting for a request until its head is complete. It gets
//! that timeout from our timer, which tells the two apart by whether the stream has read any bytes.

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

/// Read activity of a connection, shared by its stream, timer and service.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadActivity(Arc<ReadState>);

#[derive(Debug, Default)]
struct ReadState {
    reads: AtomicU64,
    awaits_head: AtomicBool,
}

impl ReadActivity {
    pub(crate) fn add(&self) {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }

    /// Marks a request head as complete: a handler now runs.
    pub(crate) fn head(&self) {
        self.0.awaits_head.store(false, Ordering::Relaxed);
    }

    /// Whether hyper waits for a request head. Anything written meanwhile comes from hyper itself.
    pub(crate) fn awaits_head(&self) -> bool {
        self.0.awaits_head.load(Ordering::Relaxed)
    }
}

/// hyper's timer for one connection.
pub(crate) struct HeadTimer {
    pub(crate) heard: ReadActivity,
    /// Time for a request head once it has begun. Equals hyper's own setting.
    pub(crate) head_time: Duration,
    pub(crate) keep_alive_time: Duration,
    /// Connection permits. While more than half are taken, idle connections are closed early.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) max_places: usize,
    /// Whether the connection has already waited for a request once.
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

    /// Called when hyper starts to wait for a request head.
    fn sleep_until(&self, _: Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(self.head_time)
    }
}

pin_project_lite::pin_project! {
    /// Ends when a request head did not begin in time or did not complete in time. hyper polls it
    /// after every read that does not complete a head, so incoming bytes need no extra wakeup.
    struct Patience {
        #[pin]
        sleep: time::Sleep,
        heard: ReadActivity,
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
            // Never extends the deadline: a single byte must not buy more time.
            if head.deadline() < this.sleep.deadline() {
                this.sleep.set(head);
            }
        }
        this.sleep.poll(cx)
    }
}

impl Sleep for Patience {}
