//! Concurrent transactions compete for the same seats, and for the last seats of one buyer.
//!
//! Each test has a negative control: the same race with check-then-act statements must sell a seat
//! twice, or exceed the limit. This proves that the race can detect the fault it guards against.

use std::{collections::HashMap, sync::Arc};

use tokio::{sync::Barrier, task::JoinSet};
use urr_db::{Tx, statements, transaction};
use urr_kernel::{
    EventId, SeatId, Timestamp, UserId,
    limits::{HOLD, MAX_SEATS_PER_USER},
};

use super::World;
use crate::holds::claims::store::{self, SeatStates, Wanted};

const SEATS: usize = 10;
const RIVALS_PER_SEAT: usize = 6;
const DEVICES: usize = 20;

/// On a loaded machine the transactions of a control may run in sequence by chance.
const ATTEMPTS: usize = 20;

statements! {
    /// The check of check-then-act.
    LOOK = "select fence from seats where event_id = $1 and seat_id = $2 and state <> 'available'";
    /// The act of check-then-act: no condition.
    TAKE = "
        insert into seats (event_id, seat_id, state, reservation_id, fence, expires_at)
        values ($1, $2, 'held', $3, 1, $4)
        on conflict (event_id, seat_id) do update
           set state = 'held', reservation_id = excluded.reservation_id, fence = seats.fence + 1,
               expires_at = excluded.expires_at
        returning fence";
    /// Seat count of a buyer.
    COUNTED = "select live_seats from buyers where event_id = $1 and user_id = $2";
    /// Adds to the count without a condition.
    COUNT = "
        insert into buyers (event_id, user_id, live_seats) values ($1, $2, $3)
        on conflict (event_id, user_id) do update set live_seats = buyers.live_seats + excluded.live_seats";
}

/// How a transaction claims its seat, and how it counts it.
#[derive(Clone, Copy)]
enum ClaimMode {
    Conditional,
    CheckThenAct,
}

impl ClaimMode {
    /// Returns whether the seat was free.
    async fn claim(
        self,
        tx: &mut Tx<'_>,
        event: EventId,
        wanted: Wanted,
        now: Timestamp,
    ) -> Result<bool, urr_db::Error> {
        match self {
            Self::Conditional => {
                let claimed = store::claim(tx, event, &[wanted], &SeatStates::default(), now).await?;
                Ok(claimed.len() == 1)
            }
            Self::CheckThenAct => {
                let Wanted { seat, reservation, expires_at } = wanted;
                let taken: Option<i64> = tx.optional(&LOOK, &[&event, &seat], |row| row.get(0)).await?;
                if taken.is_none() {
                    tx.execute(&TAKE, &[&event, &seat, &reservation, &expires_at]).await?;
                }
                Ok(taken.is_none())
            }
        }
    }

    /// Returns whether the buyer stays within the limit with one more seat.
    async fn count(self, tx: &mut Tx<'_>, event: EventId, user: UserId) -> Result<bool, urr_db::Error> {
        match self {
            Self::Conditional => {
                let counted = store::count_in(tx, event, &[(user, 1)], MAX_SEATS_PER_USER).await?;
                Ok(counted.contains(&user))
            }
            Self::CheckThenAct => {
                let held: Option<i64> = tx.optional(&COUNTED, &[&event, &user], |row| row.get(0)).await?;
                let within = held.unwrap_or(0) < i64::from(MAX_SEATS_PER_USER);
                if within {
                    tx.execute(&COUNT, &[&event, &user, &1_i64]).await?;
                }
                Ok(within)
            }
        }
    }
}

/// Runs one transaction per element of `wanted`, all at once. Returns the elements that got `true`.
async fn winners<W, F>(wanted: Vec<W>, run: impl Fn(W) -> F) -> Vec<W>
where
    W: Copy + Send + 'static,
    F: Future<Output = Result<bool, urr_db::Error>> + Send + 'static,
{
    let start = Arc::new(Barrier::new(wanted.len()));
    let mut rivals = JoinSet::new();
    for one in wanted {
        let (start, run) = (Arc::clone(&start), run(one));
        rivals.spawn(async move {
            start.wait().await;
            run.await.unwrap().then_some(one)
        });
    }
    rivals.join_all().await.into_iter().flatten().collect()
}

/// Returns the number of winners of each seat.
async fn winners_of_seats(world: &World, mode: ClaimMode) -> HashMap<SeatId, usize> {
    let (event, now): (EventId, _) = (world.ids.next(), world.clock.now());
    let seats: Vec<SeatId> = (0..SEATS).map(|_| world.ids.next()).collect();
    let wanted = seats.iter().cycle().take(SEATS * RIVALS_PER_SEAT).map(|seat| Wanted {
        seat: *seat,
        reservation: world.ids.next(),
        expires_at: now.after(HOLD),
    });
    let won = winners(wanted.collect(), |wanted| {
        let db = world.service.db.clone();
        async move {
            transaction!(db, "test.claim", async |tx: &mut Tx<'_>| mode.claim(tx, event, wanted, now).await)
        }
    });
    let mut winners: HashMap<SeatId, usize> = HashMap::new();
    for Wanted { seat, .. } in won.await {
        *winners.entry(seat).or_default() += 1;
    }
    winners
}

/// One buyer requests seats from many devices. Returns how many succeeded.
async fn counted_seats(world: &World, mode: ClaimMode) -> usize {
    let (event, user): (EventId, UserId) = (world.ids.next(), world.ids.next());
    let counted = winners((0..DEVICES).collect(), |_| {
        let db = world.service.db.clone();
        async move { transaction!(db, "test.count", async |tx: &mut Tx<'_>| mode.count(tx, event, user).await) }
    });
    counted.await.len()
}

pub(super) async fn exactly_one_transaction_wins_each_seat(world: &World) {
    let winners = winners_of_seats(world, ClaimMode::Conditional).await;
    assert_eq!(winners.len(), SEATS);
    assert!(winners.values().all(|count| *count == 1), "{winners:?}");
}

pub(super) async fn the_race_test_detects_check_then_act_claims(world: &World) {
    for _ in 0..ATTEMPTS {
        if winners_of_seats(world, ClaimMode::CheckThenAct).await.values().any(|count| *count > 1) {
            return;
        }
    }
    panic!("the control sold no seat twice, so the race test proves nothing");
}

pub(super) async fn the_seat_limit_holds_across_transactions(world: &World) {
    assert_eq!(counted_seats(world, ClaimMode::Conditional).await, 4);
}

pub(super) async fn the_race_test_detects_a_check_then_act_seat_limit(world: &World) {
    for _ in 0..ATTEMPTS {
        if counted_seats(world, ClaimMode::CheckThenAct).await > 4 {
            return;
        }
    }
    panic!("the control stayed within the limit, so the race test proves nothing");
}
