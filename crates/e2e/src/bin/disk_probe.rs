//! Writes files in known ways and then aborts, to test the power-loss library.
//!
//! The file names say what should survive.

use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::fs::FileExt as _,
    path::Path,
};

fn main() -> std::io::Result<()> {
    let root = std::env::args_os().nth(1).expect("usage: disk_probe DIRECTORY");
    let root = Path::new(&root);
    let sync_directory = |path: &Path| File::open(path)?.sync_all();

    // Content and name are synced; content written after that is not.
    let mut kept = File::create(root.join("kept"))?;
    kept.write_all(b"durable")?;
    kept.sync_all()?;
    sync_directory(root)?;
    kept.write_all(b" and not")?;

    // Overwritten in the middle, truncated and extended, with some of it synced.
    let patched = File::create(root.join("patched"))?;
    patched.write_all_at(b"0123456789", 0)?;
    patched.sync_data()?;
    patched.write_all_at(b"ab", 4)?;
    patched.set_len(8)?;
    patched.set_len(9)?;
    patched.sync_data()?;
    patched.write_all_at(b"XXXX", 0)?;
    sync_directory(root)?;

    // A directory: a synced file in it is reachable once the directory itself is synced.
    let inner = root.join("inner");
    fs::create_dir(&inner)?;
    File::create(inner.join("content-unsynced"))?.write_all(b"lost")?;
    let mut draft = File::create(inner.join("draft"))?;
    draft.write_all(b"whole")?;
    draft.sync_all()?;
    fs::hard_link(inner.join("draft"), inner.join("linked"))?;
    fs::rename(inner.join("draft"), inner.join("renamed"))?;
    sync_directory(&inner)?;
    sync_directory(root)?;
    fs::remove_file(inner.join("linked"))?;
    fs::rename(inner.join("renamed"), inner.join("renamed-again"))?;

    // Two WAL files, as SQLite has them, for the control: one whose database is written afterwards,
    // and one whose database is not.
    let logs = root.join("logs");
    fs::create_dir(&logs)?;
    for name in ["a.db", "a.db-wal", "b.db-wal"] {
        File::create(logs.join(name))?.sync_all()?;
    }
    sync_directory(&logs)?;
    sync_directory(root)?;
    let append = |name: &str| -> std::io::Result<()> {
        let mut log = File::options().append(true).open(logs.join(name))?;
        log.write_all(b"frame")?;
        log.sync_data()
    };
    append("a.db-wal")?;
    append("b.db-wal")?;
    File::options().write(true).open(logs.join("a.db"))?.write_all(b"page")?;

    // The content is synced, the name is not.
    let mut unnamed = File::create(root.join("name-unsynced"))?;
    unnamed.write_all(b"unreachable")?;
    unnamed.sync_all()?;
    std::process::abort();
}
