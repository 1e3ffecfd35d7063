//! Tests of the power-loss library: if it discards too little it proves nothing, and too much
//! causes false alarms.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use urr_e2e::powerloss::{Disk, Syncs};

/// What is left of the probe's files after a power loss.
fn survivors(syncs: Syncs) -> anyhow::Result<BTreeMap<String, String>> {
    let dir = tempfile::tempdir()?;
    let disk = Disk::new(dir.path())?;
    let probe =
        Command::new(env!("CARGO_BIN_EXE_disk_probe")).arg(disk.root()).envs(disk.env(syncs)).output()?;
    // The probe ends with abort; the library exits with 97 if it fails.
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
fn synchronous_normal_keeps_a_wal_only_after_a_checkpoint() -> anyhow::Result<()> {
    let found = survivors(Syncs::AsInNormal)?;
    assert_eq!(found["logs/a.db-wal"], "frame", "a checkpoint syncs the log first");
    assert_eq!(found["logs/b.db-wal"], "", "a commit alone does not");
    assert_eq!(found["kept"], "durable", "other files are not touched by the control");
    Ok(())
}
