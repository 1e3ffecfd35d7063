//! Many buyers and few seats on PostgreSQL and Redis, with the real binary.

use std::collections::{BTreeMap, BTreeSet};

use tokio::{sync::Barrier, task::JoinSet};
use urr_e2e::{
    http::{Answer, Connection},
    rng,
    shop::{self, Buyer, Reservation},
    stage::Stage,
    stores::Stores,
};
use urr_kernel::{EventId, SeatId};

/// Concurrent buyers.
const BUYERS: usize = 200;

/// Seats on sale.
const SEATS: usize = 10;

/// All buyers send their requests at once, each on its own connection.
async fn rush(
    stage: &Stage,
    event: EventId,
    wishes: Vec<(Buyer, Vec<SeatId>)>,
) -> anyhow::Result<Vec<Answer>> {
    let start = std::sync::Arc::new(Barrier::new(wishes.len()));
    let mut asking = JoinSet::new();
    for (buyer, seats) in wishes {
        let (mut connection, start) = (Connection::to(stage.running.address), start.clone());
        asking.spawn(async move {
            start.wait().await;
            shop::hold(&mut connection, &buyer.token, event, &seats, "race").await
        });
    }
    let mut answers = Vec::new();
    while let Some(answer) = asking.join_next().await {
        answers.push(answer??);
    }
    Ok(answers)
}

fn by_code(answers: &[Answer]) -> BTreeMap<(u16, String), usize> {
    let mut counts = BTreeMap::new();
    for answer in answers {
        *counts.entry((answer.status, answer.code())).or_default() += 1;
    }
    counts
}

async fn locked(stage: &Stage, event: EventId) -> anyhow::Result<usize> {
    // The seat map may be half a second old, so it is polled until it has caught up.
    let mut count = 0;
    urr_testkit::until(std::time::Duration::from_secs(10), async || {
        let map = shop::seat_map(&mut stage.connect(), event).await.unwrap_or_default();
        let now = map.iter().filter(|(_, status)| status == "locked").count();
        let settled = now == count && now > 0;
        count = now;
        settled
    })
    .await;
    Ok(count)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_buyers_for_ten_seats_make_ten_reservations() -> anyhow::Result<()> {
    let Some(stores) = Stores::fresh().await else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let stage = Stage::up(stores.launch(dir.path()).await?).await?;
    let buyers = stage.buyers(BUYERS).await?;
    let (event, seats) = stage.event(-60).await?;
    let wishes =
        buyers.iter().enumerate().map(|(at, buyer)| (buyer.clone(), vec![seats[at % SEATS]])).collect();
    let answers = rush(&stage, event, wishes).await?;
    let expected = [((200, String::new()), SEATS), ((409, "tickets.seats_taken".to_owned()), BUYERS - SEATS)];
    assert_eq!(by_code(&answers), BTreeMap::from(expected));
    let won: BTreeSet<SeatId> = reserved(&answers)?.into_iter().collect();
    assert_eq!(won, seats[..SEATS].iter().copied().collect());
    assert_eq!(locked(&stage, event).await?, SEATS);
    assert_eq!(stores.deadlocks().await, 0, "buyers waited for each other");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn overlapping_holds_neither_deadlock_nor_share_a_seat() -> anyhow::Result<()> {
    let Some(stores) = Stores::fresh().await else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let stage = Stage::up(stores.launch(dir.path()).await?).await?;
    let buyers = stage.buyers(BUYERS).await?;
    let (event, seats) = stage.event(-60).await?;
    let mut rng = rng::of_this_run("overlapping");
    let mut wishes = Vec::new();
    for buyer in buyers {
        // Two to four of the ten seats, in random order.
        let mut wish: Vec<SeatId> = Vec::new();
        let count = 2 + rng.index(3);
        while wish.len() < count {
            let seat = seats[rng.index(SEATS)];
            if !wish.contains(&seat) {
                wish.push(seat);
            }
        }
        wishes.push((buyer, wish));
    }
    let answers = rush(&stage, event, wishes).await?;
    let counts = by_code(&answers);
    assert!(counts.keys().all(|(status, _)| *status == 200 || *status == 409), "{counts:?}");
    let won = reserved(&answers)?;
    let distinct: BTreeSet<SeatId> = won.iter().copied().collect();
    assert_eq!(won.len(), distinct.len(), "no seat was sold twice");
    assert!(!won.is_empty(), "at least one buyer succeeded");
    assert_eq!(locked(&stage, event).await?, won.len());
    assert_eq!(stores.deadlocks().await, 0, "buyers waited for each other");
    Ok(())
}

fn reserved(answers: &[Answer]) -> anyhow::Result<Vec<SeatId>> {
    let mut seats = Vec::new();
    for answer in answers.iter().filter(|answer| answer.status == 200) {
        seats.extend(Reservation::from_answer(answer)?.seats.into_iter().map(|seat| seat.id));
    }
    Ok(seats)
}
