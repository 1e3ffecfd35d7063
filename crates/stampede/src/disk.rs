//! The temporary files of a run, and the speed of the disk under them.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use urr_kernel::{Clock, Ids};

/// Number of timed fsyncs: at a quarter of a millisecond each they take 75 ms.
const SYNCS: usize = 300;

/// A directory for all files of a run. Removed on drop.
#[derive(Debug)]
pub(crate) struct WorkDir(PathBuf);

impl WorkDir {
    /// A new directory in `parent`.
    pub(crate) fn in_dir(parent: &Path) -> anyhow::Result<Self> {
        let random = u64::from_le_bytes(Ids::random(Clock::system()).bytes());
        let path = parent.join(format!("urr-bench-{random:016x}"));
        fs::create_dir(&path).with_context(|| format!("{} cannot be created", path.display()))?;
        Ok(Self(path.canonicalize()?))
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Describes the file system and the time of an fsync.
    pub(crate) fn describe(&self) -> anyhow::Result<String> {
        let sync = self.sync_time().with_context(|| format!("{} cannot be written", self.0.display()))?;
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let kind = file_system(&mounts, &self.0).unwrap_or_else(|| "unknown file system".to_owned());
        let warning = if kind == "tmpfs" { "; NOT A DISK: choose another with --dir" } else { "" };
        Ok(format!(
            "{kind}, 4 KiB appended and synced in {:.3} ms (median){warning}",
            sync.as_secs_f64() * 1_000.0
        ))
    }

    fn sync_time(&self) -> io::Result<Duration> {
        let path = self.path("sync");
        let (mut file, clock) = (File::create(&path)?, Clock::system());
        let mut times = Vec::with_capacity(SYNCS);
        for _ in 0..SYNCS {
            let began = clock.ticks();
            file.write_all(&[7; 4096])?;
            file.sync_data()?;
            times.push(clock.ticks().saturating_sub(began));
        }
        fs::remove_file(path)?;
        times.sort_unstable();
        Ok(times[SYNCS / 2])
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // If this fails, the leftover can be recognized by its name.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The type of the file system of `path`: that of the longest mount point above it.
fn file_system(mounts: &str, path: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let above = mounts.filter(|(point, _)| path.starts_with(point));
    above.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_system_is_that_of_the_nearest_mount_point() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /ram tmpfs rw 0 0\n/dev/b /ramdata xfs rw 0 0\n";
        let kind = |path: &str| file_system(mounts, Path::new(path));
        assert_eq!(kind("/data/x").as_deref(), Some("ext4"));
        assert_eq!(kind("/ram/x").as_deref(), Some("tmpfs"));
        assert_eq!(kind("/ramdata").as_deref(), Some("xfs"));
    }

    #[test]
    fn directory_is_removed_on_drop() {
        let parent = tempfile::tempdir().unwrap();
        let bench = WorkDir::in_dir(parent.path()).unwrap();
        assert!(bench.describe().unwrap().contains("synced in"));
        drop(bench);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
