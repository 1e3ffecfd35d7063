//! The machine and build of a measurement, without which its figures mean nothing.

use std::{fs, process::Command, thread, time::Duration};

/// What a figure depends on besides the code.
#[derive(Debug)]
pub(crate) struct Machine {
    /// `2 × AMD EPYC 7B13`
    processor: String,
    /// `23.4 GiB`
    memory: String,
    /// `Linux 6.1.0`
    system: String,
    /// `3f6c814`, with a mark if there are uncommitted changes.
    commit: String,
    /// Whether the build is optimised.
    build: &'static str,
}

impl Machine {
    /// Reads them from the system. What cannot be read is `unknown`.
    pub(crate) fn here() -> Self {
        let cores = thread::available_parallelism().map_or(0, usize::from);
        let model = value("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned());
        let memory = value("/proc/meminfo", "MemTotal").and_then(|text| kibibytes(&text));
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            processor: format!("{cores} × {model}"),
            memory: memory.map_or_else(|| "unknown memory".to_owned(), gibibytes),
            system: format!("{} {}", std::env::consts::OS, release.trim()),
            commit: commit().unwrap_or_else(|| "unknown".to_owned()),
            build: if cfg!(debug_assertions) {
                "debug: figures mean nothing, use --release"
            } else {
                "release"
            },
        }
    }

    /// One fact per line.
    pub(crate) fn lines(&self) -> [String; 3] {
        let Self { processor, memory, system, commit, build } = self;
        [
            format!("machine  {processor}, {memory}, {system}"),
            format!("version  urr {}, {build}", env!("CARGO_PKG_VERSION")),
            format!("commit   {commit}"),
        ]
    }
}

/// CPU time of this process so far, all cores together; zero if it cannot be read.
pub(crate) fn processor_time() -> Duration {
    /// `USER_HZ`, which is 100 on every Linux.
    const TICKS_PER_SECOND: u64 = 100;
    let ticks = fs::read_to_string("/proc/self/stat").ok().and_then(|text| ticks(&text)).unwrap_or(0);
    Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
}

/// Resident memory of this process in MiB; zero if it cannot be read.
pub(crate) fn memory_mib() -> u64 {
    memory_of("self", "VmRSS") / (1024 * 1024)
}

/// Memory of a process in bytes: `VmRSS` is resident, `VmHWM` its peak. Zero if it cannot be read.
pub(crate) fn memory_of(process: &str, figure: &str) -> u64 {
    let found = value(&format!("/proc/{process}/status"), figure);
    found.and_then(|text| kibibytes(&text)).unwrap_or(0) * 1024
}

/// User and system time in ticks: fields 14 and 15. Field 2 is a name in brackets that may contain
/// any character.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

/// The value of the first line `name: value` of a file in `/proc`.
fn value(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix(" kB")?.trim().parse().ok()
}

fn gibibytes(kibibytes: u64) -> String {
    let tenths = kibibytes * 10 / (1024 * 1024);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

/// The commit of the current directory, if it is a git tree. The binary may be older: build first.
fn commit() -> Option<String> {
    let git = Command::new("git").args(["describe", "--always", "--dirty=, with changes"]).output().ok()?;
    let text = String::from_utf8(git.stdout).ok()?;
    (git.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_parsed() {
        assert_eq!(kibibytes("24576000 kB"), Some(24_576_000));
        assert_eq!(kibibytes("many"), None);
        assert_eq!(gibibytes(24_576_000), "23.4 GiB");
        assert_eq!(ticks("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0"), Some(300));
        assert!(memory_mib() > 0);
        assert!(Machine::here().lines()[0].starts_with("machine  "));
    }
}
