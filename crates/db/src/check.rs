//! The test that every domain has: all of its statements prepared on both engines.

use std::error::Error as _;

use crate::{Db, Sql};

/// Prepares every statement on each database and compares how many parameters it takes and how many columns it gives.
/// The error lists everything that is wrong, a line each. A test gives it the migrated SQLite database and, where there
/// is a server, the PostgreSQL one.
pub async fn check_statements(databases: &[&Db], statements: &[&Sql]) -> Result<(), String> {
    let mut wrong = Vec::new();
    for sql in statements {
        let mut shapes = Vec::new();
        for db in databases {
            let engine = db.engine();
            match db.shape(sql).await {
                None => {}
                Some(Ok(shape)) => shapes.push((engine, shape)),
                Some(Err(error)) => {
                    let why = error.source().map(ToString::to_string).unwrap_or_default();
                    wrong.push(format!("{} on {engine:?}: {error}: {why}", sql.name()));
                }
            }
        }
        for pair in shapes.windows(2) {
            let [(one, a), (other, b)] = pair else { continue };
            if a != b {
                wrong.push(format!(
                    "{}: {one:?} takes {} parameters and gives {} columns, {other:?} {} and {}",
                    sql.name(),
                    a.0,
                    a.1,
                    b.0,
                    b.1
                ));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
