//! Text that source files must not contain, and the module documentation that each must have.

use super::{
    Finding, lex,
    tree::{SourceFile, Tree, line_at},
};

/// Marks of unfinished work, written so that this file does not contain them.
const MARKS: [&str; 4] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
/// Extensions of hand-written files; scripts may have none.
const HAND_WRITTEN: [&str; 10] = ["", "rs", "lua", "sql", "js", "css", "html", "sh", "toml", "md"];
/// Directories of a developer's machine.
const FOLDERS: [&str; 4] =
    [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/"), concat!("/t", "mp/")];
/// Suffixes of type names that carry no meaning.
const EMPTY_WORDS: [&str; 6] = ["Manager", "Helper", "Util", "Utils", "Impl", "Dto"];

/// The start of a histogram macro, written so that this file does not contain it.
const HISTOGRAM: &str = concat!("histo", "gram!(");
/// Suffixes of histogram names for which buckets are configured.
const UNITS: [&str; 3] = ["_seconds", "_bytes", "_size"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        if file.ending() == "rs" {
            module_docs(file, &mut findings);
            attributes(file, &mut findings);
            type_names(file, &mut findings);
            histograms(file, &mut findings);
        }
        if HAND_WRITTEN.contains(&file.ending()) {
            unfinished(file, &mut findings);
            machine_paths(file, &mut findings);
        }
    }
    findings
}

fn module_docs(file: &SourceFile, findings: &mut Vec<Finding>) {
    // A crate may be documented by its README.
    if !file.text.starts_with("//!") && !file.text.starts_with("#![doc = include_str!") {
        let remedy = "begin with a `//!` sentence that says what the module is for";
        findings.push(Finding::new(&file.path, 1, "no module documentation", remedy));
    }
}

fn attributes(file: &SourceFile, findings: &mut Vec<Finding>) {
    let code = lex::code(&file.text);
    for (offset, _) in code.match_indices("#[").chain(code.match_indices("#![")) {
        let attribute = code[offset..].split(']').next().unwrap_or_default();
        let words: Vec<&str> = attribute.split(|part: char| !part.is_alphanumeric() && part != '_').collect();
        let line = line_at(&code, offset);
        if words.contains(&"ignore") {
            let remedy = "fix the test or remove it; ignored tests are not allowed";
            findings.push(Finding::new(&file.path, line, "a test is switched off", remedy));
        }
        if words.contains(&"allow") {
            let remedy = "use #[expect(…, reason = \"…\")], which says when it is no longer needed";
            findings.push(Finding::new(&file.path, line, "a lint is switched off for good", remedy));
        }
    }
}

fn type_names(file: &SourceFile, findings: &mut Vec<Finding>) {
    let code = lex::code(&file.text);
    for keyword in ["struct ", "enum ", "trait ", "type "] {
        for (offset, _) in code.match_indices(keyword) {
            let rest = &code[offset + keyword.len()..];
            let name =
                rest.split(|part: char| !part.is_alphanumeric() && part != '_').next().unwrap_or_default();
            if let Some(word) = EMPTY_WORDS.iter().find(|word| name.ends_with(**word)) {
                let wrong = format!("the name {name} ends in {word}");
                let remedy = "name it by what it is or does in the domain";
                findings.push(Finding::new(&file.path, line_at(&code, offset), wrong, remedy));
            }
        }
    }
}

fn histograms(file: &SourceFile, findings: &mut Vec<Finding>) {
    for (offset, begin) in file.text.match_indices(HISTOGRAM) {
        let name = file.text[offset + begin.len()..].trim_start().strip_prefix('"');
        let Some(name) = name.and_then(|rest| rest.split('"').next()) else { continue };
        if !UNITS.iter().any(|unit| name.ends_with(unit)) {
            let wrong = format!("the histogram {name} has buckets for seconds");
            let remedy = "end its name in _seconds, _bytes or _size";
            findings.push(Finding::new(&file.path, line_at(&file.text, offset), wrong, remedy));
        }
    }
}

