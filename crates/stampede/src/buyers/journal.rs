//! The journal of the buyers. A line is in the file before the client relies on it.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use urr_kernel::{ReservationId, SeatId, Timestamp, UserId};

/// One step of one request. `key` is its idempotency key and identifies it for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// A buyer is about to request seats.
    Asking {
        /// The request.
        key: String,
        /// The buyer.
        user: UserId,
        /// The seats.
        seats: Vec<SeatId>,
    },
    /// The server acknowledged the hold.
    Held {
        /// The request.
        key: String,
        /// The id of the reservation.
        reservation: ReservationId,
        /// The held seats with their fences.
        seats: Vec<(SeatId, i64)>,
        /// When the hold expires.
        expires_at: Timestamp,
    },
    /// The server refused the request without changing anything.
    Refused {
        /// The request.
        key: String,
        /// The error code.
        code: String,
    },
    /// A buyer is about to release a hold.
    Releasing {
        /// The request.
        key: String,
    },
    /// The server acknowledged the release.
    Released {
        /// The request.
        key: String,
    },
}

impl Step {
    /// The request that the step belongs to.
    pub fn key(&self) -> &str {
        match self {
            Self::Asking { key, .. }
            | Self::Held { key, .. }
            | Self::Refused { key, .. }
            | Self::Releasing { key }
            | Self::Released { key } => key,
        }
    }
}

/// A step with its time. Client and server share a machine, and so a clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When it was written.
    pub at: Timestamp,
    /// The step.
    #[serde(flatten)]
    pub step: Step,
}

/// One client's journal, open for appending.
#[derive(Debug)]
pub struct Journal(File);

impl Journal {
    /// Creates the journal of client number `client` in `dir`.
    pub fn create(dir: &Path, client: usize) -> io::Result<Self> {
        Ok(Self(File::options().create(true).append(true).open(path(dir, client))?))
    }

    /// Appends one line. It is one write, so a line is never partial.
    pub fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.0.write_all(&text)
    }
}

/// Reads journals as they grow, each line once.
#[derive(Debug)]
pub struct Reader {
    dir: PathBuf,
    read: Vec<usize>,
}

impl Reader {
    /// Reads the journals of this many clients.
    pub fn new(dir: &Path, clients: usize) -> Self {
        Self { dir: dir.to_owned(), read: vec![0; clients] }
    }

    /// The lines added since the last call.
    pub fn added(&mut self) -> io::Result<Vec<Line>> {
        let mut lines = Vec::new();
        for (client, read) in self.read.iter_mut().enumerate() {
            let text = fs::read(path(&self.dir, client))?;
            for line in text[*read..].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                lines.push(serde_json::from_slice(line)?);
            }
            *read = text.len();
        }
        Ok(lines)
    }
}

fn path(dir: &Path, client: usize) -> PathBuf {
    dir.join(format!("client-{client}.jsonl"))
}

#[cfg(test)]
mod tests {
    use urr_kernel::{Clock, Ids};

    use super::*;

    #[test]
    fn reader_returns_each_complete_line_once() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::fixed(Timestamp::from_micros(1_000));
        let ids = Ids::seeded(clock.clone(), 1);
        let asking = Step::Asking { key: "k".to_owned(), user: ids.next(), seats: vec![ids.next()] };
        let line = Line { at: clock.now(), step: asking };
        let mut journal = Journal::create(dir.path(), 0).unwrap();
        let mut reader = Reader::new(dir.path(), 1);
        journal.write(&line).unwrap();
        assert_eq!(reader.added().unwrap(), vec![line]);
        assert_eq!(reader.added().unwrap(), vec![]);
        journal.write(&Line { at: clock.now(), step: Step::Releasing { key: "k".to_owned() } }).unwrap();
        assert_eq!(reader.added().unwrap().len(), 1);
    }
}
