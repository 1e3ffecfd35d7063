//! Database errors, classified by what the caller should do about them.

use std::{borrow::Cow, error::Error as StdError, fmt};

use rusqlite::ErrorCode;
use tokio_postgres::error::SqlState;
use urr_kernel::{Failure, Refusal};

/// Classifies an [`Error`] by what the caller should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The database is unreachable, full, or did not answer in time. Nothing was changed: return
    /// 503 and let the client retry.
    Unavailable,
    /// A unique, foreign key, check or not-null constraint rejected the change.
    Constraint,
    /// Busy, deadlock or serialisation failure. Nothing was changed, and the same transaction may
    /// succeed now. [`transaction!`](crate::transaction) retries it; a caller that sees this kind
    /// has used up all attempts.
    Retry,
    /// The connection was lost during COMMIT: the change may or may not have been applied. Look it
    /// up by its idempotency key; never retry blindly.
    UnknownCommit,
    /// The code, a migration or the schema is wrong. A retry fails the same way.
    Bug,
}

impl Kind {
    /// The value of the `outcome` metric label.
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

/// A database error. `Display` says what was attempted; `source()` says why it failed.
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

    /// An error returned by SQLite while doing `what`.
    pub(crate) fn sqlite(what: impl Into<Cow<'static, str>>, source: rusqlite::Error) -> Self {
        let mut error = Self::new(sqlite_kind(&source), what);
        error.0.unique = source.sqlite_error().is_some_and(|e| SQLITE_UNIQUE.contains(&e.extended_code));
        error.because(source)
    }

    /// An error returned by PostgreSQL while doing `what`.
    pub(crate) fn postgres(what: impl Into<Cow<'static, str>>, source: tokio_postgres::Error) -> Self {
        let mut error = Self::new(postgres_kind(&source), what);
        error.0.unique = source.code() == Some(&SqlState::UNIQUE_VIOLATION);
        // The server is up: the statement timed out while waiting for row locks.
        error.0.blocked =
            [Some(&SqlState::LOCK_NOT_AVAILABLE), Some(&SqlState::QUERY_CANCELED)].contains(&source.code());
        error.because(source)
    }

    /// Overrides the kind where the caller knows more than the error code says.
    pub(crate) fn of_kind(mut self, kind: Kind) -> Self {
        self.0.kind = kind;
        self
    }

    /// What the caller should do about it.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Whether the caller should return 503 and invite a retry: nothing was changed.
    pub fn is_unavailable(&self) -> bool {
        matches!(self.0.kind, Kind::Unavailable | Kind::Retry)
    }

    /// Whether the statement timed out waiting for a row locked by another transaction.
    pub fn is_blocked(&self) -> bool {
        self.0.blocked
    }

    /// Whether a unique index or primary key already contained the value.
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
/// Plain `SQLITE_READONLY`: a write on a read-only connection, so a bug. The extended codes report
/// a problem of the disk or the file.
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
    // The first two characters are the class: 08 connection, 28 authentication, 3D no such
    // database, 53 out of resources, 57 operator intervention or time limit, 58 system error. 55P03
    // is our lock timeout, 25P03 our idle-in-transaction timeout, 25006 a server that became
    // read-only.
    match code.code() {
        "55P03" | "25P03" | "25006" => Kind::Unavailable,
        code => match code.get(..2) {
            Some("23") => Kind::Constraint,
            Some("08" | "28" | "3D" | "53" | "57" | "58") => Kind::Unavailable,
            _ => Kind::Bug,
        },
    }
}
/// After [`Kind::UnknownCommit`] a retry finds out whether the change was made.
impl<E: Refusal> From<Error> for Failure<E> {
    fn from(error: Error) -> Self {
        if error.is_unavailable() || error.kind() == Kind::UnknownCommit {
            Self::unavailable(error)
        } else {
            Self::internal(error)
        }
    }
}
