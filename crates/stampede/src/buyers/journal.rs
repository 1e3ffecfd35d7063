//! What the buyers wrote down. A line is on file before the step it tells of counts, as a careful client would keep it.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use urr_kernel::{ReservationId, SeatId, Timestamp, UserId};

/// One step of one request. `key` is the request's idempotency key and names it for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// A buyer is about to ask for seats.
    Asking {
        /// Which request.
        key: String,
        /// Whose.
        user: UserId,
        /// For which seats.
        seats: Vec<SeatId>,
    },
    /// The server promised them.
    Held {
        /// Which request.
        key: String,
        /// What the server calls it.
        reservation: ReservationId,
        /// The promised seats with their fences.
        seats: Vec<(SeatId, i64)>,
        /// Until when.
        expires_at: Timestamp,
    },
    /// The server said no, and that nothing was done.
    Refused {
        /// Which request.
        key: String,
        /// Why.
        code: String,
    },
    /// A buyer is about to give a hold back.
    Releasing {
        /// Which request.
        key: String,
    },
    /// The server promised that the seats are free again.
    Released {
        /// Which request.
        key: String,
    },
}

impl Step {
    /// Which request the step belongs to.
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

/// A step with its time on the client's clock, which is the server's too: they share a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When it was written.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub step: Step,
}

/// One client's journal, open for appending.
#[derive(Debug)]
pub struct Journal(File);

impl Journal {
    /// The journal of client number `client`, in `dir`.
    pub fn create(dir: &Path, client: usize) -> io::Result<Self> {
        Ok(Self(File::options().create(true).append(true).open(path(dir, client))?))
    }

    /// Writes one line. One write, so a line is there whole or not at all.
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

    /// The lines that were added since the last call.
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
    fn lines_are_read_once_and_whole() {
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
