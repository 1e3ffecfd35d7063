//! Every statement of this crate prepares on both engines, and the check itself detects errors.

use urr_db::{Db, base_statements, check_statements, statements};
use urr_testkit::{fresh_sqlite, within};

use crate::fresh::{self, DOMAIN, LIMIT, Server, with_postgres};

mod wrong {
    urr_db::statements! {
        pub(super) TYPO = "select id from saets";
        pub(super) ARITY = sqlite "select id from seats where id = $1" postgres "select id from seats";
        pub(super) COLUMNS = sqlite "select id, holder from seats" postgres "select id from seats";
        pub(super) NUMERIC = "select sum(id) from seats";
        pub(super) ONLY = postgres "select pg_current_xact_id()";
    }
}

statements! {
    RIGHT = "select id from seats where holder = $1";
}

#[tokio::test]
async fn every_statement_of_this_crate_prepares() {
    let (_dir, sqlite) = fresh_sqlite(&DOMAIN).await;
    let all = [base_statements().as_slice(), fresh::STATEMENTS, STATEMENTS].concat();
    within(LIMIT, check_statements(&[&sqlite], &all)).await.unwrap();
    with_postgres(async |server: Server| {
        let postgres = server.migrated(&DOMAIN).await;
        check_statements(&[&sqlite, &postgres], &all).await.unwrap();
        reports_every_mismatch(&sqlite, &postgres).await;
    })
    .await;
}

async fn reports_every_mismatch(sqlite: &Db, postgres: &Db) {
    let report = check_statements(&[sqlite, postgres], wrong::STATEMENTS).await.unwrap_err();
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines.len(), 5, "{report}");
    assert!(lines[0].contains("TYPO on Sqlite") && lines[0].contains("no such table"), "{report}");
    assert!(lines[1].contains("TYPO on Postgres"), "{report}");
    assert!(lines[2].contains("ARITY: Sqlite takes 1 parameters"), "{report}");
    assert!(
        lines[3].contains("COLUMNS") && lines[3].contains("gives 2 columns, Postgres 0 and 1"),
        "{report}"
    );
    assert!(lines[4].contains("NUMERIC on Postgres: it uses the type numeric"), "{report}");
    let _ = (&wrong::TYPO, &wrong::ARITY, &wrong::COLUMNS, &wrong::NUMERIC, &wrong::ONLY, &RIGHT);
}
