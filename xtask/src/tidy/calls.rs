//! Synchronous calls between domains form a DAG; whatever goes the other way is an event.

use super::{
    Finding, lex,
    tree::{Tree, line_at},
};

/// Who calls whom. What a callee may call, its caller may call too.
const CALLS: &[(&str, &str)] = &[
    ("site", "payments"),
    ("gateway", "payments"),
    ("payments", "tickets"),
    ("tickets", "catalog"),
    ("catalog", "auth"),
    ("queue", "catalog"),
];

/// The crates that wire domains together, or play their users, and so hold all of them.
const WIRING: &[&str] = &["app", "contracts", "stampede", "testkit", "e2e"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let services = declared(tree);
    let mut findings = Vec::new();
    for file in tree.rust() {
        let Some(me) = file.crate_name().filter(|name| !WIRING.contains(name)) else { continue };
        let code = lex::code(file.product_code());
        for (domain, name) in services.iter().filter(|(domain, _)| domain != me && !may_call(me, domain)) {
            for offset in uses(&code, name) {
                let wrong = format!("{me} holds `dyn {name}`, but {me} must not call {domain}");
                let remedy = "listen to an event, or add the call to CALLS in xtask/src/tidy/calls.rs";
                findings.push(Finding::new(&file.path, line_at(&code, offset), wrong, remedy));
            }
        }
    }
    findings
}

/// Each domain and its trait, from `pub trait Tickets as "tickets" -> Error` in the contracts.
fn declared(tree: &Tree) -> Vec<(String, String)> {
    let contracts = tree.rust().filter(|file| file.path.starts_with("crates/contracts/src/"));
    let lines = contracts.flat_map(|file| file.text.lines());
    lines
        .filter_map(|line| {
            let (name, rest) = line.trim().strip_prefix("pub trait ")?.split_once(" as \"")?;
            Some((rest.split('"').next()?.to_owned(), name.to_owned()))
        })
        .collect()
}

/// Where `dyn Name` stands, alone or at the end of a path such as `dyn contracts::tickets::Name`.
fn uses(code: &str, name: &str) -> Vec<usize> {
    let ends =
        |after: &str| !after.starts_with(|next: char| next.is_alphanumeric() || next == '_' || next == ':');
    code.match_indices("dyn ")
        .filter(|(offset, _)| {
            let path = &code[offset + 4..];
            let length = path.find(|part: char| !part.is_alphanumeric() && part != '_' && part != ':');
            let (path, after) = path.split_at(length.unwrap_or(path.len()));
            path.rsplit("::").next() == Some(name) && ends(after)
        })
        .map(|(offset, _)| offset)
        .collect()
}

fn may_call(caller: &str, domain: &str) -> bool {
    // The table is a DAG, so following it ends.
    CALLS.iter().any(|(from, to)| *from == caller && (*to == domain || may_call(to, domain)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACTS: [(&str, &str); 2] = [
        (
            "crates/contracts/src/catalog.rs",
            "service! {\n    pub trait Catalog as \"catalog\" -> Error {}\n}",
        ),
        (
            "crates/contracts/src/tickets.rs",
            "service! {\n    pub trait Tickets as \"tickets\" -> Error {}\n}",
        ),
    ];

    fn found(path: &str, text: &str) -> Vec<usize> {
        let tree = Tree::of(&[CONTRACTS[0], CONTRACTS[1], (path, text)]);
        check(&tree).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn calls_go_one_way() {
        assert_eq!(found("crates/catalog/src/service.rs", "\nx: Arc<dyn Tickets>,\n"), [2]);
        assert_eq!(
            found("crates/catalog/src/service.rs", "x: Arc<dyn urr_contracts::tickets::Tickets>"),
            [1]
        );
        assert!(found("crates/tickets/src/service.rs", "x: Arc<dyn Catalog>").is_empty());
        assert!(found("crates/tickets/src/service.rs", "x: Arc<dyn Tickets>").is_empty());
    }

    #[test]
    fn a_domain_without_an_entry_may_call_nobody() {
        assert_eq!(found("crates/stats/src/lib.rs", "x: Arc<dyn Catalog>"), [1]);
    }

    #[test]
    fn only_code_of_the_product_counts() {
        assert!(found("crates/app/src/wire.rs", "x: Arc<dyn Tickets>").is_empty());
        assert!(
            found("crates/catalog/src/lib.rs", "// Arc<dyn Tickets>\nx: Arc<dyn TicketsBook>").is_empty()
        );
    }

    #[test]
    fn the_table_of_calls_has_no_cycle() {
        fn depth(domain: &str, limit: usize) {
            assert!(limit > 0, "{domain} is part of a cycle");
            for (_, to) in CALLS.iter().filter(|(from, _)| *from == domain) {
                depth(to, limit - 1);
            }
        }
        for (from, _) in CALLS {
            depth(from, CALLS.len() + 1);
        }
        assert!(may_call("payments", "auth"));
        assert!(!may_call("catalog", "tickets"));
    }
}
