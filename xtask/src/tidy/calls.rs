//! Synchronous calls between domains form a DAG; communication in the other direction uses
//! messages.

use super::{
    Finding, lex,
    tree::{Tree, line_at},
};

/// Crates that wire domains together or act as their clients, and may hold all of them.
const WIRING: &[&str] = &["app", "contracts", "stampede", "testkit", "e2e"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let (services, calls) = (declared(tree), calls(tree));
    let may_call = |me: &str, domain: &str| calls.iter().any(|(from, to)| from == me && to == domain);
    let mut findings = Vec::new();
    for file in tree.rust() {
        let Some(me) = file.crate_name().filter(|name| !WIRING.contains(name)) else { continue };
        let code = lex::code(file.product_code());
        for (domain, name) in services.iter().filter(|(domain, _)| domain != me && !may_call(me, domain)) {
            for offset in uses(&code, name) {
                let wrong = format!("{me} holds `dyn {name}`, but {me} must not call {domain}");
                let remedy = "consume a message, or add the role to `calls` in crates/app/src/domains";
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

/// The offsets of `dyn Name`, alone or at the end of a path such as `dyn contracts::tickets::Name`.
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

/// Pairs of caller and callee, from `calls: &[…]` in the declarations of the app.
fn calls(tree: &Tree) -> Vec<(String, String)> {
    let mut calls = Vec::new();
    for file in tree.rust() {
        let name = file.path.strip_prefix("crates/app/src/domains/");
        let Some(role) = name.and_then(|name| name.strip_suffix(".rs")) else { continue };
        let Some((_, rest)) = file.text.split_once("    calls: &[") else { continue };
        let list = rest.split(']').next().unwrap_or_default();
        let called = list.split("super::").skip(1).filter_map(|part| part.split("::").next());
        calls.extend(called.map(|called| (role.to_owned(), called.to_owned())));
    }
    calls
}

/// The domains: every name under which the contracts declare a service.
pub(super) fn domains(tree: &Tree) -> Vec<String> {
    declared(tree).into_iter().map(|(domain, _)| domain).collect()
}

/// Contracts and calls for the tests of the rules.
#[cfg(test)]
pub(super) const CONTRACTS: [(&str, &str); 3] = [
    ("crates/contracts/src/catalog.rs", "service! {\n    pub trait Catalog as \"catalog\" -> Error {}\n}"),
    ("crates/contracts/src/tickets.rs", "service! {\n    pub trait Tickets as \"tickets\" -> Error {}\n}"),
    (
        "crates/app/src/domains/tickets.rs",
        "static ROLE: Declaration = Declaration {\n    calls: &[Role::of(&super::catalog::ROLE)],\n};",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<usize> {
        let tree = Tree::of(&[CONTRACTS[0], CONTRACTS[1], CONTRACTS[2], (path, text)]);
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
    fn a_domain_without_an_entry_may_call_no_other() {
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
    fn a_call_is_allowed_by_its_declaration_alone() {
        let tree = Tree::of(&CONTRACTS);
        assert_eq!(calls(&tree), [("tickets".to_owned(), "catalog".to_owned())]);
        assert_eq!(domains(&tree), ["catalog", "tickets"]);
    }
}
