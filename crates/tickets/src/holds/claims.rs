//! Batches concurrent claims of the same event: one transaction, a few statements and one sync for
//! all of them. Each claim is still atomic: if it is rejected, the seats it got are freed in the
//! same transaction.

pub(crate) mod store;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use urr_contracts::tickets::{Error, Reservation};
use urr_db::{Db, JsonText, Kind, Tx, outbox, transaction};
use urr_jobs::{BatchError, Work};
use urr_kernel::{Clock, CommonError, EventId, ReservationId, SeatId, Timestamp, UserId};

use super::{
    rules::{self, Plan},
    store as rows,
};
use crate::{Failure, gate::Owner};
use store::{NewReservationRow, SeatStates, Wanted};

/// Claims per transaction: a few milliseconds of work, so that other writes do not wait long.
const MAX_TOGETHER: usize = 64;

/// One claim with everything it needs. As much as possible is prepared before the transaction,
/// because SQLite has a single writer.
#[derive(Clone)]
pub(crate) struct Claim {
    pub(crate) reservation: Reservation,
    pub(crate) card: JsonText,
    pub(crate) plan: Plan,
    pub(crate) owner: Owner,
    pub(crate) max_seats_per_user: u32,
    pub(crate) sale_end_at: Timestamp,
    pub(crate) key: Option<String>,
    /// Message for the outbox.
    pub(crate) news: outbox::Message,
}

impl Claim {
    fn id(&self) -> ReservationId {
        self.reservation.id
    }

    fn user(&self) -> UserId {
        self.reservation.user
    }

    fn wanted(&self) -> impl Iterator<Item = Wanted> {
        let Reservation { id, expires_at, .. } = self.reservation;
        self.plan.seats.iter().map(move |seat| Wanted { seat: seat.id, reservation: id, expires_at })
    }
}

/// Runs batches of claims against the database.
pub(crate) struct Claiming {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
}

impl Work for Claiming {
    type Key = EventId;
    type Job = Arc<Claim>;
    type Answer = Result<Reservation, Failure>;

    const NAME: &'static str = "tickets.hold";
    /// A few seconds of load.
    const MAX_WAITING: usize = 20_000;
    /// One batch can start while another is synced to disk.
    const LANES: usize = 2;
    const PATIENCE: Duration = super::PATIENCE;

    /// Takes claims from the front, as long as they have the same seat limit and no buyer repeats.
    /// A second claim of a buyer needs a round of its own, and the rest of the batch would wait for
    /// it.
    fn choose<T>(waiting: &mut Vec<(Arc<Claim>, T)>) -> Vec<(Arc<Claim>, T)> {
        let max = waiting.first().map(|(first, _)| first.max_seats_per_user);
        let mut buyers = HashSet::with_capacity(MAX_TOGETHER);
        let alike = waiting
            .iter()
            .take(MAX_TOGETHER)
            .take_while(|(claim, _)| Some(claim.max_seats_per_user) == max && buyers.insert(claim.user()));
        let count = alike.count();
        waiting.drain(..count).collect()
    }

    /// Claims queued behind an unreachable database fail with it: they have already waited the full
    /// timeout.
    fn give_up(answers: &[Result<Reservation, Failure>]) -> Option<Result<Reservation, Failure>> {
        let is_away = |answer: &Result<_, Failure>| {
            let error = answer.as_ref().err().and_then(Failure::cause::<urr_db::Error>);
            error.is_some_and(|error| {
                matches!(error.kind(), Kind::Unavailable | Kind::UnknownCommit) && !error.is_blocked()
            })
        };
        answers.iter().any(is_away).then(|| Err(late()))
    }

    /// Runs rounds, each in its own transaction, until every claim has an answer. Of claims that
    /// conflict, one is made per round, and the others then find the seats taken. There are rarely
    /// more than two rounds; claims past the deadline fail.
    async fn run(&self, event: EventId, claims: Vec<Arc<Claim>>) -> Vec<Result<Reservation, Failure>> {
        let began = self.clock.ticks();
        let mut answers = HashMap::with_capacity(claims.len());
        let mut waiting: Vec<&Claim> = claims.iter().map(AsRef::as_ref).collect();
        while !waiting.is_empty() {
            match self.round(event, &waiting).await {
                Ok(ClaimRound { answered, later }) => {
                    let told = |(id, answer): (_, Answer)| (id, answer.map_err(Failure::Refused));
                    answers.extend(answered.into_iter().map(told));
                    waiting = later;
                    if !self.is_in_time(began) {
                        answers.extend(waiting.iter().map(|claim| (claim.id(), Err(late()))));
                        break;
                    }
                }
                Err(error) => {
                    answers.extend(self.one_by_one(event, &waiting, error, began).await);
                    break;
                }
            }
        }
        let answer =
            |claim: &Arc<Claim>| answers.remove(&claim.id()).expect("each round answers its first claim");
        claims.iter().map(answer).collect()
    }
}

