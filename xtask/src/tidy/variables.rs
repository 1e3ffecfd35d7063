//! Every environment variable named in the code is documented.

use super::{
    Finding, lex,
    tree::{Tree, line_at},
};

const CONFIG: &str = "docs/config.md";
const TESTING: &str = "docs/testing.md";
/// Crates that only tests use.
const TESTS: [&str; 2] = ["e2e", "testkit"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let code = file.product_code();
        for (offset, name) in lex::strings(code).into_iter().filter(|(_, string)| is_variable(string)) {
            let for_tests =
                name.starts_with("URR_TEST_") || file.crate_name().is_none_or(|name| TESTS.contains(&name));
            let page = if for_tests { TESTING } else { CONFIG };
            let Some(explained) = tree.get(page) else { continue };
            if !explained
                .text
                .split(|part: char| !part.is_alphanumeric() && part != '_')
                .any(|word| word == name)
            {
                let wrong = format!("{name} is not explained");
                findings.push(Finding::new(
                    &file.path,
                    line_at(code, offset),
                    wrong,
                    format!("add it to {page}"),
                ));
            }
        }
    }
    findings
}

fn is_variable(string: &str) -> bool {
    let rest = string.strip_prefix("URR_").unwrap_or_default();
    !rest.is_empty()
        && !rest.ends_with('_')
        && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", code),
            (CONFIG, "| `URR_LISTEN` | where |"),
            (TESTING, "`URR_TEST_REDIS`"),
        ]);
        check(&tree).into_iter().map(|finding| finding.wrong).collect()
    }

    #[test]
    fn variables_of_tests_belong_in_the_testing_document() {
        let tree =
            Tree::of(&[("crates/e2e/src/lib.rs", "get(\"URR_BIN\")"), (CONFIG, "URR_BIN"), (TESTING, "")]);
        assert_eq!(check(&tree)[0].remedy, "add it to docs/testing.md");
    }

    #[test]
    fn an_undocumented_variable_is_reported() {
        assert_eq!(found("get(\"URR_LIST\")"), ["URR_LIST is not explained"]);
        assert_eq!(found("get(\"URR_TEST_KAFKA\")"), ["URR_TEST_KAFKA is not explained"]);
        assert!(found("get(\"URR_LISTEN\"); get(\"URR_TEST_REDIS\"); starts(\"URR_\")").is_empty());
    }
}
