//! Every list of SQL statements is named in its crate's list, so that a test prepares each of them.

use super::{
    Finding, lex,
    tree::{SourceFile, Tree, line_at},
};

const MACRO: &str = "statements! {";
const LIST: &str = "STATEMENTS";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let sources = || tree.rust().filter_map(|file| Some((file, module(file)?)));
    let mut findings = Vec::new();
    for (file, module) in sources().filter(|(file, _)| !is_of_tests(file)) {
        let code = lex::code(file.product_code());
        let Some(offset) = code.find(MACRO) else { continue };
        let crate_name = file.crate_name();
        let mut neighbours = sources().filter(|(other, _)| other.crate_name() == crate_name);
        if !neighbours.any(|(other, from)| names(other, &from, &module)) {
            let wrong = format!("its {LIST} is not named anywhere");
            let remedy = "add them to what a test of the crate gives to check_statements";
            findings.push(Finding::new(&file.path, line_at(&code, offset), wrong, remedy));
        }
    }
    findings
}

/// Whether the file is compiled for tests only.
pub(super) fn is_of_tests(file: &SourceFile) -> bool {
    file.path.split('/').any(|part| matches!(part, "suite" | "suite.rs"))
}

/// The module path of a file: `holds::store` for `crates/tickets/src/holds/store.rs`.
fn module(file: &SourceFile) -> Option<Vec<&str>> {
    let (_, path) = file.path.strip_prefix("crates/")?.split_once("/src/")?;
    let mut parts: Vec<&str> = path.strip_suffix(".rs")?.split('/').collect();
    if matches!(parts.last(), Some(&("mod" | "lib" | "main"))) {
        parts.pop();
    }
    Some(parts)
}

/// Whether a file, which is the module `from`, names the list of the module `wanted`.
fn names(file: &SourceFile, from: &[&str], wanted: &[&str]) -> bool {
    let code = lex::code(&file.text);
    let is_word = |part: char| part.is_alphanumeric() || part == '_' || part == ':';
    code.split(|part: char| !is_word(part)).any(|path| {
        let Some(path) = path.strip_suffix(LIST) else { return false };
        let parts: Vec<&str> = path.split_terminator("::").collect();
        match (parts.as_slice(), from) {
            // Without a path it is the list of the file itself, also in its tests.
            ([], _) => from == wanted,
            (["crate", parts @ ..], _) => parts == wanted,
            (["super", parts @ ..], [parent @ .., _]) => [parent, parts].concat() == wanted,
            (parts, _) => [from, parts].concat() == wanted,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: (&str, &str) =
        ("crates/a/src/seats/store.rs", "//! Why.\nurr_db::statements! {\n    X = \"select 1\";\n}\n");

    fn found(others: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(&[&[STORE], others].concat());
        check(&tree).into_iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
    }

    #[test]
    fn statements_that_no_test_prepares_are_reported() {
        let missed = ["crates/a/src/seats/store.rs:2"];
        assert_eq!(found(&[]), missed);
        assert_eq!(found(&[("crates/a/src/lib.rs", "// seats::store::STATEMENTS\n")]), missed);
        assert_eq!(found(&[("crates/a/src/lib.rs", "halls::store::STATEMENTS")]), missed);
        assert_eq!(found(&[("crates/b/src/lib.rs", "seats::store::STATEMENTS")]), missed);
        assert_eq!(found(&[("crates/a/src/lib.rs", "STATEMENTS")]), missed);
    }

    #[test]
    fn a_list_may_be_named_from_anywhere_in_its_crate() {
        for (path, text) in [
            ("crates/a/src/lib.rs", "[seats::store::STATEMENTS].concat()"),
            ("crates/a/src/seats/mod.rs", "store::STATEMENTS.to_vec()"),
            ("crates/a/src/seats/prices.rs", "super::store::STATEMENTS"),
            ("crates/a/src/x/y.rs", "crate::seats::store::STATEMENTS"),
        ] {
            assert!(found(&[(path, text)]).is_empty(), "{path}");
        }
        let own = format!("{}#[cfg(test)]\nmod tests {{\n    check(STATEMENTS)\n}}\n", STORE.1);
        assert!(check(&Tree::of(&[(STORE.0, &own)])).is_empty());
    }

    #[test]
    fn statements_of_tests_are_ignored() {
        let tree = Tree::of(&[("crates/a/src/suite/world.rs", STORE.1), ("crates/a/tests/x.rs", STORE.1)]);
        assert!(check(&tree).is_empty());
    }
}
