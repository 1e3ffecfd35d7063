//! The check that every domain's tests run: prepare all of its statements on both engines.

use std::error::Error as _;

use crate::{Db, Sql};

/// Prepares every statement on each database and compares the number of parameters and columns. The
/// error lists every mismatch, one per line. Pass the migrated SQLite database and, where a server
/// is available, the PostgreSQL one.
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
