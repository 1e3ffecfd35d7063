//! docs/config.md, written from the declared settings.

use std::fmt::Write as _;

use urr_settings::{Section as _, Table};

use super::{Config, Info, infos, load::ENV_ALIASES};

const HEAD: &str = "\
<!-- Generated from the declared settings: a test of urr-app rewrites this page, and fails, when it is not current. -->

# Configuration

`urr` needs none: without any it runs every role in one process on files in `./urr-data`.

Sources of a setting; the first that has it wins:

1. a flag: `--listen`, `--data-dir`, `--roles`, or `--set key=value` for any setting;
2. an environment variable: `sale.hold_secs` is `URR_SALE_HOLD_SECS`; an empty one counts as not set;
3. the configuration file: `--config <file>` or `URR_CONFIG`, otherwise `./urr.toml` if it exists;
4. the default.

Unknown keys and `URR_` variables are refused with the nearest known name. A secret can be in a file of its own:
`security.secret_file` or `URR_SECURITY_SECRET_FILE` names the file, as for Docker and Kubernetes secrets.
`urr check-config` prints the effective configuration, the source of each value, and every problem;
`urr doctor` checks every configured store. Lists are TOML arrays in the file and separated by commas elsewhere.

```toml
# A production set-up: the process with tickets, their waiting room and the gateway for all clients, beside one with
# `roles = [\"auth\", \"catalog\"]` and its own `internal.listen`. Both have the same `internal.token`, `security.secret` and stores.
profile = \"production\"
listen = \"0.0.0.0:3001\"
roles = [\"gateway\", \"queue\", \"tickets\"]
storage = { kind = \"postgres\", url = \"postgres://urr@db/urr\" }
bus = { kind = \"kafka\", brokers = [\"kafka-1:9092\", \"kafka-2:9092\"], allow_insecure = true }
redis = { urls = [\"rediss://cache-1:6379\", \"rediss://cache-2:6379\"], cluster = true }

[http]
trusted_proxies = [\"10.0.0.0/8\"]

[remote]
auth = \"http://accounts:3002\"
catalog = \"http://accounts:3002\"

[upstream]
auth = [\"http://accounts:3001\"]
catalog = [\"http://accounts:3001\"]

[internal]
token_file = \"/run/secrets/internal_token\"

[security]
secret_file = \"/run/secrets/signing_key\"
```
";

/// The whole page.
pub(crate) fn markdown() -> String {
    let mut page = HEAD.to_owned();
    for Table { name: section, about } in tables() {
        let title = if section.is_empty() { "Top of the file".to_owned() } else { format!("`[{section}]`") };
        let _ = write!(page, "\n## {title}\n\n{about}\n\n");
        page.push_str("| key | environment | value | default | meaning |\n|---|---|---|---|---|\n");
        for info in infos().iter().filter(|info| info.table() == section) {
            page.push_str(&row(info));
        }
    }
    page
}

/// The tables of the file. A section without a description is part of a table that another
/// declares.
pub(super) fn tables() -> Vec<Table> {
    Config::tables().into_iter().filter(|table| !table.about.is_empty()).collect()
}

fn row(info: &Info) -> String {
    let mut env = format!("`{}`", info.env());
    if info.secret {
        let _ = write!(env, ", `{}_FILE`", info.env());
    }
    for (alias, _) in ENV_ALIASES.iter().filter(|(_, key)| *key == info.key) {
        let _ = write!(env, ", `{alias}`");
    }
    let default = if info.default.is_empty() { "none".to_owned() } else { format!("`{}`", info.default) };
    let kind = (info.describe)();
    format!("| `{}` | {env} | {kind} | {default} | {} |\n", info.key, info.doc.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Input, Values};

    #[test]
    fn the_committed_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        if committed != markdown() {
            std::fs::write(path, markdown()).unwrap();
            panic!("docs/config.md was not current and has been rewritten: commit it");
        }
    }

    #[test]
    fn the_example_on_the_page_is_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let example = HEAD.split("```").nth(1).unwrap().strip_prefix("toml").unwrap();
        let example = example.replace("/run/secrets", &dir.path().display().to_string());
        std::fs::write(dir.path().join("internal_token"), "0123456789abcdef\n").unwrap();
        std::fs::write(dir.path().join("signing_key"), "0123456789abcdef0123456789abcdef\n").unwrap();
        std::fs::write(dir.path().join("urr.toml"), example).unwrap();
        let input = Input { working_dir: dir.path().to_owned(), ..Input::default() };
        let (values, problems) = Values::load(&input);
        assert_eq!(problems, []);
        crate::config::Config::resolve(&values).unwrap();
    }
}
