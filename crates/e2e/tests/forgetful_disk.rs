//! The power-loss library itself: a tool that forgets too little proves nothing, one that forgets too much accuses us.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use urr_e2e::powerloss::{Disk, Syncs};

/// What is left of the probe's files after the power came back.
fn survivors(syncs: Syncs) -> anyhow::Result<BTreeMap<String, String>> {
    let dir = tempfile::tempdir()?;
    let disk = Disk::new(dir.path())?;
    let probe =
        Command::new(env!("CARGO_BIN_EXE_disk_probe")).arg(disk.root()).envs(disk.env(syncs)).output()?;
    // The probe ends by aborting itself; the library ends it with 97 when it cannot do its work.
    anyhow::ensure!(
        probe.status.code().is_none(),
        "{:?} {}",
        probe.status,
        String::from_utf8_lossy(&probe.stderr)
    );
    disk.power_back()?;
    let mut found = BTreeMap::new();
    collect(disk.root(), "", &mut found)?;
    Ok(found)
}

fn collect(dir: &Path, prefix: &str, found: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), found)?;
        } else {
            found.insert(name, fs::read_to_string(entry.path())?);
        }
    }
    Ok(())
}

#[test]
fn only_synced_bytes_under_synced_names_survive() -> anyhow::Result<()> {
    let found = survivors(Syncs::All)?;
    let expected = [
        ("inner/content-unsynced", ""),
        ("inner/linked", "whole"),
        ("inner/renamed", "whole"),
        ("kept", "durable"),
        ("logs/a.db", ""),
        ("logs/a.db-wal", "frame"),
        ("logs/b.db-wal", "frame"),
        ("patched", "0123ab67\0"),
    ];
    let expected = expected.map(|(name, content)| (name.to_owned(), content.to_owned()));
    assert_eq!(found, BTreeMap::from(expected));
    Ok(())
}

#[test]
fn as_in_normal_a_log_is_kept_only_once_its_database_is_written() -> anyhow::Result<()> {
    let found = survivors(Syncs::AsInNormal)?;
    assert_eq!(found["logs/a.db-wal"], "frame", "a checkpoint syncs the log first");
    assert_eq!(found["logs/b.db-wal"], "", "a commit alone does not");
    assert_eq!(found["kept"], "durable", "other files are not touched by the control");
    Ok(())
}
