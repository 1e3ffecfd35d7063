//! Redis becomes unreachable while users hold slots: they continue to buy, admissions stop, and it
//! recovers by itself.

use std::time::Duration;

use urr_contracts::queue::{ClearRoom, Error, LeaveLine, SlotOf, Standing, StatusOf};
use urr_db::{Tx, transaction};
use urr_kernel::{Actor, CommonError, EventId, OrderKey, Timestamp, UserId};
use urr_kv::{Arg, KvConfig, Script};
use urr_passes::{entry, entry::Entries};
use urr_testkit::{Proxy, fresh_postgres, fresh_sqlite, services, until, within};
use uuid::Uuid;

use super::{
    LIMIT, Transport, World,
    sales::hear_of,
    stories::assert_fair,
    troubles::{BREAK, MEND, turn},
};
use crate::{
    DOMAIN,
    journal::{Entry, Step, Why, store},
    room::Order,
    settings::Limits,
    work::purchases,
};

fn limits() -> Limits {
    Limits { threshold: 4, ..Limits::default() }
}

#[derive(Clone, Copy)]
enum Engine {
    Sqlite,
    Postgres,
}

/// A fixture whose Redis can be disconnected. `None` if a store is not available (testkit reports
/// it).
async fn world(engine: Engine, transport: Transport) -> Option<(Proxy, World)> {
    let url = services::redis()?;
    let database = match engine {
        Engine::Sqlite => fresh_sqlite(&DOMAIN).await,
        Engine::Postgres => (tempfile::tempdir().unwrap(), fresh_postgres(&DOMAIN).await?),
    };
    let proxy = Proxy::start(url.trim_start_matches("redis://").trim_end_matches('/')).await;
    let config = KvConfig::single(format!("redis://{}", proxy.address()));
    let world = World::on(database, Some(config), transport, limits()).await;
    Some((proxy, world))
}