impl Claiming {
    async fn round<'c>(&self, event: EventId, claims: &[&'c Claim]) -> Result<ClaimRound<'c>, urr_db::Error> {
        transaction!(self.db, "tickets.hold", async |tx: &mut Tx<'_>| {
            let (over, open): (Vec<_>, Vec<_>) = by_end_of_sale(claims, self.clock.now());
            let mut round = Batch { event }.round(tx, &open).await?;
            round.answered.extend(over);
            Ok::<_, urr_db::Error>(round)
        })
    }

    /// After a failed round. If a single claim may be the cause, for example because another
    /// transaction has locked its rows, runs the claims one by one until the deadline.
    async fn one_by_one(
        &self,
        event: EventId,
        claims: &[&Claim],
        error: urr_db::Error,
        began: Duration,
    ) -> Vec<(ReservationId, Result<Reservation, Failure>)> {
        let one_of_them = error.is_blocked() || matches!(error.kind(), Kind::Constraint | Kind::Bug);
        let failure = Failure::from(error);
        let mut answers = Vec::with_capacity(claims.len());
        for claim in claims {
            let answer = if !one_of_them || claims.len() == 1 {
                Err(failure.clone())
            } else if self.is_in_time(began) {
                let alone = self.round(event, &[claim]).await.map_err(Failure::from);
                alone.and_then(|mut alone| Ok(alone.answered.remove(0).1?))
            } else {
                // It was not tried, so the error of the batch is not its own.
                Err(late())
            };
            answers.push((claim.id(), answer));
        }
        answers
    }

    fn is_in_time(&self, began: Duration) -> bool {
        self.clock.ticks().saturating_sub(began) < Self::PATIENCE
    }
}

fn late() -> Failure {
    Failure::unavailable(BatchError::Late)
}

type Answer = Result<Reservation, Error>;

/// Answers of one round, and the claims left for the next one.
struct ClaimRound<'c> {
    answered: Vec<(ReservationId, Answer)>,
    later: Vec<&'c Claim>,
}

/// A batch of claims of one event.
#[derive(Clone, Copy)]
struct Batch {
    event: EventId,
}

impl Batch {
    /// Rejects claims for taken seats before anything is written. Of the others, makes those that
    /// do not conflict with an earlier one.
    async fn round<'c>(self, tx: &mut Tx<'_>, claims: &[&'c Claim]) -> Result<ClaimRound<'c>, urr_db::Error> {
        // One time for the whole batch: a hold has expired for all of its claims or for none.
        let now = claims.iter().map(|claim| claim.reservation.created_at).min();
        let Some(now) = now else { return Ok(ClaimRound { answered: Vec::new(), later: Vec::new() }) };
        let seen = self.look(tx, claims, now).await?;
        let (free, beaten): (Vec<_>, Vec<_>) =
            claims.iter().partition(|claim| among(claim, &seen.taken).is_empty());
        let refused =
            |claim: &Claim| (claim.id(), Err(Error::SeatsTaken { seats: among(claim, &seen.taken) }));
        let mut answered: Vec<_> = beaten.into_iter().map(refused).collect();
        let (apart, later) = apart(free);
        answered.extend(self.make(tx, &apart, &seen, now).await?);
        Ok(ClaimRound { answered, later })
    }

    /// Makes claims that do not conflict with each other. Locks are taken in the global order:
    /// buyers, seats, new rows. A second round in the same transaction would lock its buyers after
    /// the seats of the first and break that order.
    async fn make(
        self,
        tx: &mut Tx<'_>,
        claims: &[&Claim],
        seen: &SeatStates,
        now: Timestamp,
    ) -> Result<Vec<(ReservationId, Answer)>, urr_db::Error> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let counted = self.count_in(tx, claims).await?;
        let is_counted = |claim: &&Claim| counted.contains(&claim.user());
        let (within, beyond): (Vec<&Claim>, Vec<&Claim>) = claims.iter().copied().partition(is_counted);
        let beyond: Vec<UserId> = beyond.into_iter().map(Claim::user).collect();
        let held = store::held_by(tx, self.event, &beyond).await?;
        let claimed = self.claim(tx, &within, seen, now).await?;
        let mut answers: Vec<(&Claim, Answer)> = Vec::with_capacity(claims.len());
        for claim in claims {
            let answer = match held.get(&claim.user()) {
                Some(held) => Err(Error::UserLimit { max: claim.max_seats_per_user, held: *held }),
                None => seated(claim, &claimed),
            };
            answers.push((claim, answer));
        }
        let kept = self.keep(tx, &answers).await?;
        for (claim, answer) in &mut answers {
            if answer.as_ref().is_ok_and(|new| !kept.contains(&new.id)) {
                // The caller then looks the key up and returns that reservation. If it is gone by
                // then, a retry finds the key unused.
                *answer = Err(Error::Common(CommonError::Unavailable));
            }
            if answer.is_err() && is_counted(claim) {
                self.give_back(tx, claim, &claimed).await?;
            }
        }
        Ok(answers.into_iter().map(|(claim, answer)| (claim.id(), answer)).collect())
    }

    /// Reads the state of the requested seats.
    async fn look(
        self,
        tx: &mut Tx<'_>,
        claims: &[&Claim],
        now: Timestamp,
    ) -> Result<SeatStates, urr_db::Error> {
        let seats: Vec<SeatId> = claims.iter().flat_map(|claim| claim.plan.seat_ids()).collect();
        store::look(tx, self.event, &seats, now).await
    }

