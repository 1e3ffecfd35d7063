//! Every domain has the shape of `catalog`: the same thing is in a file of the same name.

use super::{
    Finding, calls, statements,
    tree::{SourceFile, Tree, line_at},
};

/// Files that every domain has.
const FILES: &[&str] = &["src/lib.rs", "src/service.rs", "src/api.rs", "tests/suite/main.rs", "README.md"];

/// Files of a slice, which is a directory with a `mod.rs`. A domain with a single slice may have
/// them in `src`.
const SLICE: &[&str] = &["routes.rs", "rules.rs", "store.rs"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for domain in calls::domains(tree) {
        let root = format!("crates/{domain}/");
        for name in FILES.iter().filter(|name| tree.get(&format!("{root}{name}")).is_none()) {
            let remedy = "a domain has the files of crates/catalog";
            findings.push(Finding::new(&format!("{root}{name}"), 1, "the file is missing", remedy));
        }
        let sources = || tree.rust().filter(|file| file.path.starts_with(&format!("{root}src/")));
        let has_slices = sources().any(|file| {
            let inside = &file.path[root.len() + "src/".len()..];
            inside.contains('/') && inside.ends_with("/routes.rs")
        });
        for file in sources() {
            findings.extend(misplaced(tree, file, &root, has_slices));
            findings.extend(engine_without_reason(file));
        }
    }
    findings
}

fn misplaced(tree: &Tree, file: &SourceFile, root: &str, has_slices: bool) -> Option<Finding> {
    let inside = &file.path[root.len() + "src/".len()..];
    if inside.starts_with("suite") {
        let remedy = "move it to tests/suite, which uses the public interface only";
        return Some(Finding::new(&file.path, 1, "the suite of a domain is in src", remedy));
    }
    if !SLICE.contains(&file.name()) {
        return None;
    }
    let dir = file.path.strip_suffix(file.name())?;
    let is_slice = if dir.ends_with("/src/") { !has_slices } else { has_module(tree, dir) };
    let remedy =
        "put it into a slice: a directory with mod.rs and, as needed, rules.rs, store.rs and routes.rs";
    (!is_slice).then(|| Finding::new(&file.path, 1, "the file is outside a slice", remedy))
}

/// Whether a directory is a module: it has a `mod.rs`, or a file of its name beside it.
fn has_module(tree: &Tree, dir: &str) -> bool {
    let beside = format!("{}.rs", dir.trim_end_matches('/'));
    tree.get(&format!("{dir}mod.rs")).is_some() || tree.get(&beside).is_some()
}

/// A statement for one engine whose comment, or the comment of its file, does not name the engine.
fn engine_without_reason(file: &SourceFile) -> Vec<Finding> {
    let text = file.product_code();
    let names_engine = |text: &str| text.contains("PostgreSQL") || text.contains("SQLite");
    let header: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
    if statements::is_of_tests(file) || !text.contains("statements! {") || names_engine(&header) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (at, _) in text.match_indices("sqlite \"").chain(text.match_indices("= postgres \"")) {
        if !names_engine(comment_before(&text[..at])) {
            let remedy = "use one statement for both engines, or say why this hot path needs its own";
            findings.push(Finding::new(&file.path, line_at(text, at), "a statement per engine", remedy));
        }
    }
    findings
}

/// The text after the end of the previous statement: the comment of this one.
fn comment_before(text: &str) -> &str {
    let start = text.rfind(";\n").or_else(|| text.rfind("statements! {")).unwrap_or(0);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACT: (&str, &str) =
        ("crates/contracts/src/hello.rs", "service! {\n    pub trait Hello as \"hello\" -> Error {}\n}");

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let all: Vec<_> = FILES.iter().map(|name| (format!("crates/hello/{name}"), String::new())).collect();
        let mut all: Vec<(&str, &str)> = all.iter().map(|(path, text)| (&**path, &**text)).collect();
        all.push(CONTRACT);
        all.extend_from_slice(files);
        check(&Tree::of(&all)).iter().map(|finding| format!("{}: {}", finding.path, finding.wrong)).collect()
    }

    #[test]
    fn a_domain_without_its_files_is_reported() {
        assert!(found(&[]).is_empty());
        let missing = check(&Tree::of(&[CONTRACT]));
        assert_eq!(missing.len(), FILES.len());
    }

    #[test]
    fn a_suite_in_src_and_a_store_outside_a_slice_are_reported() {
        let slice = [("crates/hello/src/a/mod.rs", ""), ("crates/hello/src/a/routes.rs", "")];
        assert!(found(&slice).is_empty());
        let outside = ("crates/hello/src/store.rs", "");
        assert!(found(&[outside]).is_empty(), "one slice may be in src");
        assert_eq!(found(&[slice[0], slice[1], outside]).len(), 1);
        assert_eq!(found(&[("crates/hello/src/suite/http.rs", "")]).len(), 1);
        assert_eq!(found(&[("crates/hello/src/a/store.rs", "")]).len(), 1, "a slice has a mod.rs");
    }

    #[test]
    fn a_statement_per_engine_needs_a_reason() {
        let statement = |comment: &str| {
            let one = "/// One.\n    ONE = \"select 1\";";
            let two = format!("/// {comment}\n    TWO = sqlite \"select 2\";");
            format!("statements! {{\n    {one}\n    {two}\n}}\n")
        };
        let path = "crates/hello/src/store.rs";
        assert_eq!(found(&[(path, &statement("Two."))]).len(), 1);
        assert!(found(&[(path, &statement("SQLite only: it runs in this process."))]).is_empty());
    }
}
