//! Slots are checked against the journal, on both engines.

use std::{sync::Arc, time::Duration};

use urr_contracts::queue::SlotOf;
use urr_db::{Tx, transaction};
use urr_kernel::{EventId, OrderKey, Timestamp, UserId};
use urr_passes::Secret;
use urr_testkit::{DbKind, FakeCatalog, fixed};
use uuid::Uuid;

use super::goes_on;
use crate::{
    Limits, Parts, Service, Settings,
    journal::{Entry, Step, Why, store},
};

/// Generations of a room: the steps of each, with their times.
type Generations = Vec<Vec<(Timestamp, Step)>>;

/// Writes generations of a room. Each but the first begins as after a loss, and repeats the
/// operators' decisions.
async fn write(service: &Service, event: EventId, generations: &Generations) {
    let now = service.clock.now();
    for steps in generations {
        let written: Result<(), urr_db::Error> =
            transaction!(service.db, "test.life", async |tx: &mut Tx<'_>| {
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
fn journals(now: Timestamp, user: UserId, slot: Uuid) -> Vec<(&'static str, Generations, bool)> {
    let order = OrderKey::new(1).unwrap();
    let lately = now.before(Duration::from_mins(1));
    let over = now.before(Limits::default().slot_total);
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

async fn check(db: DbKind) {
    let Some((_dir, db)) = db.open(&crate::DOMAIN).await else { return };
    let (clock, ids) = fixed();
    // Its rooms stay closed, as if Redis were unreachable.
    let service = crate::build(Parts {
        db,
        kv: None,
        catalog: Arc::new(FakeCatalog::default()),
        clock: clock.clone(),
        ids: ids.clone(),
        secrets: vec![Secret::new("correct horse battery staple, twice").unwrap()],
        settings: Settings::default(),
        secure_cookies: true,
        notices: None,
    });
    let (user, slot) = (ids.next(), Uuid::from_u128(1));
    for (what, generations, expected) in journals(clock.now(), user, slot) {
        let event = ids.next();
        write(&service, event, &generations).await;
        assert_eq!(goes_on(&service, SlotOf { event, user, slot }).await.unwrap(), expected, "{what}");
    }
}

#[tokio::test]
async fn slots_are_checked_against_the_journal_on_sqlite() {
    check(DbKind::Sqlite).await;
}

#[tokio::test]
async fn slots_are_checked_against_the_journal_on_postgres() {
    check(DbKind::Postgres).await;
}
