//! The text files of the project as the rules see them.

use std::{fs, process::Command};

use anyhow::{Context as _, Result};

use crate::{ambient, command::output};

/// One text file; the path is relative to the top and written with `/`.
pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) text: String,
}

/// Every text file that is committed or would be.
pub(super) struct Tree {
    pub(super) files: Vec<SourceFile>,
}

impl Tree {
    pub(super) fn load() -> Result<Self> {
        let root = ambient::root();
        let mut list = Command::new("git");
        list.current_dir(&root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = output(&mut list).context("the rules look at the files git knows")?;
        let files = listed
            .split_terminator('\0')
            // A file may be listed and deleted but not yet committed so; pictures and the like are not text.
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
    /// The `tickets` of `crates/tickets/src/lib.rs`.
    pub(super) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// The file's name without its folders.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The `rs` of `lib.rs`; nothing for a name without a dot.
    pub(super) fn ending(&self) -> &str {
        self.name().rsplit_once('.').map_or("", |(_, ending)| ending)
    }

    /// The part of a Rust file that is compiled into the product: nothing of a test file, and otherwise what stands
    /// above the tests.
    pub(super) fn product_code(&self) -> &str {
        const TESTS: &str = "#[cfg(test)]\nmod ";
        if self.path.contains("/tests/") || self.name() == "tests.rs" {
            return "";
        }
        // `mod tests;` leads to another file and the product goes on below it; `mod tests {` stands last.
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

/// The number of the line in which the byte at `offset` stands.
pub(super) fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_no_product_code() {
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
