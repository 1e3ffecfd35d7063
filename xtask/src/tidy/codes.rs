//! Every public error code has a page in `docs/errors`, and every page a code.
//!
//! Codes are declared in two forms: as strings in the `CODES` tables, and as variants of the error
//! enums of the contracts, which are serialised to codes.

use std::collections::BTreeMap;

use super::{
    Finding, lex,
    tree::{SourceFile, Tree, line_at},
};

const PAGES: &str = "docs/errors/";

/// Where a code is declared.
struct CodeSite {
    path: String,
    line: usize,
}

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut codes = BTreeMap::new();
    for file in tree.rust().filter(|file| file.path.starts_with("crates/")) {
        codes.extend(from_table(file));
        if file.path.starts_with("crates/contracts/src/") {
            codes.extend(from_enums(file));
        }
    }
    let mut findings = Vec::new();
    for (code, site) in &codes {
        let page = format!("{PAGES}{code}.md");
        if tree.get(&page).is_none() {
            let remedy = format!("write {page}: what happened, why, and what to do");
            findings.push(Finding::new(&site.path, site.line, format!("{code} has no page"), remedy));
        }
    }
    for page in tree.files.iter().filter(|file| file.path.starts_with(PAGES)) {
        let code =
            page.path.strip_prefix(PAGES).and_then(|name| name.strip_suffix(".md")).unwrap_or_default();
        if code != "README" && !codes.contains_key(code) {
            let remedy =
                "remove the page, or declare the code in a CODES table or an error enum of the contracts";
            findings.push(Finding::new(&page.path, 1, format!("no code is called {code}"), remedy));
        }
    }
    for file in tree.rust().filter(|file| file.path.starts_with("crates/")) {
        findings.extend(undeclared(file, &codes));
    }
    findings
}

/// The literals of the form `http.not_found` in a file that declares a `CODES` table.
fn from_table(file: &SourceFile) -> Vec<(String, CodeSite)> {
    let text = file.product_code();
    if !lex::code(text).contains("const CODES") {
        return Vec::new();
    }
    let literals = lex::strings(text).into_iter().filter(|(_, literal)| is_code(literal));
    literals
        .map(|(at, code)| (code.to_owned(), CodeSite { path: file.path.clone(), line: line_at(text, at) }))
        .collect()
}

fn is_code(literal: &str) -> bool {
    let part =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    literal.split_once('.').is_some_and(|(domain, name)| part(domain) && part(name))
}

/// The variants of every enum that is serialised with a `code` tag.
fn from_enums(file: &SourceFile) -> Vec<(String, CodeSite)> {
    let text = file.product_code();
    let code = lex::code(text);
    let domain = domain_of(file);
    let mut found = Vec::new();
    for (tag, _) in text.match_indices("#[serde(tag = \"code\"") {
        let Some(body) =
            code[tag..].find("enum ").and_then(|at| Some(tag + at + code[tag + at..].find('{')? + 1))
        else {
            continue;
        };
        // The codes of common errors are declared by `urr-http`.
        for (at, variant) in variants(&code[body..]).into_iter().filter(|(_, variant)| *variant != "Common") {
            let site = CodeSite { path: file.path.clone(), line: line_at(text, body + at) };
            found.push((format!("{domain}.{}", snake_case(variant)), site));
        }
    }
    found
}

/// The prefix of the enum's codes: the file's `DOMAIN`, or the name of the module.
fn domain_of(file: &SourceFile) -> &str {
    let declared =
        file.text.split_once("DOMAIN: &'static str = \"").and_then(|(_, rest)| rest.split('"').next());
    let stem = file.path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs"));
    declared.or(stem).unwrap_or_default()
}

