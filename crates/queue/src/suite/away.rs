//! Redis goes away while people are in: they go on buying, nobody else comes in, and it heals by itself.

use std::time::Duration;

use urr_contracts::queue::{ClearRoom, Error, LeaveLine, SlotOf, Standing, StatusOf};
use urr_db::{Tx, transaction};
use urr_kernel::{Actor, EventId, OrderKey, Timestamp, UserId};
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

/// A world whose Redis can be cut off. `None` when a store cannot be had (said loudly by testkit).
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
    whoever_is_in_goes_on_and_nobody_else_comes_in
    the_journal_says_whose_slot_goes_on
    a_redis_that_answers_is_not_away
}

/// What the guard of the sale asks.
async fn goes_on(world: &World, event: EventId, user: UserId, slot: Uuid) -> Result<bool, Error> {
    let state = world.queue.slot(&world.acting(Actor::System), SlotOf { event, user, slot }).await;
    state.map(|state| state.open)
}

/// Somebody comes and is let in. Answers with their slot.
async fn come_in(world: &World, user: UserId) -> Uuid {
    let place = world.check(user).await.unwrap();
    let Standing::Active { entry_token, .. } = &place.standing else { panic!("{place:?}") };
    let entries = Entries::new([entry::key(&world.secret)]);
    entries.verify(entry_token.expose(), world.clock.now()).unwrap().slot
}

/// Whatever somebody asks of the line, they are told to ask again.
async fn assert_closed(world: &World, user: UserId) {
    let (ctx, event) = (world.ctx(user), world.event);
    assert_eq!(world.check(user).await.unwrap_err(), Error::Unavailable);
    assert_eq!(world.queue.status(&ctx, StatusOf { event }).await.unwrap_err(), Error::Unavailable);
    assert_eq!(world.queue.leave(&ctx, LeaveLine { event }).await.unwrap_err(), Error::Unavailable);
}

async fn whoever_is_in_goes_on_and_nobody_else_comes_in(mut proxy: Proxy, world: World) {
    let event = world.event;
    let [inside, left, buyer, regular, waiting, stranger] = [(); 6].map(|()| world.somebody());
    let slot = come_in(&world, inside).await;
    let slot_left = come_in(&world, left).await;
    let slot_used = come_in(&world, buyer).await;
    let slot_since = come_in(&world, regular).await;
    world.check(waiting).await.unwrap();
    assert_eq!(world.position(waiting).await, Some(1));
    // Nobody frees the slot of the one who bought with it; the other bought with an earlier one.
    let now = world.clock.now();
    hear_of(&world, event, "RESERVATION_CONFIRMED", buyer, now).await;
    hear_of(&world, event, "RESERVATION_CONFIRMED", regular, now.before(Duration::from_mins(1))).await;
    world.queue.leave(&world.ctx(left), LeaveLine { event }).await.unwrap();
    world.service.rooms().unwrap().settle(event).await.unwrap();
    assert_eq!(goes_on(&world, event, buyer, slot_used).await, Ok(true), "Redis has not been told");

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
    assert_eq!(foreign.unwrap_err(), Error::SignInRequired);
    for user in [inside, waiting, stranger] {
        assert_closed(&world, user).await;
    }

    proxy.restore().await;
    until(LIMIT, async || world.queue.status(&world.ctx(waiting), StatusOf { event }).await.is_ok()).await;
    assert_eq!(world.position(waiting).await, Some(1), "nobody was let in, and nobody lost their place");
    assert_eq!(goes_on(&world, event, inside, slot).await, Ok(true));
    assert_eq!(purchases::free(&world.service).await.unwrap(), 2);
    assert_eq!(goes_on(&world, event, buyer, slot_used).await, Ok(false));
    assert_eq!(goes_on(&world, event, regular, slot_since).await, Ok(true));
    assert_fair(&world).await;

    // What an operator decided is known before they hear of it.
    let clear = ClearRoom { event, confirmed: Some(event) };
    world.queue.clear(&world.admin(), clear).await.unwrap();
    proxy.cut().await;
    assert_eq!(goes_on(&world, event, inside, slot).await, Ok(false));
}

/// Lives of a room: what happened in each, and when.
type Lives = Vec<Vec<(Timestamp, Step)>>;

/// Writes lives of a room down. Each but the first begins as after a loss, and says what operators decided.
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

/// What a journal may hold, and whether one user's slot goes on then.
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
        ("they are in", vec![vec![inside]], true),
        ("they were never here", vec![vec![]], false),
        ("they wait", vec![vec![joined]], false),
        ("they went", vec![vec![inside, gone]], false),
        ("they stand in line again", vec![vec![inside, returned]], false),
        ("they are in with another", vec![vec![inside, gone, joined, other]], false),
        ("they were in with another", vec![vec![other, gone, joined, inside]], true),
        ("its time is over", vec![vec![before]], false),
        ("its time is nearly over", vec![vec![nearly_over]], true),
        ("it was cleared away", vec![vec![inside, cleared(2)]], false),
        ("the line was cleared before", vec![vec![cleared(2), inside]], true),
        ("the next life broke off", vec![vec![cleared(2), inside], vec![]], true),
        ("the next life says that it was cleared away", vec![vec![inside, cleared(2)], vec![]], false),
        ("it was taken over", vec![vec![cleared(2), inside], vec![inside]], true),
        ("they went in the next life", vec![vec![inside], vec![inside, gone]], false),
        (
            "it was cleared away in the next life",
            vec![vec![cleared(2), inside], vec![inside, cleared(3)], vec![]],
            false,
        ),
    ]
}

async fn the_journal_says_whose_slot_goes_on(mut proxy: Proxy, world: World) {
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
        assert_eq!(goes_on(&world, open, user, slot).await.ok(), expected, "without either nobody can say");
    }
}

/// Then the room goes on somewhere, and the journal may be behind.
async fn a_redis_that_answers_is_not_away(_proxy: Proxy, world: World) {
    static LOSE: Script =
        Script::new("test.lose", "for _, key in ipairs(KEYS) do redis.call('DEL', key) end return 1");
    let (user, event) = (world.somebody(), world.event);
    let slot = come_in(&world, user).await;
    turn(&world, event, &BREAK).await;
    assert_eq!(goes_on(&world, event, user, slot).await, Err(Error::Unavailable), "it cannot run the script");
    turn(&world, event, &MEND).await;
    assert_eq!(goes_on(&world, event, user, slot).await, Ok(true));

    let keys =
        ["queue", "active", "seen", "slots", "room", "journal"].map(|name| format!("{{{event}}}:{name}"));
    world.kv().unwrap().run(&LOSE, &keys, &[] as &[Arg<'_>]).await.unwrap();
    assert_eq!(goes_on(&world, event, user, slot).await, Ok(true), "it has lost the room, which comes back");
    let totals = world.service.rooms().unwrap().order(event, Order::Look).await.unwrap();
    assert_eq!(totals.active, 1);
    assert_fair(&world).await;
}
