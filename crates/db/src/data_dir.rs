//! The directory that holds the embedded databases, for one process at a time.

use std::{
    fs::{DirBuilder, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

/// The lock's file. It stays; what counts is the lock on it, which the system drops with the process.
const LOCK_FILE: &str = "urr.lock";

/// A data directory that this process alone uses, for as long as the value lives.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Somebody else has it.
    #[error("another urr process is using the data directory {}", .0.display())]
    InUse(PathBuf),
    /// It cannot be created or opened.
    #[error("the data directory {} cannot be used", .0.display())]
    Unusable(PathBuf, #[source] io::Error),
}

impl DataDir {
    /// Creates the directory if need be, readable by its owner only, and locks it.
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

    /// Where it is.
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
    // A new directory is on disk once its parent is: without this a power cut could take the whole directory away,
    // with every acknowledged write in it.
    missing.iter().filter_map(|dir| dir.parent()).try_for_each(sync)
}

/// Makes what a directory lists durable.
pub(crate) fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_second_user_is_refused_by_name_until_the_first_is_gone() {
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
    fn only_the_owner_may_look_into_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let _held = DataDir::lock(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_file_in_its_place_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        fs::write(&path, "").unwrap();
        assert!(matches!(DataDir::lock(&path), Err(DataDirError::Unusable(..))));
    }
}
