//! The list of ended sessions against a source that pages, fails and recovers.

use std::sync::Mutex;

use tokio::task::JoinSet;
use urr_testkit::{fixed_clock, until, within};

use super::*;

const PATIENCE_OF_TEST: Duration = Duration::from_mins(1);

/// Returns one session per page, in the order they ended.
#[derive(Default)]
struct Source {
    ended: Mutex<Vec<(Timestamp, Revocation)>>,
    down: AtomicBool,
    asked: Mutex<Vec<Timestamp>>,
    /// How long each page takes, and from which page on there is no reply.
    page_takes: Duration,
    stuck_after: Option<usize>,
    clock: Mutex<Option<Clock>>,
}

use std::sync::atomic::AtomicBool;

#[async_trait]
impl RevocationSource for Source {
    async fn since(&self, since: Timestamp, after: Option<Uuid>) -> Result<RevocationPage, String> {
        if self.down.load(Ordering::Relaxed) {
            return Err("down".to_owned());
        }
        let pages = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(since);
            asked.len()
        };
        sleep(self.page_takes).await;
        if self.stuck_after.is_some_and(|most| pages > most) {
            std::future::pending::<()>().await;
        }
        let as_of = self.clock.lock().unwrap().as_ref().unwrap().now();
        let ended = self.ended.lock().unwrap();
        let mut rest = ended
            .iter()
            .filter(|(at, _)| *at >= since)
            .map(|(_, ended)| *ended)
            .filter(|ended| after.is_none_or(|after| ended.session > after));
        let page: Vec<_> = rest.by_ref().take(1).collect();
        let next = rest.next().and(page.last().map(|last| last.session));
        Ok(RevocationPage { ended: page, as_of, next })
    }
}

struct World {
    clock: Clock,
    source: Arc<Source>,
    revoked: Arc<Revoked>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

const HOUR: Duration = Duration::from_hours(1);

impl World {
    fn new() -> Self {
        let clock = fixed_clock();
        let source = Arc::new(Source { clock: Mutex::new(Some(clock.clone())), ..Source::default() });
        let revoked = Arc::new(Revoked::new(clock.clone(), HOUR));
        Self { clock, source, revoked, stop: CancellationToken::new(), tasks: JoinSet::new() }
    }

    fn watch(&mut self) {
        self.tasks.spawn(self.revoked.clone().watch(self.source.clone(), self.stop.clone()));
    }

    fn end(&self, session: u128) {
        let now = self.clock.now();
        let ended = Revocation { session: Uuid::from_u128(session), until: now.after(HOUR) };
        self.source.ended.lock().unwrap().push((now, ended));
    }

    async fn knows(&self, session: u128) {
        let session = Uuid::from_u128(session);
        until(PATIENCE_OF_TEST, async || self.revoked.contains(session)).await;
    }
}

#[tokio::test]
async fn sessions_that_ended_before_and_after_the_start_are_loaded() {
    within(PATIENCE_OF_TEST, async {
        let mut world = World::new();
        world.end(1);
        world.clock.advance(Duration::from_mins(59));
        world.end(2);
        assert!(world.revoked.loaded().check().await.is_err(), "must not be ready before the list was read");
        assert!(!world.revoked.is_fresh());

        world.watch();
        world.knows(1).await;
        world.knows(2).await;
        until(PATIENCE_OF_TEST, async || world.revoked.loaded().check().await.is_ok()).await;
        assert!(world.revoked.is_fresh());
        let first = world.source.asked.lock().unwrap()[0];
        assert_eq!(first, world.clock.now().before(HOUR), "the first request goes back one token lifetime");

        world.end(3);
        world.knows(3).await;
        assert!(!world.revoked.contains(Uuid::from_u128(4)));
        world.stop.cancel();
        world.tasks.join_next().await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_list_goes_stale_without_replies_and_recovers() {
    within(PATIENCE_OF_TEST, async {
        let mut world = World::new();
        world.watch();
        until(PATIENCE_OF_TEST, async || world.revoked.is_fresh()).await;
        world.source.down.store(true, Ordering::Relaxed);
        world.clock.advance(STALE + Duration::from_millis(1));
        until(PATIENCE_OF_TEST, async || !world.revoked.is_fresh()).await;
        assert!(world.revoked.fresh().check().await.unwrap_err().contains("5 s"));
        assert!(
            world.revoked.loaded().check().await.is_ok(),
            "a stale list must not make the process unready"
        );

        world.end(7);
        world.source.down.store(false, Ordering::Relaxed);
        world.knows(7).await;
        until(PATIENCE_OF_TEST, async || world.revoked.is_fresh()).await;
    })
    .await;
}

/// After a busy hour: each page is in time, but all of them together take longer than the timeout
/// of one.
#[tokio::test(start_paused = true)]
async fn a_long_list_is_read_completely_and_a_partial_one_is_not_accepted() {
    let read = async |stuck_after: Option<usize>| {
        let clock = fixed_clock();
        let page_takes = PATIENCE / 2;
        let source =
            Source { page_takes, stuck_after, clock: Mutex::new(Some(clock.clone())), ..Source::default() };
        let revoked = Revoked::new(clock.clone(), HOUR);
        for session in 1..=30 {
            let ended = Revocation { session: Uuid::from_u128(session), until: clock.now().after(HOUR) };
            source.ended.lock().unwrap().push((clock.now(), ended));
        }
        let outcome = revoked.load(&source).await;
        (outcome, revoked.contains(Uuid::from_u128(30)), revoked.is_loaded())
    };
    assert_eq!(read(None).await, (Ok(()), true, true));
    let cause = format!("no answer within {PATIENCE:?}, after 7 pages");
    assert_eq!(read(Some(7)).await, (Err(cause), false, false));
}

#[test]
fn a_session_is_removed_when_its_last_token_has_expired() {
    let world = World::new();
    let session = Uuid::from_u128(1);
    let until = world.clock.now().after(HOUR);
    assert!(world.revoked.add(&[Revocation { session, until }]));
    world.clock.advance(HOUR.saturating_sub(Duration::from_secs(1)));
    world.revoked.forget();
    assert!(world.revoked.contains(session));
    world.clock.advance(Duration::from_secs(1));
    world.revoked.forget();
    assert!(!world.revoked.contains(session));
}

#[tokio::test]
async fn a_list_that_does_not_fit_is_not_accepted_as_complete() {
    let world = World::new();
    let until = world.clock.now().after(HOUR);
    let many: Vec<_> =
        (0..=MAX_SESSIONS as u128).map(|id| Revocation { session: Uuid::from_u128(id), until }).collect();
    assert!(!world.revoked.add(&many));
    world.end(u128::MAX);
    assert!(world.revoked.ask(&*world.source, world.clock.now()).await.is_err());
    assert!(!world.revoked.is_fresh());
    assert!(world.revoked.add(&many[..1]), "known sessions can still be updated");
}
