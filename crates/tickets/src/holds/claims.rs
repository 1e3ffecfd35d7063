//! Claims of the same event that come at the same time are made together: one transaction, a handful of statements and one sync for
//! all of them. Each is still made whole or not at all: what a claim got before it was refused is given back in the same transaction.

use std::{collections::HashSet, sync::Arc};

use urr_contracts::tickets::{Error, Reservation};
use urr_db::{Db, Tx, outbox, transaction};
use urr_jobs::Work;
use urr_kernel::{EventId, ReservationId, SeatId, UserId};

use super::{
    rules::{self, Plan},
    store::{self, Json, Kept, Wanted},
};
use crate::{gate::Owner, trouble::Trouble};

/// Claims in one transaction: a few milliseconds of work, so that nobody's write waits long for it.
const MAX_TOGETHER: usize = 64;

/// One attempt to claim, with everything it needs: what can be prepared is, for one transaction at a time writes on SQLite.
#[derive(Clone)]
pub(crate) struct Claim {
    pub(crate) reservation: Reservation,
    pub(crate) card: Json,
    pub(crate) plan: Plan,
    pub(crate) owner: Owner,
    pub(crate) max_seats_per_user: u32,
    pub(crate) key: Option<String>,
    /// What the world is told.
    pub(crate) news: outbox::Message,
}

impl Claim {
    fn user(&self) -> UserId {
        self.reservation.user
    }

    fn wanted(&self) -> impl Iterator<Item = Wanted> {
        let Reservation { id, expires_at, .. } = self.reservation;
        self.plan.seats.iter().map(move |seat| Wanted { seat: seat.id, reservation: id, expires_at })
    }
}

/// How seats are claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By one conditional statement.
    Conditional,
    /// What it must never become: the negative control of the race.
    #[cfg(test)]
    CheckThenAct,
}

/// Makes claims in the database.
pub(crate) struct Claiming {
    pub(crate) db: Db,
    pub(crate) way: Way,
}

impl Work for Claiming {
    type Key = EventId;
    type Job = Arc<Claim>;
    type Answer = Result<Reservation, Trouble>;

    const NAME: &'static str = "tickets.hold";
    /// Some seconds' worth.
    const MAX_WAITING: usize = 20_000;
    /// While one batch is synced to the disk the next one can begin.
    const LANES: usize = 2;

    /// In a batch nobody meets themselves or a rival, and one limit holds for all. Whoever does meet somebody waits for the next, and
    /// nobody overtakes them meanwhile.
    fn choose<T>(waiting: &mut Vec<(Arc<Claim>, T)>) -> Vec<(Arc<Claim>, T)> {
        let max = waiting.first().map(|(first, _)| first.max_seats_per_user);
        let (mut users, mut seats) = (HashSet::new(), HashSet::new());
        let mut chosen = 0;
        let batch = waiting.extract_if(.., |(claim, _)| {
            if chosen == MAX_TOGETHER {
                return false;
            }
            let stranger = users.insert(claim.user());
            // All of its seats count as wanted, also when the first one is already.
            let new_seats = claim.plan.seats.iter().filter(|seat| seats.insert(seat.id)).count();
            let alone = new_seats == claim.plan.seats.len();
            let fits = stranger && alone && Some(claim.max_seats_per_user) == max;
            chosen += usize::from(fits);
            fits
        });
        batch.collect()
    }

    async fn run(&self, event: EventId, claims: Vec<Arc<Claim>>) -> Vec<Result<Reservation, Trouble>> {
        let made = transaction!(self.db, "tickets.hold", async |tx: &mut Tx<'_>| {
            Batch::new(self.way, event, &claims).make(tx).await
        });
        match made {
            Ok(answers) => answers.into_iter().map(|answer| answer.map_err(Trouble::Refused)).collect(),
            Err(error) => {
                let error = Arc::new(error);
                claims.iter().map(|_| Err(Trouble::Db(Arc::clone(&error)))).collect()
            }
        }
    }
}

/// Claims of one event, by buyers who all differ, for seats that all differ.
struct Batch<'c> {
    way: Way,
    event: EventId,
    claims: &'c [Arc<Claim>],
}

