//! When these rooms were in some process's memory, so that the next process knows for how long nobody could show a sign of life.

use std::{
    iter::once,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use urr_db::{Db, Error, Row, Tx, statements, transaction};
use urr_kernel::Timestamp;

use super::Keeper;
use crate::journal::Unwritten;

/// Nothing in a room lasts longer than a day, so neither does what was away before.
const KEPT: Duration = Duration::from_hours(48);
/// More than begin in that time: one ends after nine seconds of nobody at the earliest.
const MOST: i64 = 20_000;
/// A run that was not heard of for so many times the longest gap has ended.
const MISSED: u32 = 3;

statements! {
    /// A run goes on, or begins.
    SEEN = "
        insert into runs (began_at, seen_at) values ($1, $2)
        on conflict (began_at) do update set seen_at = excluded.seen_at";

    /// The latest runs, newest first.
    LATEST = "select began_at, seen_at from runs order by began_at desc limit $1";

    /// Forgets runs that ended before a given time.
    FORGET = "delete from runs where seen_at < $1";
}

/// A time in which somebody was in a room and a process looked after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    began: Timestamp,
    seen: Timestamp,
}

/// A time in which no process did, or nobody was in any room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Absence {
    from: Timestamp,
    pub(super) until: Timestamp,
}

impl Absence {
    /// How much of it was after something that happened.
    pub(super) fn after(&self, last: Option<Timestamp>) -> Duration {
        self.until.since(last.map_or(self.from, |last| last.max(self.from)))
    }
}

/// Runs of this process and of those before it.
pub(super) struct Runs {
    /// How often it is written down that the process is here.
    every: Duration,
    began: Timestamp,
    /// Nothing until somebody is in a room.
    current: Mutex<Option<Run>>,
}

impl Runs {
    /// A process begins.
    pub(super) fn begin(every: Duration, began: Timestamp) -> Self {
        Self { every, began, current: Mutex::new(None) }
    }

    /// When nobody could show a sign of life until now, in order.
    pub(super) async fn absences(&self, db: &Db) -> Result<Vec<Absence>, Error> {
        let run = |row: &Row<'_>| Ok(Run { began: row.get(0)?, seen: row.get(1)? });
        let mut runs: Vec<Run> =
            db.read("queue.runs", async |tx: &mut Tx<'_>| tx.all(&LATEST, &[&MOST], run).await).await?;
        runs.reverse();
        Ok(absences(&runs, self.began))
    }

    /// Somebody is in a room, and this process looks after it. That is written down every few seconds; if it cannot be, the next process
    /// gives people some seconds more.
    pub(super) async fn here(&self, db: &Db, keeper: &Keeper, now: Timestamp) {
        let Some(run) = self.due(now) else { return };
        let written: Result<(), Unwritten> = transaction!(db, "queue.here", async |tx: &mut Tx<'_>| {
            if !keeper.is_ours(tx).await? {
                return Err(Unwritten::Foreign);
            }
            tx.execute(&SEEN, &[&run.began, &run.seen]).await?;
            if run.began == run.seen {
                tx.execute(&FORGET, &[&now.before(KEPT)]).await?;
            }
            Ok(())
        });
        if let Err(error) = written {
            tracing::debug!(
                error = urr_telemetry::chain(&error),
                "it is not written down that the rooms are here"
            );
        }
    }

    /// What is to be written down now, if anything.
    fn due(&self, now: Timestamp) -> Option<Run> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let run = match *current {
            Some(run) if now >= run.seen && now < run.seen.after(self.every) => return None,
            Some(run) if now >= run.seen && now < run.seen.after(self.every * MISSED) => {
                Run { seen: now, ..run }
            }
            // Nobody was here, or the process stood still, or its clock was put back.
            Some(_) => Run { began: now, seen: now },
            None => Run { began: self.began.min(now), seen: now },
        };
        *current = Some(run);
        Some(run)
    }
}

/// What is between runs, and between the last of them and now.
fn absences(runs: &[Run], now: Timestamp) -> Vec<Absence> {
    let (mut absences, mut seen) = (Vec::new(), None);
    for run in runs.iter().copied().chain(once(Run { began: now, seen: now })) {
        absences.extend(seen.filter(|seen| *seen < run.began).map(|from| Absence { from, until: run.began }));
        seen = seen.max(Some(run.seen));
    }
    absences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(1_790_000_000_000_000).after(Duration::from_secs(seconds))
    }

    fn run(began: u64, seen: u64) -> Run {
        Run { began: at(began), seen: at(seen) }
    }

    #[test]
    fn nobody_was_there_between_two_runs() {
        let absence = |from, until| Absence { from: at(from), until: at(until) };
        assert_eq!(absences(&[], at(9)), [], "what was before the first is not known");
        assert_eq!(absences(&[run(0, 5), run(20, 30)], at(32)), [absence(5, 20), absence(30, 32)]);
        // A clock was put back: the runs are on top of each other.
        assert_eq!(absences(&[run(0, 50), run(20, 30)], at(60)), [absence(50, 60)]);
    }

    #[test]
    fn what_happened_meanwhile_was_no_absence() {
        let absence = Absence { from: at(10), until: at(100) };
        let after = |last: Option<u64>| absence.after(last.map(at)).as_secs();
        assert_eq!([None, Some(5), Some(90), Some(200)].map(after), [90, 90, 10, 0]);
    }
}
