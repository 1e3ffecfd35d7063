//! The running services and their files: saving them, finding them again, stopping them.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read, Write as _},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{
    Running, Service, Wanted,
    process::{self, Process},
};
use crate::ambient;

/// Services, and the directory with the data and logs of those that this set started.
pub(crate) struct Set {
    pub(crate) dir: PathBuf,
    pub(crate) running: Vec<Running>,
}

impl Set {
    /// An empty set with a new directory.
    pub(crate) fn new() -> Result<Self> {
        let parent = std::env::temp_dir();
        let dir = (0_u32..)
            .map(|attempt| parent.join(format!("urr-services-{}-{attempt}", std::process::id())))
            .find_map(|dir| match fs::create_dir(&dir) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => None,
                outcome => Some(outcome.map(|()| dir)),
            })
            .expect("an unbounded range has a next number")
            .with_context(|| format!("cannot create a directory in {}", parent.display()))?;
        // As root, PostgreSQL runs as another user and needs access to its subdirectory.
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755))?;
        Ok(Self { dir, running: Vec::new() })
    }

    pub(crate) fn has(&self, service: Service, durable: bool) -> bool {
        self.running.iter().any(|running| running.service == service && fits(running, durable))
    }

    pub(crate) fn put(&mut self, running: Running) {
        self.running.retain(|known| known.service != running.service);
        self.running.push(running);
    }

    /// Uses services that `start` left running, without stopping them later.
    pub(crate) fn borrow(&mut self, left: Vec<Running>, wanted: &Wanted) {
        let wanted =
            |running: &Running| wanted.services.contains(&running.service) && fits(running, wanted.durable);
        for running in left.into_iter().filter(|running| running.is_alive() && wanted(running)) {
            eprintln!("services: {} at {} is already running", running.service.name(), running.address);
            self.put(Running { processes: Vec::new(), ..running });
        }
    }

    /// Continues with services of an earlier `start`; stops those that are dead or have other
    /// options.
    pub(crate) fn take_over(&mut self, left: Vec<Running>, wanted: &Wanted) {
        for running in left {
            let in_the_way = wanted.services.contains(&running.service) && !fits(&running, wanted.durable);
            if running.is_alive() && !in_the_way {
                self.put(running);
            } else {
                process::end(&running.processes);
            }
        }
    }

    pub(crate) fn stop(&self) {
        let processes: Vec<Process> =
            self.running.iter().flat_map(|running| running.processes.iter().cloned()).collect();
        process::end(&processes);
    }

    /// Stops the services, deletes their data and prints where the logs are.
    pub(crate) fn stop_keeping_logs(&self) {
        self.stop();
        let paths: Vec<PathBuf> = files_in(&self.dir).collect();
        for path in paths.iter().filter(|path| path.is_dir()) {
            // Only the logs matter here; a leftover directory does no harm.
            let _ = fs::remove_dir_all(path);
        }
        if paths.is_empty() {
            let _ = fs::remove_dir(&self.dir);
        } else {
            eprintln!("services: the logs are in {}", self.dir.display());
        }
    }

    /// Deletes the files of a stopped set.
    pub(crate) fn remove(&self) -> Result<()> {
        remove(&self.dir)
    }

    /// Records this set for `stop`, `env` and `run`.
    pub(crate) fn save(&self) -> Result<()> {
        if files_in(&self.dir).next().is_none() {
            self.remove()?;
        }
        // Servers named by a variable are not recorded: xtask does not notice when they stop.
        let ours = self.running.iter().filter(|running| !running.processes.is_empty());
        let text = ours.map(Running::to_json).collect::<Value>().to_string();
        fs::write(state_file(), text).context("cannot write the list of started services")
    }

    /// Starts a process that stops this set if xtask dies, for example by Ctrl-C.
    pub(crate) fn watch(&self) -> Result<Reaper> {
        let mut reaper = Command::new(std::env::current_exe()?);
        reaper.args(["services", "reap"]).arg(&self.dir).process_group(0);
        reaper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = reaper.spawn().context("cannot start the reaper process")?;
        let line = child.stdin.take().expect("stdin is piped");
        Ok(Reaper { line, child })
    }
}

/// The services that `start` recorded, dead or alive.
pub(crate) fn left_running() -> Result<Vec<Running>> {
    let file = state_file();
    let text = match fs::read_to_string(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_context(|| format!("cannot read {}", file.display()))?,
    };
    let value: Value = serde_json::from_str(&text)?;
    let running =
        value.as_array().context("not a list")?.iter().map(Running::from_json).collect::<Result<_>>();
    running.with_context(|| format!("{} is damaged: delete it", file.display()))
}

/// Stops the services that `start` left running and deletes their files.
pub(crate) fn forget(left: &[Running]) -> Result<()> {
    for running in left {
        process::end(&running.processes);
    }
    for running in left.iter().filter(|running| !running.processes.is_empty()) {
        remove(&running.dir)?;
    }
    fs::remove_file(state_file()).context("cannot remove the list of started services")
}

impl Running {
    fn is_alive(&self) -> bool {
        self.processes.iter().all(Process::is_alive)
    }

    fn to_json(&self) -> Value {
        json!({
            "service": self.service.name(),
            "address": self.address,
            "durable": self.durable,
            "dir": self.dir,
            "processes": self.processes.iter().map(Process::to_json).collect::<Vec<_>>(),
        })
    }