    /// Adds the seats to the buyers' counts. Returns the buyers who stay within the limit.
    async fn count_in(self, tx: &mut Tx<'_>, claims: &[&Claim]) -> Result<HashSet<UserId>, urr_db::Error> {
        let max = claims.first().map_or(0, |claim| claim.max_seats_per_user);
        let mut buyers: Vec<_> = claims.iter().map(|claim| (claim.user(), claim.plan.seat_count())).collect();
        buyers.sort_unstable();
        store::count_in(tx, self.event, &buyers, max).await
    }

    /// Claims the seats. Returns those that were free, with their fences.
    async fn claim(
        self,
        tx: &mut Tx<'_>,
        claims: &[&Claim],
        seen: &SeatStates,
        now: Timestamp,
    ) -> Result<Vec<(SeatId, i64)>, urr_db::Error> {
        let mut wanted: Vec<Wanted> = claims.iter().flat_map(|claim| claim.wanted()).collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        wanted.sort_unstable_by_key(|wanted| wanted.seat);
        let mut claimed = store::claim(tx, self.event, &wanted, seen, now).await?;
        claimed.sort_unstable();
        Ok(claimed)
    }

    /// Inserts the reservations of complete claims and their outbox messages. A claim that is not
    /// in the result was rejected: its idempotency key is already used.
    async fn keep(
        self,
        tx: &mut Tx<'_>,
        answers: &[(&Claim, Answer)],
    ) -> Result<HashSet<ReservationId>, urr_db::Error> {
        let new = answers.iter().filter_map(|(claim, answer)| {
            let new = answer.as_ref().ok()?;
            Some(NewReservationRow {
                new,
                card: &claim.card,
                gate_owner: claim.owner,
                key: claim.key.as_deref(),
            })
        });
        let kept = store::insert(tx, &new.collect::<Vec<_>>()).await?;
        let told = answers
            .iter()
            .map(|(claim, _)| claim)
            .filter(|claim| kept.contains(&claim.id()))
            .map(|claim| &claim.news);
        outbox::append_all(tx, told).await?;
        Ok(kept)
    }

    async fn give_back(
        self,
        tx: &mut Tx<'_>,
        claim: &Claim,
        claimed: &[(SeatId, i64)],
    ) -> Result<(), urr_db::Error> {
        for seat in &claim.plan.seats {
            if let Some(fence) = fence(claimed, seat.id) {
                let freed = rows::free(tx, self.event, seat.id, fence, claim.reservation.id).await?;
                debug_assert!(freed, "this transaction has just claimed the seat with this fence");
            }
        }
        rows::count_out(tx, self.event, claim.user(), claim.plan.seat_count()).await
    }
}

/// Splits off the claims whose sale ended while they were queued, with their error.
fn by_end_of_sale<'c>(
    claims: &[&'c Claim],
    now: Timestamp,
) -> (Vec<(ReservationId, Answer)>, Vec<&'c Claim>) {
    let (mut over, mut open) = (Vec::new(), Vec::with_capacity(claims.len()));
    for claim in claims.iter().copied() {
        match rules::check_not_over(claim.sale_end_at, now) {
            Ok(()) => open.push(claim),
            Err(ended) => over.push((claim.id(), Err(ended))),
        }
    }
    (over, open)
}

/// Splits claims into those that share no buyer and no seat with an earlier claim, and the rest.
/// The seats of a deferred claim count as wanted, so that later claims do not overtake it.
fn apart(claims: Vec<&Claim>) -> (Vec<&Claim>, Vec<&Claim>) {
    let (mut users, mut seats) = (HashSet::new(), HashSet::new());
    claims.into_iter().partition(|claim| {
        let is_new = users.insert(claim.user());
        // Non-short-circuiting: all seats count as wanted even if the first one already is.
        is_new
            & (claim.plan.seats.iter().filter(|seat| seats.insert(seat.id)).count() == claim.plan.seats.len())
    })
}

/// Returns the seats of the claim that are taken.
fn among(claim: &Claim, taken: &HashSet<SeatId>) -> Vec<SeatId> {
    claim.plan.seats.iter().map(|seat| seat.id).filter(|seat| taken.contains(seat)).collect()
}

/// Returns the reservation with its seats, or an error with the seats that others hold.
fn seated(claim: &Claim, claimed: &[(SeatId, i64)]) -> Result<Reservation, Error> {
    let mut new = claim.reservation.clone();
    let mut taken = Vec::new();
    for seat in &claim.plan.seats {
        match fence(claimed, seat.id) {
            Some(fence) => new.seats.push(rules::reserved(seat, fence)),
            None => taken.push(seat.id),
        }
    }
    if taken.is_empty() { Ok(new) } else { Err(Error::SeatsTaken { seats: taken }) }
}

fn fence(claimed: &[(SeatId, i64)], seat: SeatId) -> Option<i64> {
    let at = claimed.binary_search_by_key(&seat, |(claimed, _)| *claimed).ok()?;
    Some(claimed[at].1)
}
