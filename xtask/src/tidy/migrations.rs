//! Migrations come in pairs: the same name for SQLite and for PostgreSQL.

use super::{Finding, tree::Tree};

const ENGINES: [&str; 2] = ["sqlite", "postgres"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let migrations =
        tree.files.iter().filter(|file| file.ending() == "sql" && file.path.contains("/migrations/"));
    migrations
        .filter_map(|file| {
            let (dir, rest) = file.path.split_once("/migrations/")?;
            let Some((engine, name)) = rest.split_once('/').filter(|(engine, _)| ENGINES.contains(engine))
            else {
                let remedy = "put it in migrations/sqlite or migrations/postgres";
                return Some(Finding::new(&file.path, 1, "a migration that belongs to no engine", remedy));
            };
            let other = if engine == ENGINES[0] { ENGINES[1] } else { ENGINES[0] };
            let twin = format!("{dir}/migrations/{other}/{name}");
            tree.get(&twin).is_none().then(|| {
                Finding::new(
                    &file.path,
                    1,
                    format!("there is no such migration for {other}"),
                    format!("write {twin}"),
                )
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_migration_for_only_one_engine_is_reported() {
        let pair = ("crates/a/migrations/sqlite/0001_x.sql", "crates/a/migrations/postgres/0001_x.sql");
        assert!(check(&Tree::of(&[(pair.0, ""), (pair.1, "")])).is_empty());
        assert_eq!(check(&Tree::of(&[(pair.0, "")]))[0].remedy, format!("write {}", pair.1));
        assert_eq!(check(&Tree::of(&[(pair.1, "")]))[0].remedy, format!("write {}", pair.0));
        assert_eq!(check(&Tree::of(&[("crates/a/migrations/0001_x.sql", "")])).len(), 1);
    }
}