macro_rules! on_both_engines {
    ($($story:ident)*) => {$(
        mod $story {
            use super::{Engine, LIMIT, Transport, within, world};

            async fn tell(engine: Engine, transport: Transport) {
                if let Some((proxy, world)) = world(engine, transport).await {
                    within(LIMIT, super::$story(proxy, world)).await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite() {
                tell(Engine::Sqlite, Transport::Local).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_postgres() {
                tell(Engine::Postgres, Transport::Local).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_postgres_remote() {
                tell(Engine::Postgres, Transport::Remote).await;
            }
        }
    )*};
}

on_both_engines! {
    slots_stay_valid_and_admissions_stop_without_redis
    slots_are_checked_against_the_journal
    a_redis_that_answers_is_not_unreachable
}

/// The check that the sale makes with every request.
async fn goes_on(world: &World, event: EventId, user: UserId, slot: Uuid) -> Result<bool, Error> {
    let state = world.queue.slot(&world.acting(Actor::System), SlotOf { event, user, slot }).await;
    state.map(|state| state.open)
}

/// Joins and is admitted at once. Returns the slot.
async fn come_in(world: &World, user: UserId) -> Uuid {
    let place = world.check(user).await.unwrap();
    let Standing::Active { entry_token, .. } = &place.standing else { panic!("{place:?}") };
    let entries = Entries::new([entry::key(&world.secret)]);
    entries.verify(entry_token.expose(), world.clock.now()).unwrap().slot
}

/// Every request of the user gets 503.
async fn assert_closed(world: &World, user: UserId) {
    let (ctx, event) = (world.ctx(user), world.event);
    assert_eq!(world.check(user).await.unwrap_err(), Error::Common(CommonError::Unavailable));
    assert_eq!(
        world.queue.status(&ctx, StatusOf { event }).await.unwrap_err(),
        Error::Common(CommonError::Unavailable)
    );
    assert_eq!(
        world.queue.leave(&ctx, LeaveLine { event }).await.unwrap_err(),
        Error::Common(CommonError::Unavailable)
    );
}

async fn slots_stay_valid_and_admissions_stop_without_redis(mut proxy: Proxy, world: World) {
    let event = world.event;
    let [inside, left, buyer, regular, waiting, stranger] = [(); 6].map(|()| world.somebody());
    let slot = come_in(&world, inside).await;
    let slot_left = come_in(&world, left).await;
    let slot_used = come_in(&world, buyer).await;
    let slot_since = come_in(&world, regular).await;
    world.check(waiting).await.unwrap();
    assert_eq!(world.position(waiting).await, Some(1));
    // The slot of the buyer is not freed yet; the other user bought with an earlier slot.
    let now = world.clock.now();
    hear_of(&world, event, "RESERVATION_CONFIRMED", buyer, now).await;
    hear_of(&world, event, "RESERVATION_CONFIRMED", regular, now.before(Duration::from_mins(1))).await;
    world.queue.leave(&world.ctx(left), LeaveLine { event }).await.unwrap();
    world.service.rooms().unwrap().settle(event).await.unwrap();
    assert_eq!(
        goes_on(&world, event, buyer, slot_used).await,
        Ok(true),
        "the slot is not freed in Redis yet"
    );

    proxy.cut().await;
    for (user, slot, expected) in [
        (inside, slot, true),
        (regular, slot_since, true),
        (left, slot_left, false),
        (buyer, slot_used, false),
        (inside, slot_since, false),
        (waiting, slot, false),
        (stranger, slot, false),
    ] {
        assert_eq!(goes_on(&world, event, user, slot).await, Ok(expected), "{user} with {slot}");
    }
    assert_eq!(goes_on(&world, world.another_event(), inside, slot).await, Ok(false));
    let foreign = world.queue.slot(&world.ctx(stranger), SlotOf { event, user: inside, slot }).await;
    assert_eq!(foreign.unwrap_err(), Error::Common(CommonError::SignInRequired));
    for user in [inside, waiting, stranger] {
        assert_closed(&world, user).await;
    }

    proxy.restore().await;
    until(LIMIT, async || world.queue.status(&world.ctx(waiting), StatusOf { event }).await.is_ok()).await;
    assert_eq!(world.position(waiting).await, Some(1), "no admissions, and no lost positions");
    assert_eq!(goes_on(&world, event, inside, slot).await, Ok(true));
    assert_eq!(purchases::free(&world.service).await.unwrap(), 2);
    assert_eq!(goes_on(&world, event, buyer, slot_used).await, Ok(false));
    assert_eq!(goes_on(&world, event, regular, slot_since).await, Ok(true));
    assert_fair(&world).await;

    // An operator's decision is written before the answer.
    let clear = ClearRoom { event, confirmed: Some(event) };
    world.queue.clear(&world.admin(), clear).await.unwrap();
    proxy.cut().await;
    assert_eq!(goes_on(&world, event, inside, slot).await, Ok(false));
}

/// Generations of a room: the steps of each, with their times.
type Lives = Vec<Vec<(Timestamp, Step)>>;

/// Writes generations of a room. Each but the first begins as after a loss, and repeats the
/// operators' decisions.
async fn write(world: &World, event: EventId, lives: &Lives) {
    let now = world.clock.now();
    for steps in lives {
        let written: Result<(), urr_db::Error> =
            transaction!(world.db(), "test.life", async |tx: &mut Tx<'_>| {
                let kept = store::begin(tx, event, 1, now).await?;
                let first = u64::try_from(kept.entries.len()).unwrap() + 1;
                for (seq, (at, step)) in (first..).zip(steps) {
                    let entry = Entry { generation: kept.generation, seq, at: *at, step: *step };
                    assert!(store::append(tx, event, &entry).await?);
                }
                Ok(())
            });
        written.unwrap();
    }
}

/// Journals, and whether the user's slot is active in each.
fn journals(now: Timestamp, user: UserId, slot: Uuid) -> Vec<(&'static str, Lives, bool)> {
    let order = OrderKey::new(1).unwrap();
    let lately = now.before(Duration::from_mins(1));
    let over = now.before(limits().slot_total);
    let given = |slot, at| (at, Step::Admitted { user, order, slot, source: None });
    let [inside, before, other] = [given(slot, lately), given(slot, over), given(Uuid::from_u128(7), lately)];
    let nearly_over = given(slot, over.after(Duration::from_mins(1)));
    let gone = (lately, Step::Gone { user, why: Why::Left });
    let returned = (lately, Step::Returned { user, order });
    let joined = (lately, Step::Joined { user, order, source: None });
    let cleared = |epoch| (lately, Step::Cleared { epoch });
    vec![
        ("active", vec![vec![inside]], true),
        ("unknown user", vec![vec![]], false),
        ("waiting", vec![vec![joined]], false),
        ("left", vec![vec![inside, gone]], false),
        ("returned to the line", vec![vec![inside, returned]], false),
        ("active with another slot", vec![vec![inside, gone, joined, other]], false),
        ("active, after another slot", vec![vec![other, gone, joined, inside]], true),
        ("expired", vec![vec![before]], false),
        ("nearly expired", vec![vec![nearly_over]], true),
        ("cleared", vec![vec![inside, cleared(2)]], false),
        ("cleared before the slot was given", vec![vec![cleared(2), inside]], true),
        ("the next generation was lost while it began", vec![vec![cleared(2), inside], vec![]], true),
        ("cleared, and repeated in the next generation", vec![vec![inside, cleared(2)], vec![]], false),
        ("restored in the next generation", vec![vec![cleared(2), inside], vec![inside]], true),
        ("left in the next generation", vec![vec![inside], vec![inside, gone]], false),
        (
            "cleared in the next generation",
            vec![vec![cleared(2), inside], vec![inside, cleared(3)], vec![]],
            false,
        ),
    ]
}

async fn slots_are_checked_against_the_journal(mut proxy: Proxy, world: World) {
    urr_db::statements! {
        HIDE = "alter table journal rename to journal_away";
        SHOW = "alter table journal_away rename to journal";
    }
    let (user, slot) = (world.somebody(), Uuid::from_u128(1));
    proxy.cut().await;
    let mut open = world.event;
    for (what, lives, expected) in journals(world.clock.now(), user, slot) {
        let event = world.another_event();
        write(&world, event, &lives).await;
        assert_eq!(goes_on(&world, event, user, slot).await, Ok(expected), "{what}");
        if expected {
            open = event;
        }
    }
    for (statement, expected) in [(&HIDE, None), (&SHOW, Some(true))] {
        let renamed: Result<u64, urr_db::Error> =
            world.db().write("test.rename", async |tx: &mut Tx<'_>| tx.execute(statement, &[]).await).await;
        renamed.unwrap();
        assert_eq!(
            goes_on(&world, open, user, slot).await.ok(),
            expected,
            "unknown without Redis and journal"
        );
    }
}

/// A Redis that answers may still change the room, and the journal may lag behind it.
async fn a_redis_that_answers_is_not_unreachable(_proxy: Proxy, world: World) {
    static LOSE: Script =
        Script::new("test.lose", "for _, key in ipairs(KEYS) do redis.call('DEL', key) end return 1");
    let (user, event) = (world.somebody(), world.event);
    let slot = come_in(&world, user).await;
    turn(&world, event, &BREAK).await;
    assert_eq!(
        goes_on(&world, event, user, slot).await,
        Err(Error::Common(CommonError::Unavailable)),
        "Redis answers but cannot run the script"
    );
    turn(&world, event, &MEND).await;
    assert_eq!(goes_on(&world, event, user, slot).await, Ok(true));

    let keys =
        ["queue", "active", "seen", "slots", "room", "journal"].map(|name| format!("{{{event}}}:{name}"));
    world.kv().unwrap().run(&LOSE, &keys, &[] as &[Arg<'_>]).await.unwrap();
    assert_eq!(
        goes_on(&world, event, user, slot).await,
        Ok(true),
        "Redis has lost the room, which is restored"
    );
    let totals = world.service.rooms().unwrap().order(event, Order::Look).await.unwrap();
    assert_eq!(totals.active, 1);
    assert_fair(&world).await;
}
