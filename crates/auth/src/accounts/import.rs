//! Import of accounts from another system, with their password hashes. Only available on the
//! command line.
//!
//! All lines are validated before anything is written. Addresses that already have an account are
//! skipped, so an interrupted import can simply be run again.

use std::io::{self, BufRead, Read as _, Seek};

use serde::Deserialize;
use urr_contracts::auth::{Account, AccountStatus, Error, Language};
use urr_db::{Tx, transaction};
use urr_kernel::Role;

use super::{rules, store};
use crate::{Failure, HashCost, passwords, service::Service};

/// Accounts per transaction, as many as for re-encryption.
const BATCH: usize = 100;

/// Maximum line length in bytes. An account has an address of 254, a name of 400, a phone number
/// and a hash of about 100.
const MAX_LINE: u64 = 8 * 1024;

/// Maximum number of invalid lines that are reported.
const MAX_BAD: usize = 20;

/// One line of the file, a JSON object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line {
    email: String,
    name: String,
    phone: Option<String>,
    password_hash: String,
    #[serde(default)]
    email_verified: bool,
}

/// A validated, normalised account to create.
struct New {
    email: String,
    name: String,
    phone: Option<String>,
    password_hash: String,
    email_verified: bool,
}

/// The result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Number of accounts created.
    pub made: u64,
    /// Number of lines whose address already had an account.
    pub skipped: u64,
}

/// An invalid line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Line number, from 1.
    pub number: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// Why the import failed.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Some lines are invalid; nothing was imported.
    #[error("some lines are not valid accounts")]
    BadLines(Vec<BadLine>),
    /// The file cannot be read.
    #[error("cannot read the file")]
    Unreadable(#[from] io::Error),
    /// The database failed; accounts imported before remain.
    #[error("cannot store the accounts")]
    NotKept(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Imports the accounts in a file. The file is read twice: to validate every line, then to write.
pub(crate) async fn import(
    service: &Service,
    file: &mut (impl BufRead + Seek),
) -> Result<Imported, ImportError> {
    let cost = service.settings.hashing.cost;
    check(file, cost)?;
    file.rewind()?;
    let (mut number, mut all, mut batch) = (0, Imported::default(), Vec::new());
    loop {
        let read = next(file, &mut number, cost)?;
        let over = read.is_none();
        match read {
            Some(Ok(new)) => batch.push(new),
            // The file changed between the two passes.
            Some(Err(bad)) => return Err(ImportError::BadLines(vec![bad])),
            None => {}
        }
        if over || batch.len() == BATCH {
            let kept = keep(service, &batch).await.map_err(|trouble| ImportError::NotKept(trouble.into()))?;
            all = Imported { made: all.made + kept.made, skipped: all.skipped + kept.skipped };
            batch.clear();
        }
        if over {
            return Ok(all);
        }
    }
}

/// Validates every line. The error lists the first few invalid ones.
fn check(file: &mut impl BufRead, cost: HashCost) -> Result<(), ImportError> {
    let (mut number, mut bad) = (0, Vec::new());
    while let Some(line) = next(file, &mut number, cost)? {
        bad.extend(line.err());
        if bad.len() == MAX_BAD {
            break;
        }
    }
    if bad.is_empty() { Ok(()) } else { Err(ImportError::BadLines(bad)) }
}

/// The next line that is not empty.
fn next(
    file: &mut impl BufRead,
    number: &mut u64,
    cost: HashCost,
) -> io::Result<Option<Result<New, BadLine>>> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        if file.by_ref().take(MAX_LINE).read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        *number += 1;
        let is_whole = bytes.ends_with(b"\n") || (bytes.len() as u64) < MAX_LINE;
        if !is_whole {
            // Skip the rest of the line, so that it is not parsed as further lines.
            file.skip_until(b'\n')?;
        }
        if !bytes.trim_ascii().is_empty() {
            let new = if is_whole { parse(&bytes, cost) } else { Err("the line is too long".to_owned()) };
            return Ok(Some(new.map_err(|reason| BadLine { number: *number, reason })));
        }
    }
}

fn parse(line: &[u8], cost: HashCost) -> Result<New, String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| {
        // The parser sees each line as a document, so it always reports line 1.
        error.to_string().replace(" at line 1 column ", ", at character ")
    })?;
    let said = |error: Error| match error {
        Error::Invalid { field, reason } => format!("{field}: {reason}"),
        other => other.to_string(),
    };
    passwords::check_import(&line.password_hash, cost).map_err(|reason| format!("passwordHash: {reason}"))?;
    Ok(New {
        email: rules::email(&line.email).map_err(said)?,
        name: rules::name(&line.name).map_err(said)?,
        phone: line.phone.as_deref().map(rules::phone).transpose().map_err(said)?.flatten(),
        password_hash: line.password_hash,
        email_verified: line.email_verified,
    })
}

/// Creates accounts in one transaction. No consent is recorded, because none was given here.
async fn keep(service: &Service, batch: &[New]) -> Result<Imported, Failure> {
    let now = service.clock.now();
    transaction!(service.db, "auth.import", async |tx: &mut Tx<'_>| {
        let mut kept = Imported::default();
        for new in batch {
            let account = Account {
                id: service.ids.next(),
                email: new.email.clone(),
                email_verified: new.email_verified,
                name: new.name.clone(),
                phone: new.phone.clone(),
                role: Role::User,
                status: AccountStatus::Active,
                language: Language::default(),
                marketing: false,
                second_factor: false,
                identity_verified_at: None,
                created_at: now,
            };
            let keys = (&service.vault, &service.ids);
            let made = store::insert(keys, tx, &account, Some(&new.password_hash)).await?;
            if made { kept.made += 1 } else { kept.skipped += 1 }
        }
        Ok::<_, Failure>(kept)
    })
}
