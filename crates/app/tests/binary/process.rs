//! Starts the binary in a directory of its own, reads what it says and asks it over HTTP.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use urr_kernel::Clock;

/// Nothing that is waited for here takes longer, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A place of its own, without this machine's settings.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_urr"));
        command.args(args).current_dir(self.path()).env_clear().stdin(Stdio::null());
        command
    }

    /// Runs a command that ends by itself.
    pub(crate) fn run(&self, args: &[&str]) -> Said {
        Said::of(&self.command(args).output().unwrap())
    }

    /// Everything that is printed by a process that starts and is stopped.
    pub(crate) fn said_while_serving(&self, args: &[&str]) -> String {
        let mut serving = self.serve(args);
        serving.signal(Signal::TERM);
        assert!(serving.child.wait().unwrap().success());
        serving.out.iter().collect::<Vec<_>>().join("\n")
    }

    /// Serves with what the shell's `ulimit` allows.
    pub(crate) fn serve_with_ulimit(&self, ulimit: &str) -> Serving {
        let mut command = Command::new("/bin/sh");
        let script = format!("ulimit {ulimit} && exec \"$0\" serve --listen 127.0.0.1:0");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_urr")]);
        command.current_dir(self.path()).env_clear().stdin(Stdio::null());
        Serving::start(command)
    }

    pub(crate) fn serve(&self, args: &[&str]) -> Serving {
        let all: Vec<&str> = ["serve", "--listen", "127.0.0.1:0"].iter().chain(args).copied().collect();
        Serving::start(self.command(&all))
    }
}

/// What a command said and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// The output of a command that must have worked.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self.out
    }

    /// The complaint of a command that must have failed.
    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert_eq!(self.code, Some(1), "{self:#?}");
        self.err
    }
}

/// A serving process; killed when dropped.
pub(crate) struct Serving {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    pub address: String,
}

impl Serving {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = lines(child.stdout.take().unwrap());
        let err = lines(child.stderr.take().unwrap());
        let mut serving = Self { child, out, err, address: String::new() };
        let ready = serving.line("is ready at http://");
        serving.address.push_str(ready.split_once("http://").unwrap().1);
        serving
    }

    /// The next line on stdout that has these words.
    pub(crate) fn line(&self, words: &str) -> String {
        let clock = Clock::system();
        loop {
            match self.out.recv_timeout(PATIENCE.saturating_sub(clock.ticks())) {
                Ok(line) if line.contains(words) => return line,
                Ok(_) => {}
                Err(why) => panic!(
                    "no line with {words:?}: {why}; stderr: {:#?}",
                    self.err.try_iter().collect::<Vec<_>>()
                ),
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end and returns its exit code and what was left to read on stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let clock = Clock::system();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), self.err.iter().collect::<Vec<_>>().join("\n"));
            }
            assert!(clock.ticks() < PATIENCE, "the process did not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops it as a supervisor does.
    pub(crate) fn stop(self) {
        self.signal(Signal::TERM);
        let (code, err) = self.end();
        assert_eq!(code, Some(0), "{err}");
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        ask(&self.address, method, path, headers, body)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An HTTP answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// What a browser would send back.
    pub(crate) fn cookies(&self) -> String {
        let lines = self.head.lines().filter_map(|line| line.strip_prefix("set-cookie: "));
        lines.filter_map(|line| line.split(';').next()).collect::<Vec<_>>().join("; ")
    }
}

/// One request on a connection of its own.
pub(crate) fn ask(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n").unwrap();
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n").unwrap();
    }
    write!(stream, "content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

#[expect(clippy::disallowed_methods, reason = "a pipe is read by a thread of its own, which ends with it")]
fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}
