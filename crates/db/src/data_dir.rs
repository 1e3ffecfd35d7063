//! The directory of the embedded databases, locked by one process at a time.

use std::{
    fs::{DirBuilder, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

/// The lock file. It is never deleted; the operating system releases the lock when the process
/// ends.
const LOCK_FILE: &str = "urr.lock";

/// A data directory locked by this process until the value is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process has locked it.
    #[error("another urr process is using the data directory {}", .0.display())]
    InUse(PathBuf),
    /// It cannot be created or opened.
    #[error("the data directory {} cannot be used", .0.display())]
    Unusable(PathBuf, #[source] io::Error),
}

impl DataDir {
    /// Creates the directory if it is missing, accessible to its owner only, and locks it.
    pub fn lock(path: &Path) -> Result<Self, DataDirError> {
        let unusable = |e| DataDirError::Unusable(path.to_owned(), e);
        create(path).map_err(unusable)?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK_FILE))
            .map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: file }),
            Err(TryLockError::WouldBlock) => Err(DataDirError::InUse(path.to_owned())),
            Err(TryLockError::Error(e)) => Err(unusable(e)),
        }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn create(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let missing: Vec<&Path> = path.ancestors().take_while(|dir| !dir.is_dir()).collect();
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&path)?;
    // Sync the parents of new directories: otherwise a power cut could remove the whole directory,
    // including every acknowledged write in it.
    missing.iter().filter_map(|dir| dir.parent()).try_for_each(sync)
}

/// Makes a directory's entries durable.
pub(crate) fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn second_process_is_rejected_until_the_first_releases_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let held = DataDir::lock(&path).unwrap();
        let refused = DataDir::lock(&path).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("another urr process is using the data directory {}", path.display())
        );
        drop(held);
        assert_eq!(DataDir::lock(&path).unwrap().path(), path);
    }

    #[cfg(unix)]
    #[test]
    fn directory_is_private_to_its_owner() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let _held = DataDir::lock(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn path_that_is_a_file_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        fs::write(&path, "").unwrap();
        assert!(matches!(DataDir::lock(&path), Err(DataDirError::Unusable(..))));
    }
}