impl<'c> Batch<'c> {
    fn new(way: Way, event: EventId, claims: &'c [Arc<Claim>]) -> Self {
        Self { way, event, claims }
    }

    /// Rows are locked in the order that holds everywhere: buyers, then seats, then what is new.
    async fn make(&self, tx: &mut Tx<'_>) -> Result<Vec<Result<Reservation, Error>>, urr_db::Error> {
        let counted = self.count_in(tx).await?;
        let claimed = self.claim(tx, &counted).await?;
        let mut answers = Vec::with_capacity(self.claims.len());
        for claim in self.claims {
            answers.push(if counted.contains(&claim.user()) {
                seated(claim, &claimed)
            } else {
                let held = store::lock_buyer(tx, self.event, claim.user()).await?;
                Err(Error::UserLimit { max: claim.max_seats_per_user, held })
            });
        }
        let kept = self.keep(tx, &answers).await?;
        for (claim, answer) in self.claims.iter().zip(&mut answers) {
            if answer.as_ref().is_ok_and(|new| !kept.contains(&new.id)) {
                // The replay answers instead. Should the reservation be gone by then, a second try finds the key free.
                *answer = Err(Error::Unavailable);
            }
            if answer.is_err() && counted.contains(&claim.user()) {
                self.give_back(tx, claim, &claimed).await?;
            }
        }
        Ok(answers)
    }

    /// Who may have so many seats more.
    async fn count_in(&self, tx: &mut Tx<'_>) -> Result<HashSet<UserId>, urr_db::Error> {
        let mut buyers: Vec<_> =
            self.claims.iter().map(|claim| (claim.user(), claim.plan.seat_count())).collect();
        buyers.sort_unstable();
        let max = self.claims.first().map_or(0, |claim| claim.max_seats_per_user);
        store::count_in(tx, self.event, &buyers, max).await
    }

    /// The seats that were free, with their fences.
    async fn claim(
        &self,
        tx: &mut Tx<'_>,
        counted: &HashSet<UserId>,
    ) -> Result<Vec<(SeatId, i64)>, urr_db::Error> {
        let claims = self.claims.iter().filter(|claim| counted.contains(&claim.user()));
        let mut wanted: Vec<Wanted> = claims.clone().flat_map(|claim| claim.wanted()).collect();
        wanted.sort_unstable_by_key(|wanted| wanted.seat);
        // A hold has run out for all of them, or for none.
        let Some(now) = claims.map(|claim| claim.reservation.created_at).min() else { return Ok(Vec::new()) };
        let mut claimed = match self.way {
            Way::Conditional => store::claim(tx, self.event, &wanted, now).await?,
            #[cfg(test)]
            Way::CheckThenAct => crate::race::check_then_act(tx, self.event, &wanted).await?,
        };
        claimed.sort_unstable();
        Ok(claimed)
    }

    /// Writes down and tells what was claimed whole. What is not among the answer was refused: the buyer has used the key before.
    async fn keep(
        &self,
        tx: &mut Tx<'_>,
        answers: &[Result<Reservation, Error>],
    ) -> Result<HashSet<ReservationId>, urr_db::Error> {
        let new = self.claims.iter().zip(answers).filter_map(|(claim, answer)| {
            let new = answer.as_ref().ok()?;
            Some(Kept { new, card: &claim.card, gate_owner: claim.owner, key: claim.key.as_deref() })
        });
        let kept = store::insert(tx, &new.collect::<Vec<_>>()).await?;
        let told =
            self.claims.iter().filter(|claim| kept.contains(&claim.reservation.id)).map(|claim| &claim.news);
        outbox::append_all(tx, told).await?;
        Ok(kept)
    }

    async fn give_back(
        &self,
        tx: &mut Tx<'_>,
        claim: &Claim,
        claimed: &[(SeatId, i64)],
    ) -> Result<(), urr_db::Error> {
        for seat in &claim.plan.seats {
            if let Some(fence) = fence(claimed, seat.id) {
                store::free(tx, self.event, seat.id, fence, claim.reservation.id).await?;
            }
        }
        store::count_out(tx, self.event, claim.user(), claim.plan.seat_count()).await
    }
}

/// The reservation with its seats, or which of them others have.
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