/// The names of the variants, given the code after the enum's opening brace.
fn variants(body: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut depth, mut expected, mut at) = (0_u32, true, 0);
    while let Some(next) = body[at..].chars().next() {
        match next {
            '{' | '(' | '[' => depth += 1,
            '}' if depth == 0 => break,
            '}' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => expected = true,
            _ if depth == 0 && expected && next.is_ascii_uppercase() => {
                let rest = &body[at..];
                let length = rest.find(|part: char| !part.is_alphanumeric()).unwrap_or(rest.len());
                found.push((at, &rest[..length]));
                expected = false;
                at += length;
                continue;
            }
            _ => {}
        }
        at += next.len_utf8();
    }
    found
}

/// Converts like serde's `rename_all = "snake_case"`.
fn snake_case(variant: &str) -> String {
    let mut out = String::new();
    for (index, letter) in variant.char_indices() {
        if letter.is_uppercase() && index > 0 {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// Codes in `Problem::new(…)` that are in no table.
fn undeclared(file: &SourceFile, codes: &BTreeMap<String, CodeSite>) -> Vec<Finding> {
    let text = file.product_code();
    let code = lex::code(text);
    let literals = lex::strings(text);
    let mut findings = Vec::new();
    for (call, _) in code.match_indices("Problem::new(") {
        let end = call + code[call..].find(';').unwrap_or(code.len() - call);
        let inside = literals.iter().filter(|(at, literal)| (call..end).contains(at) && is_code(literal));
        for (at, literal) in inside.filter(|(_, literal)| !codes.contains_key(*literal)) {
            let wrong = format!("{literal} is in no table");
            let remedy = "declare it in the crate's CODES table and write its page";
            findings.push(Finding::new(&file.path, line_at(text, *at), wrong, remedy));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: (&str, &str) =
        ("crates/http/src/codes.rs", "pub const CODES: &[Code] = &[\n    (\"http.not_found\", 404),\n];\n");
    const ENUM: (&str, &str) = (
        "crates/contracts/src/tickets.rs",
        "/// Why.\n#[serde(tag = \"code\", rename_all = \"snake_case\")]\npub enum Error {\n    /// Gone, Taken.\n    \
         #[error(\"Some {seats} are taken\")]\n    SeatsTaken { seats: Vec<SeatId>, at: Timestamp },\n    \
         NoSeats,\n    Unavailable(Vec<(String, u8)>),\n}\nenum Other { NotACode }\n",
    );
    const PAGES_OF_ALL: [(&str, &str); 4] = [
        ("docs/errors/http.not_found.md", ""),
        ("docs/errors/tickets.seats_taken.md", ""),
        ("docs/errors/tickets.no_seats.md", ""),
        ("docs/errors/tickets.unavailable.md", ""),
    ];

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn a_code_without_a_page_is_reported_at_its_declaration() {
        assert_eq!(found(&[&[TABLE, ENUM][..], &PAGES_OF_ALL].concat()), [""; 0]);
        let found = found(&[TABLE, ENUM]);
        let at = |start: &str| found.iter().any(|finding| finding.starts_with(start));
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(at("crates/http/src/codes.rs:2: http.not_found has no page"), "{found:?}");
        assert!(at("crates/contracts/src/tickets.rs:6: tickets.seats_taken has no page"), "{found:?}");
        assert!(at("crates/contracts/src/tickets.rs:7: tickets.no_seats has no page"), "{found:?}");
        assert!(at("crates/contracts/src/tickets.rs:8: tickets.unavailable has no page"), "{found:?}");
    }

    #[test]
    fn a_page_without_a_code_is_reported() {
        let found = found(&[TABLE, PAGES_OF_ALL[0], PAGES_OF_ALL[1]]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("docs/errors/tickets.seats_taken.md:1: no code"), "{found:?}");
    }

    #[test]
    fn an_undeclared_code_is_reported() {
        let route =
            ("crates/a/src/routes.rs", "//! R\nProblem::new(\n    STATUS,\n    \"a.secret\",\n    \"m\");\n");
        let found = found(&[TABLE, PAGES_OF_ALL[0], route]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/routes.rs:4: a.secret is in no table"), "{found:?}");
    }
}
