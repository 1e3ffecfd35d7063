//! The files of a benchmark, and how fast the disk under them is.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use urr_kernel::{Clock, Ids};

use crate::failure::Failure;

/// Syncs that are timed: at a quarter of a millisecond each, a moment.
const SYNCS: usize = 300;

/// A directory for everything a run writes. It goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Bench(PathBuf);

impl Bench {
    /// A new directory in `parent`.
    pub(crate) fn in_dir(parent: &Path) -> Result<Self, Failure> {
        let random = u64::from_le_bytes(Ids::random(Clock::system()).bytes());
        let path = parent.join(format!("urr-bench-{random:016x}"));
        fs::create_dir(&path)
            .map_err(|error| Failure::because(format!("{} cannot be made", path.display()), &error))?;
        Ok(Self(path))
    }

    /// A path in it that nothing uses yet.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What is under the directory, and what a sync costs there.
    pub(crate) fn describe(&self) -> Result<String, Failure> {
        let failed = |error| Failure::because(format!("{} cannot be written", self.0.display()), &error);
        let sync = self.sync_time().map_err(failed)?;
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let path = self.0.canonicalize().map_err(failed)?;
        let kind = file_system(&mounts, &path).unwrap_or_else(|| "unknown file system".to_owned());
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

impl Drop for Bench {
    fn drop(&mut self) {
        // What cannot be removed is found under a name that says what it was.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The kind of the file system that holds `path`: that of the longest mount point above it.
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
    fn the_nearest_mount_point_names_the_file_system() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /ram tmpfs rw 0 0\n/dev/b /ramdata xfs rw 0 0\n";
        let kind = |path: &str| file_system(mounts, Path::new(path));
        assert_eq!(kind("/data/x").as_deref(), Some("ext4"));
        assert_eq!(kind("/ram/x").as_deref(), Some("tmpfs"));
        assert_eq!(kind("/ramdata").as_deref(), Some("xfs"));
    }

    #[test]
    fn a_benchmark_leaves_nothing_behind() {
        let parent = tempfile::tempdir().unwrap();
        let bench = Bench::in_dir(parent.path()).unwrap();
        assert!(bench.describe().unwrap().contains("synced in"));
        drop(bench);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
