//! The text files of the project.

use std::{fs, process::Command};

use anyhow::{Context as _, Result};

use crate::{ambient, command::output};

/// A text file; its path is relative to the root and uses `/`.
pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) text: String,
}

/// Every text file that is committed, or is new and not ignored.
pub(super) struct Tree {
    pub(super) files: Vec<SourceFile>,
}

impl Tree {
    pub(super) fn load() -> Result<Self> {
        let root = ambient::root();
        let mut list = Command::new("git");
        list.current_dir(&root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = output(&mut list).context("cannot list the files with git")?;
        let files = listed
            .split_terminator('\0')
            // Skips files that are deleted but still in the index, and files that are not text.
            .filter_map(|path| Some((path, fs::read_to_string(root.join(path)).ok()?)))
            .map(|(path, text)| SourceFile { path: path.to_owned(), text })
            .collect();
        Ok(Self { files })
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let file =
            |(path, text): &(&str, &str)| SourceFile { path: (*path).to_owned(), text: (*text).to_owned() };
        Self { files: files.iter().map(file).collect() }
    }

    pub(super) fn get(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.ending() == "rs")
    }
}

impl SourceFile {
    /// The crate of a file: `tickets` for `crates/tickets/src/lib.rs`.
    pub(super) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// The file name without directories.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The extension; empty for a name without a dot.
    pub(super) fn ending(&self) -> &str {
        self.name().rsplit_once('.').map_or("", |(_, ending)| ending)
    }

    /// The part of a Rust file that is compiled into the product: without the tests at its end, and
    /// nothing of a test file.
    pub(super) fn product_code(&self) -> &str {
        const TESTS: &str = "#[cfg(test)]\nmod ";
        if self.path.contains("/tests/") || self.name() == "tests.rs" {
            return "";
        }
        // `mod tests;` refers to another file; `mod tests {` starts the tests at the end of this
        // one.
        let opens =
            |at: &usize| self.text[at + TESTS.len()..].lines().next().is_some_and(|line| line.ends_with('{'));
        let end = self.text.match_indices(TESTS).map(|(at, _)| at).find(opens);
        &self.text[..end.unwrap_or(self.text.len())]
    }

    /// The number of the first line that contains `needle`, or 1.
    pub(super) fn line_of(&self, needle: &str) -> usize {
        self.text.lines().position(|line| line.contains(needle)).map_or(1, |index| index + 1)
    }
}

/// The line number of the byte at `offset`.
pub(super) fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_not_product_code() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "fn product() {}\n#[cfg(test)]\nmod tests {\n    fn check() {}\n}"),
            ("crates/a/tests/api.rs", "fn check() {}"),
        ]);
        assert_eq!(tree.files[0].product_code(), "fn product() {}\n");
        assert_eq!(tree.files[1].product_code(), "");
        assert_eq!(tree.files[0].crate_name(), Some("a"));
        let elsewhere = "#[cfg(test)]\nmod tests;\nfn product() {}\n";
        assert_eq!(Tree::of(&[("src/lib.rs", elsewhere)]).files[0].product_code(), elsewhere);
    }
}
