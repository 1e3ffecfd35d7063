//! What can go wrong, sorted by what the caller should do about it.

use std::{borrow::Cow, error::Error as StdError, fmt};

use rusqlite::ErrorCode;
use tokio_postgres::error::SqlState;

/// What to do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The database cannot be reached, is full, or did not answer in time. Nothing was changed: answer 503 and let the
    /// client come back.
    Unavailable,
    /// A unique, foreign key, check or not-null constraint refused the change.
    Constraint,
    /// Busy, deadlock or serialisation failure: nothing was changed and the same transaction may well succeed now.
    /// [`transaction!`](crate::transaction) runs it again; whoever sees this kind has run out of attempts.
    Retry,
    /// The connection was lost while COMMIT was on its way: the change may or may not be there. Look it up by its
    /// idempotency key; never run it again blindly.
    UnknownCommit,
    /// The code, a migration or the schema is wrong. Trying again gives the same.
    Bug,
}

impl Kind {
    /// As a metric label.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Constraint => "constraint",
            Self::Retry => "retry",
            Self::UnknownCommit => "unknown_commit",
            Self::Bug => "bug",
        }
    }
}

/// A failure of the database. `Display` says what was attempted; `source()` says why it failed.
#[derive(Debug)]
pub struct Error(Box<Inner>);

type Source = Box<dyn StdError + Send + Sync>;

#[derive(Debug)]
struct Inner {
    kind: Kind,
    unique: bool,
    blocked: bool,
    what: Cow<'static, str>,
    source: Option<Source>,
}

impl Error {
    pub(crate) fn new(kind: Kind, what: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner { kind, unique: false, blocked: false, what: what.into(), source: None }))
    }

    pub(crate) fn bug(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Bug, what)
    }

    pub(crate) fn unavailable(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Unavailable, what)
    }

    pub(crate) fn because(mut self, source: impl Into<Source>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// A failure of SQLite while doing `what`.
    pub(crate) fn sqlite(what: impl Into<Cow<'static, str>>, source: rusqlite::Error) -> Self {
        let mut error = Self::new(sqlite_kind(&source), what);
        error.0.unique = source.sqlite_error().is_some_and(|e| SQLITE_UNIQUE.contains(&e.extended_code));
        error.because(source)
    }

    /// A failure of PostgreSQL while doing `what`.
    pub(crate) fn postgres(what: impl Into<Cow<'static, str>>, source: tokio_postgres::Error) -> Self {
        let mut error = Self::new(postgres_kind(&source), what);
        error.0.unique = source.code() == Some(&SqlState::UNIQUE_VIOLATION);
        // A server that says so is there: several waits for rows have added up to the limit of a statement.
        error.0.blocked =
            [Some(&SqlState::LOCK_NOT_AVAILABLE), Some(&SqlState::QUERY_CANCELED)].contains(&source.code());
        error.because(source)
    }

    /// The same failure, of which the caller knows better whose fault it is.
    pub(crate) fn of_kind(mut self, kind: Kind) -> Self {
        self.0.kind = kind;
        self
    }

    /// What to do about it.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Whether the caller should answer 503 and invite another try: nothing was changed.
    pub fn is_unavailable(&self) -> bool {
        matches!(self.0.kind, Kind::Unavailable | Kind::Retry)
    }

    /// Whether somebody else had a row locked for longer than one may wait.
    pub fn is_blocked(&self) -> bool {
        self.0.blocked
    }

    /// Whether a unique index or primary key already held the value.
    pub fn is_unique_violation(&self) -> bool {
        self.0.unique
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.what)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// `SQLITE_CONSTRAINT_UNIQUE`, `SQLITE_CONSTRAINT_PRIMARYKEY`, `SQLITE_CONSTRAINT_ROWID`.
const SQLITE_UNIQUE: [i32; 3] = [2067, 1555, 2579];
/// `SQLITE_READONLY` without a reason: a write through a read-only connection. The ones with a reason are the disk's.
const SQLITE_READONLY: i32 = 8;

fn sqlite_kind(error: &rusqlite::Error) -> Kind {
    let Some(code) = error.sqlite_error() else { return Kind::Bug };
    match code.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Kind::Retry,
        ErrorCode::ConstraintViolation => Kind::Constraint,
        ErrorCode::ReadOnly if code.extended_code == SQLITE_READONLY => Kind::Bug,
        ErrorCode::DiskFull
        | ErrorCode::SystemIoFailure
        | ErrorCode::CannotOpen
        | ErrorCode::OutOfMemory
        | ErrorCode::PermissionDenied
        | ErrorCode::FileLockingProtocolFailed
        | ErrorCode::ReadOnly => Kind::Unavailable,
        _ => Kind::Bug,
    }
}

fn postgres_kind(error: &tokio_postgres::Error) -> Kind {
    let Some(code) = error.code() else {
        let lost = error.is_closed() || error.source().is_some_and(<dyn StdError>::is::<std::io::Error>);
        return if lost { Kind::Unavailable } else { Kind::Bug };
    };
    if [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE].contains(code) {
        return Kind::Retry;
    }
    // Of a class, the first two characters name the reason: 08 connection, 28 sign-in, 3D no such database, 53 out of
    // resources, 57 operator or time limit, 58 system. 55P03 is our lock time limit, 25P03 our idle time limit, 25006 a
    // server that has become read-only.
    match code.code() {
        "55P03" | "25P03" | "25006" => Kind::Unavailable,
        code => match code.get(..2) {
            Some("23") => Kind::Constraint,
            Some("08" | "28" | "3D" | "53" | "57" | "58") => Kind::Unavailable,
            _ => Kind::Bug,
        },
    }
}
