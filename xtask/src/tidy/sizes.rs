//! Files have at most 400 lines. Longer ones are listed in `ratchet.toml` and may only shrink.

use super::{Finding, tree::Tree};

/// Maximum number of lines.
const GOAL: usize = 400;
const RATCHET: &str = "xtask/ratchet.toml";
const ENDINGS: [&str; 6] = ["rs", "lua", "sql", "js", "css", "html"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let table = tree.get(RATCHET).map_or(Vec::new(), |file| entries(&file.text));
    let sized = tree.files.iter().filter(|file| ENDINGS.contains(&file.ending()));
    for file in sized {
        let lines = file.text.lines().count();
        let listed = table.iter().find(|entry| entry.path == file.path);
        let (at, wrong, remedy) = match listed {
            None if lines > GOAL => {
                (1, format!("{lines} lines, over the goal of {GOAL}"), "split it".to_owned())
            }
            Some(entry) if lines > entry.lines => {
                let wrong = format!("{lines} lines, {} when it was last counted", entry.lines);
                (1, wrong, "split it; a file over the goal may only shrink".to_owned())
            }
            Some(entry) if lines <= GOAL => {
                findings.push(Finding::new(
                    RATCHET,
                    entry.at,
                    format!("{} has reached the goal with {lines} lines", file.path),
                    "remove this line",
                ));
                continue;
            }
            Some(entry) if lines < entry.lines => {
                findings.push(Finding::new(
                    RATCHET,
                    entry.at,
                    format!("{} has shrunk to {lines} lines", file.path),
                    format!("write {lines} here, so that it cannot grow back"),
                ));
                continue;
            }
            _ => continue,
        };
        findings.push(Finding::new(&file.path, at, wrong, remedy));
    }
    for entry in table.iter().filter(|entry| tree.get(entry.path).is_none()) {
        findings.push(Finding::new(RATCHET, entry.at, format!("{} is gone", entry.path), "remove this line"));
    }
    findings
}

struct Entry<'a> {
    at: usize,
    path: &'a str,
    lines: usize,
}

/// The lines of the form `"path" = 512`.
fn entries(text: &str) -> Vec<Entry<'_>> {
    text.lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let (path, lines) = line.split_once('=')?;
            Some(Entry {
                at: index + 1,
                path: path.trim().trim_matches('"'),
                lines: lines.trim().parse().ok()?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lines: usize, ratchet: &str) -> Vec<String> {
        let text = "//\n".repeat(lines);
        let tree = Tree::of(&[("crates/a/src/lib.rs", &text), (RATCHET, ratchet)]);
        check(&tree).into_iter().map(|finding| finding.remedy).collect()
    }

    #[test]
    fn a_file_over_the_goal_is_reported() {
        assert!(found(GOAL, "").is_empty());
        assert_eq!(found(GOAL + 1, ""), ["split it"]);
    }

    #[test]
    fn a_listed_file_may_only_shrink() {
        let listed = "# why\n\"crates/a/src/lib.rs\" = 500\n";
        assert!(found(500, listed).is_empty());
        assert_eq!(found(501, listed), ["split it; a file over the goal may only shrink"]);
        assert_eq!(found(450, listed), ["write 450 here, so that it cannot grow back"]);
        assert_eq!(found(GOAL, listed), ["remove this line"]);
        assert_eq!(found(1, "\"crates/b/src/lib.rs\" = 500"), ["remove this line"]);
    }
}
