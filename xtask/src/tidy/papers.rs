//! Every crate has a README.

use super::{Finding, tree::Tree};

/// Documented elsewhere: the app in the project's README, the other two at the top of `lib.rs`.
const ELSEWHERE: [&str; 3] = ["app", "contracts", "kernel"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.files.iter().filter(|file| file.name() == "Cargo.toml");
    let explained =
        |name: &str| ELSEWHERE.contains(&name) || tree.get(&format!("crates/{name}/README.md")).is_some();
    manifests
        .filter_map(|manifest| manifest.crate_name())
        .filter(|name| !explained(name))
        .map(|name| {
            let remedy = "describe in a paragraph what the crate owns and offers";
            Finding::new(&format!("crates/{name}/README.md"), 1, "there is no README", remedy)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_without_a_readme_is_reported() {
        let silent = Tree::of(&[("crates/kv/Cargo.toml", "")]);
        assert_eq!(check(&silent).len(), 1);
        let explained = Tree::of(&[("crates/kv/Cargo.toml", ""), ("crates/kv/README.md", "# kv")]);
        assert!(check(&explained).is_empty());
    }
}