fn unfinished(file: &SourceFile, findings: &mut Vec<Finding>) {
    for (index, line) in file.text.lines().enumerate() {
        let words = line.split(|part: char| !part.is_alphanumeric());
        if let Some(mark) = words.into_iter().find(|word| MARKS.contains(word)) {
            let remedy = "finish it, or open an issue and say here what the code does";
            findings.push(Finding::new(&file.path, index + 1, format!("the mark {mark}"), remedy));
        }
    }
}

fn machine_paths(file: &SourceFile, findings: &mut Vec<Finding>) {
    for (index, line) in file.text.lines().enumerate() {
        let names_one = FOLDERS.iter().any(|folder| {
            line.match_indices(folder).any(|(at, _)| {
                // Part of a URL or of a longer path: not a local directory.
                let before = line[..at].chars().next_back();
                let after = line[at + folder.len()..].chars().next();
                before.is_none_or(|before| {
                    !before.is_alphanumeric() && !matches!(before, '.' | '_' | '-' | '}')
                }) && after.is_some_and(|after| after.is_alphanumeric() || after == '.')
            })
        });
        if names_one {
            let remedy = "make it relative, or ask for a temporary directory";
            findings.push(Finding::new(&file.path, index + 1, "a path of a developer's machine", remedy));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        check(&Tree::of(&[(path, text)])).into_iter().map(|finding| (finding.line, finding.wrong)).collect()
    }

    #[test]
    fn a_module_needs_documentation() {
        assert_eq!(found("crates/a/src/x.rs", "use y;\n"), [(1, "no module documentation".to_owned())]);
        assert!(found("crates/a/src/x.rs", "//! Why.\nuse y;\n").is_empty());
        assert!(found("crates/a/src/x.rs", "#![doc = include_str!(\"../README.md\")]\n").is_empty());
    }

    #[test]
    fn an_ignored_test_or_allowed_lint_is_reported() {
        let off = "a test is switched off".to_owned();
        let lint = "a lint is switched off for good".to_owned();
        assert_eq!(found("x.rs", "//! W\n#[test]\n#[ignore = \"slow\"]\n"), [(3, off.clone())]);
        assert_eq!(found("x.rs", "//! W\n#[cfg_attr(x, ignore)]\n"), [(2, off)]);
        assert_eq!(found("x.rs", "//! W\n#![allow(dead_code)]\n"), [(2, lint)]);
        assert!(found("x.rs", "//! W\n#[expect(dead_code, reason = \"why\")]\n// #[allow(x)]\n").is_empty());
    }

    #[test]
    fn a_meaningless_type_name_is_reported() {
        let wrong = "the name SeatManager ends in Manager".to_owned();
        assert_eq!(found("x.rs", "//! W\npub struct SeatManager;\n"), [(2, wrong)]);
        assert!(
            found("x.rs", "//! W\npub struct Managers;\nlet manager = \"struct SeatManager\";\n").is_empty()
        );
    }

    #[test]
    fn a_histogram_without_a_unit_is_reported() {
        let named =
            |name: &str| found("x.rs", &format!("//! W\nmetrics::{HISTOGRAM}\n    \"{name}\").record(1);\n"));
        assert_eq!(named("urr_batch"), [(2, "the histogram urr_batch has buckets for seconds".to_owned())]);
        assert!(named("urr_batch_size").is_empty());
    }

    #[test]
    fn marks_of_unfinished_work_are_reported_in_every_language() {
        for mark in MARKS {
            let text = format!("-- one\n-- {mark}: two\n");
            assert_eq!(found("crates/a/migrations/sqlite/1.sql", &text), [(2, format!("the mark {mark}"))]);
        }
        assert!(found("a.sql", &format!("-- {}S are many\n", MARKS[0])).is_empty());
    }

    #[test]
    fn a_local_path_is_reported_and_a_url_is_not() {
        for folder in FOLDERS {
            assert_eq!(found("docs/a.md", &format!("see `{folder}x`\n")).len(), 1, "{folder}");
            assert!(found("docs/a.md", &format!("https://example.com{folder}x\n")).is_empty(), "{folder}");
        }
    }
}
