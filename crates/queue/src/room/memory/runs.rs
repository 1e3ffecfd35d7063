//! Records when a process was serving occupied rooms, so that the next process can exclude the gaps
//! from idle times.

use std::{
    iter::once,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use urr_db::{Db, Error, Row, Tx, statements, transaction};
use urr_kernel::Timestamp;

use super::Keeper;
use crate::journal::Unwritten;

/// Runs are deleted after this time. Nothing in a room lasts longer than a day.
const KEPT: Duration = Duration::from_hours(48);
/// More runs than can begin in that time: a run ends after nine seconds without users at the
/// earliest.
const MOST: i64 = 20_000;
/// A run ends after this many times the longest gap without an update.
const MISSED: u32 = 3;

statements! {
    /// Extends a run, or inserts a new one.
    SEEN = "
        insert into runs (began_at, seen_at) values ($1, $2)
        on conflict (began_at) do update set seen_at = excluded.seen_at";

    LATEST = "select began_at, seen_at from runs order by began_at desc limit $1";

    /// Deletes runs that ended before a given time.
    FORGET = "delete from runs where seen_at < $1";
}

/// A period in which a process served an occupied room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    began: Timestamp,
    seen: Timestamp,
}

/// A period in which none did, or all rooms were empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Absence {
    from: Timestamp,
    pub(super) until: Timestamp,
}

impl Absence {
    /// How much of it came after `last`.
    pub(super) fn after(&self, last: Option<Timestamp>) -> Duration {
        self.until.since(last.map_or(self.from, |last| last.max(self.from)))
    }
}

/// Runs of this process and of earlier ones.
pub(super) struct Runs {
    /// Interval between updates of the current run.
    every: Duration,
    began: Timestamp,
    /// `None` while all rooms are empty.
    current: Mutex<Option<Run>>,
}

impl Runs {
    pub(super) fn begin(every: Duration, began: Timestamp) -> Self {
        Self { every, began, current: Mutex::new(None) }
    }

    /// Periods without a run until now, in order.
    pub(super) async fn absences(&self, db: &Db) -> Result<Vec<Absence>, Error> {
        let run = |row: &Row<'_>| Ok(Run { began: row.get(0)?, seen: row.get(1)? });
        let mut runs: Vec<Run> =
            db.read("queue.runs", async |tx: &mut Tx<'_>| tx.all(&LATEST, &[&MOST], run).await).await?;
        runs.reverse();
        Ok(absences(&runs, self.began))
    }

    /// Extends the current run. A failed write is harmless: the next process excludes a few seconds
    /// more from idle times.
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
                "cannot record that the waiting rooms are being served; idle timeouts after a restart are a few seconds longer"
            );
        }
    }

    /// The run to write now, if one is due.
    fn due(&self, now: Timestamp) -> Option<Run> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let run = match *current {
            Some(run) if now >= run.seen && now < run.seen.after(self.every) => return None,
            Some(run) if now >= run.seen && now < run.seen.after(self.every * MISSED) => {
                Run { seen: now, ..run }
            }
            // The rooms were empty, the process was frozen, or its clock went back.
            Some(_) => Run { began: now, seen: now },
            None => Run { began: self.began.min(now), seen: now },
        };
        *current = Some(run);
        Some(run)
    }
}

/// Gaps between runs, and between the last run and now.
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
    fn time_between_runs_is_an_absence() {
        let absence = |from, until| Absence { from: at(from), until: at(until) };
        assert_eq!(absences(&[], at(9)), [], "time before the first run is unknown");
        assert_eq!(absences(&[run(0, 5), run(20, 30)], at(32)), [absence(5, 20), absence(30, 32)]);
        // A clock went back: the runs overlap.
        assert_eq!(absences(&[run(0, 50), run(20, 30)], at(60)), [absence(50, 60)]);
    }

    #[test]
    fn time_before_the_last_step_is_no_absence() {
        let absence = Absence { from: at(10), until: at(100) };
        let after = |last: Option<u64>| absence.after(last.map(at)).as_secs();
        assert_eq!([None, Some(5), Some(90), Some(200)].map(after), [90, 90, 10, 0]);
    }
}