    fn from_json(value: &Value) -> Result<Self> {
        let text = |key: &str| value[key].as_str().with_context(|| format!("no {key}"));
        let processes = value["processes"].as_array().context("no processes")?;
        Ok(Self {
            service: Service::named(text("service")?)?,
            address: text("address")?.to_owned(),
            durable: value["durable"].as_bool().context("no durable")?,
            dir: PathBuf::from(text("dir")?),
            processes: processes.iter().map(Process::from_json).collect::<Result<_>>()?,
        })
    }
}

/// Whether the service has the wanted durability: benchmarks need a PostgreSQL with fsync.
fn fits(running: &Running, durable: bool) -> bool {
    running.service != Service::Postgres || running.durable == durable
}

/// Excludes concurrent `start` and `stop`.
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock lasts as long as the file is open")] File);

impl Lock {
    pub(crate) fn take() -> Result<Self> {
        let dir = state_dir();
        fs::create_dir_all(&dir)?;
        let file = File::create(dir.join("lock")).context("cannot make the lock file")?;
        file.lock().context("cannot lock the services")?;
        Ok(Self(file))
    }
}

/// Pipe to the reaper process, which acts when the pipe closes before `dismiss`.
pub(crate) struct Reaper {
    line: ChildStdin,
    child: Child,
}

const DISMISSED: &[u8] = b"dismissed";

impl Reaper {
    /// Ends the reaper: the services were stopped, or are meant to stay.
    pub(crate) fn dismiss(mut self) -> Result<()> {
        self.line.write_all(DISMISSED)?;
        drop(self.line);
        self.child.wait()?;
        Ok(())
    }
}

/// The reaper process: waits until its parent is gone, then stops every process recorded in `dir`.
pub(crate) fn reap(dir: &Path, mut line: impl Read) -> Result<ExitCode> {
    let mut heard = Vec::new();
    line.read_to_end(&mut heard)?;
    if heard != DISMISSED {
        let notes = files_in(dir).filter(|path| path.extension().is_some_and(|ending| ending == "pid"));
        let processes: Vec<Process> = notes.filter_map(|note| Process::from_note(&note).ok()).collect();
        process::end(&processes);
        remove(dir)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn files_in(dir: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn remove(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).context("cannot remove the services' files")
        }
        _ => Ok(()),
    }
}

fn state_dir() -> PathBuf {
    ambient::root().join("target/services")
}

fn state_file() -> PathBuf {
    state_dir().join("state.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn postgres() -> Running {
        let dir = tempfile::tempdir().unwrap();
        let process =
            Process::spawn(Command::new("sleep").arg("60"), &dir.path().join("sleep.log"), "TERM").unwrap();
        Running {
            service: Service::Postgres,
            address: "postgres://127.0.0.1:1/postgres".to_owned(),
            durable: false,
            dir: PathBuf::from("somewhere"),
            processes: vec![process],
        }
    }

    fn wanted(services: &[Service], durable: bool) -> Wanted {
        Wanted { services: services.to_vec(), durable }
    }

    fn empty() -> Set {
        Set { dir: PathBuf::from("ours"), running: Vec::new() }
    }

    #[test]
    fn a_saved_service_is_loaded_unchanged() {
        let running = postgres();
        assert_eq!(Running::from_json(&running.to_json()).unwrap(), running);
        process::end(&running.processes);
    }

    #[test]
    fn started_services_are_reused_but_not_stopped_nor_used_by_benchmarks() {
        let left = postgres();
        let mut ours = empty();
        ours.borrow(vec![left.clone()], &wanted(&[Service::Redis], false));
        assert!(ours.running.is_empty(), "it is not wanted");
        ours.borrow(vec![left.clone()], &wanted(&[Service::Postgres], true));
        assert!(ours.running.is_empty(), "a benchmark needs a PostgreSQL with fsync");
        ours.borrow(vec![left.clone()], &wanted(&[Service::Postgres], false));
        assert!(ours.has(Service::Postgres, false));
        ours.stop();
        assert!(left.is_alive());
        process::end(&left.processes);
        let mut later = empty();
        later.borrow(vec![left], &wanted(&[Service::Postgres], false));
        assert!(later.running.is_empty(), "it has died meanwhile");
    }

    #[test]
    fn a_second_start_keeps_matching_services_and_stops_the_others() {
        let left = postgres();
        let mut set = empty();
        set.take_over(vec![left.clone()], &wanted(&[Service::Redis], true));
        assert_eq!(set.running, vec![left.clone()]);
        let mut set = empty();
        set.take_over(vec![left.clone()], &wanted(&[Service::Redis, Service::Postgres], true));
        assert!(set.running.is_empty());
        assert!(!left.is_alive());
    }

    #[test]
    fn the_reaper_stops_services_unless_dismissed() {
        let dir = tempfile::tempdir().unwrap().keep();
        let process =
            Process::spawn(Command::new("sleep").arg("60"), &dir.join("sleep.log"), "TERM").unwrap();
        reap(&dir, DISMISSED).unwrap();
        assert!(process.is_alive());
        reap(&dir, &[][..]).unwrap();
        assert!(!process.is_alive());
        assert!(!dir.exists());
    }
}
